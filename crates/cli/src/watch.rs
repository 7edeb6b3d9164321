//! Looking again and again: in place on a terminal, block by block elsewhere.

use crate::output::{ReaderCheck, print};
use crate::printable::{cut, printable, printable_json};
use crate::stop;
use lanecast::parse_duration;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(10);
/// Longest delay until the stop flag is seen.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Arguments of commands that can look again and again.
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Look again and again, with so much time between
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "1s")]
    #[arg(value_parser = parse_interval)]
    watch: Option<Duration>,

    /// End after so many looks
    #[arg(long, value_name = "N", requires = "watch")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Text of one snapshot.
#[derive(Debug)]
pub(crate) struct Block {
    /// Lines for standard output.
    pub(crate) text: String,
    /// Errors of reading, one line each.
    pub(crate) errors: Vec<String>,
}

/// An interval between looks, such as `500ms`.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
    let least = SHORTEST.as_millis();
    if interval < SHORTEST { Err(format!("choose at least {least}ms")) } else { Ok(interval) }
}

impl WatchArgs {
    /// Whether there is more than one look.
    pub(crate) const fn is_on(&self) -> bool {
        self.watch.is_some()
    }

    /// A line of JSON: an array of `objects`, which tell their time if there are several looks.
    pub(crate) fn json_line(&self, objects: impl Iterator<Item = Value>) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let stamped = objects.map(|mut object| {
            if self.is_on() {
                object["looked_unix_ns"] = u64::try_from(now.as_nanos()).ok().into();
            }
            object
        });
        printable_json(format!("{}\n", stamped.collect::<Value>()))
    }

    /// Prints what `look` shows, once or repeatedly. Text is redrawn in place on a terminal, and
    /// elsewhere printed with an empty line between two looks; what is no text comes as it is.
    pub(crate) fn run(
        &self,
        is_text: bool,
        mut look: impl FnMut() -> anyhow::Result<Block>,
    ) -> anyhow::Result<ExitCode> {
        let mut said = BTreeSet::new();
        let Some(interval) = self.watch else {
            let block = look()?;
            say_new(&block.errors, &mut said);
            print(&block.text)?;
            return Ok(ExitCode::SUCCESS);
        };
        let (stop, mut reader) = (stop::flag()?, ReaderCheck::new());
        let in_place = is_text && stdout().is_terminal();
        let mut next = Instant::now();
        for number in 0..self.count.unwrap_or(u64::MAX) {
            if number > 0 && !sleep_until(next, &stop, &mut reader)? {
                break;
            }
            // Looks that were missed are not made up for.
            next = (next + interval).max(Instant::now());
            let block = look()?;
            if in_place {
                print(&redrawn(&block, number == 0, terminal_size()))?;
            } else {
                say_new(&block.errors, &mut said);
                let gap = if is_text && number > 0 { "\n" } else { "" };
                print(&format!("{gap}{}", block.text))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether it slept until then; not if the user wants to end. Fails if the reader has gone.
fn sleep_until(
    then: Instant,
    stop: &impl Fn() -> bool,
    reader: &mut ReaderCheck,
) -> std::io::Result<bool> {
    loop {
        let left = then.saturating_duration_since(Instant::now());
        if stop() {
            return Ok(false);
        }
        if left.is_zero() {
            return Ok(true);
        }
        reader.check()?;
        std::thread::sleep(left.min(CHECK_INTERVAL));
    }
}

/// Prints to standard error what has not been said since it began to be so.
fn say_new(errors: &[String], said: &mut BTreeSet<String>) {
    said.retain(|error| errors.contains(error));
    for error in errors {
        if said.insert(error.clone()) {
            crate::output::warn(&printable(error));
        }
    }
}

/// Columns and rows of the terminal.
pub(crate) fn terminal_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(stdout()).ok();
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// The block drawn over the one before; what does not fit is cut, and said to be.
fn redrawn(block: &Block, is_first: bool, (columns, rows): (usize, usize)) -> String {
    let errors = block.errors.iter().map(|error| printable(&format!("lanecast: {error}")));
    let mut lines: Vec<String> = block.text.lines().map(str::to_owned).chain(errors).collect();
    // The last row stays free for the cursor.
    let room = rows.saturating_sub(1).max(1);
    if lines.len() > room {
        let hidden = lines.len() - (room - 1);
        lines.truncate(room - 1);
        lines.push(format!("... {hidden} more lines than the terminal has"));
    }
    let clear = if is_first { "\x1b[2J" } else { "" };
    let lines: String = lines.iter().map(|line| cut(line, columns) + "\x1b[K\n").collect();
    format!("{clear}\x1b[H{lines}\x1b[J")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(lines: usize, errors: &[&str]) -> Block {
        let text = (0..lines).map(|line| format!("line {line}\n")).collect();
        Block { text, errors: errors.iter().map(|&error| error.to_owned()).collect() }
    }

    #[test]
    fn a_look_is_drawn_over_the_one_before() {
        let drawn = redrawn(&block(1, &["a\nb: cut"]), true, (80, 24));
        assert_eq!(drawn, "\x1b[2J\x1b[Hline 0\x1b[K\nlanecast: a�b: cut\x1b[K\n\x1b[J");
        assert!(redrawn(&block(1, &[]), false, (80, 24)).starts_with("\x1b[Hline 0"));
    }

    #[test]
    fn no_line_and_no_column_leaves_the_terminal() {
        let drawn = redrawn(&block(9, &[]), false, (4, 5));
        assert_eq!(drawn.matches('\n').count(), 4);
        assert!(drawn.contains("lin…") && drawn.contains("\n..."), "{drawn:?}");
        for size in [(0, 0), (1, 1), (2, 2)] {
            assert!(redrawn(&block(9, &[]), false, size).matches('\n').count() <= 1, "{size:?}");
        }
    }

    #[test]
    fn an_error_is_said_once_until_it_has_passed() {
        let mut said = BTreeSet::new();
        say_new(&["a".into(), "b".into()], &mut said);
        say_new(&["b".into()], &mut said);
        assert_eq!(said.into_iter().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn intervals_have_a_unit_and_a_least() {
        assert_eq!(parse_interval("500ms"), Ok(Duration::from_millis(500)));
        assert!(parse_interval("1ms").unwrap_err().contains("10ms"));
        assert!(parse_interval("5").is_err());
    }
}
