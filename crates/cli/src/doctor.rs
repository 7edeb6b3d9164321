//! `lanecast doctor`.

use crate::context::DomainArgs;
use crate::output::{print, print_line};
use crate::printable::{printable, width};
use crate::table;
use indicatif::ProgressBar;
use lanecast::Size;
use lanecast_measure::doctor::{self, Examination, Finding, Proposal, Settings, State};
use lanecast_measure::{Head, Host, Kind, PriorityChange, PriorityRequest};
use lanecast_report::wrap;
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::time::Duration;

/// The exit status where something disturbs measurements.
const DISTURBED: u8 = 3;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Looks and measures, and mends nothing by itself. Like the measuring \
    tools it raises itself if it leads a session of its own (setsid): run it as you would run what \
    you want to measure.\n\
    Exit status: 0 nothing disturbs measurements, 1 error, 2 wrong arguments, \
    3 something disturbs them.")]
pub(crate) struct DoctorArgs {
    /// Only look, measure nothing
    #[arg(long, conflicts_with = "seconds")]
    quick: bool,

    /// Length of the measurement, in seconds
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// Print one JSON object, and nothing else
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    domain: DomainArgs,
}

pub(crate) fn run(arguments: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let head = Head::now();
    let shm = arguments.domain.builder()?.config()?.shm;
    let directory = std::path::absolute(&shm.directory)?;
    // One that is not there yet is made by the first program, in the nearest that is.
    anyhow::ensure!(
        !directory.exists() || directory.is_dir(),
        "{} is not a directory: remove it, or choose another directory",
        directory.display()
    );
    let settings = Settings {
        directory,
        window: Size(shm.window_bytes),
        raise: PriorityChange::by(PriorityRequest::Auto),
        time: (!arguments.quick).then(|| Duration::from_secs(arguments.seconds)),
    };
    // On standard error, and only if that is a terminal.
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(200));
    let found = doctor::examine(&settings, &mut |what| progress.set_message(what.to_owned()));
    progress.finish_and_clear();
    if arguments.json {
        print_line(&head.line(Kind::Doctor, &found)?)?;
    } else {
        print(&text(&head.host, &found, table::columns(), colours_wanted()))?;
    }
    Ok(ExitCode::from(if found.is_disturbed() { DISTURBED } else { 0 }))
}

/// Whether standard output is a terminal on which colours are wanted (no-color.org).
fn colours_wanted() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stdout().is_terminal() && !refused
}

/// The findings, in lines of at most `columns`.
fn text(host: &Host, found: &Examination, columns: usize, colours: bool) -> String {
    let mut text = wrap(&machine(host), columns).join("\n") + "\n\n";
    let titles = found.findings.iter().map(|finding| width(finding.title)).max().unwrap_or(0);
    for (state, title, colour) in [
        (State::Disturbs, "Disturbs measurements", "1;31"),
        (State::Note, "Worth knowing", "1;33"),
        (State::Unknown, "Not known here", "1"),
        (State::Good, "Good", "1;32"),
    ] {
        let of_state: Vec<_> = found.findings.iter().filter(|f| f.state == state).collect();
        if of_state.is_empty() {
            continue;
        }
        text += &painted(title, colours.then_some(colour));
        text.push('\n');
        of_state.iter().for_each(|finding| text += &lines(finding, titles, columns));
        text.push('\n');
    }
    if let Some(proposal) = found.proposal {
        text += &(wrap(&proposed(proposal), columns).join("\n") + "\n");
    }
    for line in wrap(&printable(&found.verdict), columns) {
        text += &painted(&line, colours.then_some("1"));
        text.push('\n');
    }
    text
}

fn painted(text: &str, colour: Option<&str>) -> String {
    colour.map_or_else(|| text.to_owned(), |colour| format!("\x1b[{colour}m{text}\x1b[0m"))
}

fn machine(host: &Host) -> String {
    let kernel = host.kernel.as_ref().map(|kernel| format!("Linux {kernel}"));
    let cpus = host.cpus.map(|cpus| format!("{cpus} CPUs"));
    let parts = [host.cpu.clone(), cpus, host.hypervisor.clone(), kernel];
    let parts: Vec<_> = parts.into_iter().flatten().map(|part| printable(&part)).collect();
    parts.join(", ")
}

/// A finding: its title beside what was found, then what that does and how to mend it. Titles take
/// `titles` columns.
fn lines(finding: &Finding, titles: usize, columns: usize) -> String {
    let indent = titles + 4;
    let effect = finding.effect.as_deref().map(printable);
    let mend = finding.mend.as_deref().map(|mend| format!("mend: {}", printable(mend)));
    let texts = [Some(printable(&finding.found)), effect, mend].into_iter().flatten();
    let lines = texts.flat_map(|text| wrap(&text, columns.saturating_sub(indent)));
    lines.enumerate().fold(String::new(), |text, (number, line)| {
        let title = if number == 0 { finding.title } else { "" };
        let gap = " ".repeat(titles - width(title));
        text + "  " + title + &gap + "  " + &line + "\n"
    })
}

fn proposed(proposal: Proposal) -> String {
    let Proposal { publisher_cpu, subscriber_cpu, rest_cpu } = proposal;
    let rest = rest_cpu.map_or("no CPU is left for the rest".to_owned(), |cpu| {
        format!("everything else on CPU {cpu}")
    });
    format!("measure with perf pub -a {publisher_cpu} and perf sub -a {subscriber_cpu}; {rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(title: &'static str, state: State, found: &str, mend: Option<&str>) -> Finding {
        let (effect, mend) = (mend.map(|_| "runs differ".to_owned()), mend.map(str::to_owned));
        Finding { id: "x", title, state, found: found.to_owned(), effect, mend }
    }

    fn examination() -> Examination {
        Examination {
            findings: vec![
                finding("load", State::Disturbs, "1.0 CPUs busy: \u{1b}[2J", Some("stop it")),
                finding("clock source", State::Good, "tsc", None),
            ],
            proposal: Some(Proposal { publisher_cpu: 3, subscriber_cpu: 2, rest_cpu: None }),
            gaps: Vec::new(),
            baseline: None,
            noise_p99_9_ns: None,
            verdict: "one thing disturbs".to_owned(),
        }
    }

    #[test]
    fn findings_align_and_end_with_the_verdict() {
        let host = Host::read(std::path::Path::new("/no/such/root"));
        let plain = text(&host, &examination(), 80, false);
        assert_eq!(
            plain,
            "\n\nDisturbs measurements\n  load          1.0 CPUs busy: \u{fffd}[2J\n\
             \x20               runs differ\n\x20               mend: stop it\n\n\
             Good\n  clock source  tsc\n\n\
             measure with perf pub -a 3 and perf sub -a 2; no CPU is left for the rest\n\
             one thing disturbs\n"
        );
        let narrow = text(&host, &examination(), 30, false);
        assert!(narrow.contains("  load          1.0 CPUs busy:\n"), "{narrow}");
        assert!(narrow.lines().all(|line| width(line) <= 30), "{narrow}");
        let colourful = text(&host, &examination(), 80, true);
        assert!(colourful.contains("\x1b[1;31mDisturbs measurements\x1b[0m\n"), "{colourful}");
        assert_eq!(plain.matches('\x1b').count(), 0);
    }
}
