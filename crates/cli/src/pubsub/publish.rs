//! `lanecast pub`.

use super::frames::Frames;
use super::input::{self, Input};
use super::pace::Pace;
use super::pub_args::PubArgs;
use super::target::{CHECK_INTERVAL, Target};
use crate::output::{INCOMPLETE, print_error, warn, wrong_arguments};
use crate::table::{counted, rate};
use anyhow::bail;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

pub(crate) fn run(arguments: &PubArgs) -> anyhow::Result<ExitCode> {
    if let Some(words) = arguments.misfit() {
        return Ok(wrong_arguments(&words));
    }
    arguments.shared.warn_old_topic();
    let stop = crate::stop::flag()?;
    let mut target = Target::open(arguments, &stop)?;
    let messages = arguments.messages();
    let given = arguments.shared.count.unwrap_or(u64::MAX).min(messages.len() as u64);
    let input = if messages.is_empty() {
        let frames = Frames::new(arguments.binary);
        input::read(arguments.from_file.as_deref(), frames, target.longest())?
    } else {
        input::given(&messages)
    };
    let (start, mut sent) = (Instant::now(), 0);
    let published = publish(arguments, &mut target, &input, &stop, &mut sent);
    if published.is_err() && sent > 0 {
        warn(&format!("{} sent before the error", counted(sent, "message")));
    }
    published?;
    let (seconds, readers) = (start.elapsed().as_secs_f64(), target.subscribers());
    let all_read = target.finish(arguments)?;
    if !arguments.shared.quiet {
        let rate = rate(sent as f64 / seconds);
        let readers = readers.map(|count| format!(", {}", counted(count as u64, "subscriber")));
        print_error(&format!(
            "published {} in {seconds:.3} s ({rate}){}",
            counted(sent, "message"),
            readers.unwrap_or_default()
        ));
    }
    if stop() && sent < given {
        bail!("stopped: {} not sent", counted(given - sent, "message"));
    }
    Ok(ExitCode::from(if all_read { 0 } else { INCOMPLETE }))
}

/// Publishes the input to its end, or until it is told to stop; counts the messages in `sent`.
fn publish(
    arguments: &PubArgs,
    target: &mut Target,
    input: &Receiver<Input>,
    stop: &impl Fn() -> bool,
    sent: &mut u64,
) -> anyhow::Result<()> {
    let mut pace = arguments.rate.map(|rate| Pace::new(rate, Instant::now()));
    while !stop() && arguments.shared.count.is_none_or(|count| *sent < count) {
        if let Some(wait) = pace.as_ref().and_then(|pace| pace.wait(Instant::now())) {
            std::thread::sleep(wait.min(CHECK_INTERVAL));
            target.serve_filters();
            continue;
        }
        let mut message = match input.recv_timeout(CHECK_INTERVAL) {
            Ok(message) => message?,
            Err(RecvTimeoutError::Timeout) => {
                target.serve_filters();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if !arguments.binary {
            arguments.shared.kind.meant(&mut message);
        }
        // Servers take no empty message; their lines may have been written on other systems.
        if arguments.shared.server.is_named() && !arguments.binary {
            message.pop_if(|last| *last == b'\r');
            if message.is_empty() {
                continue;
            }
        }
        if !target.send(arguments, &message, stop)? {
            break;
        }
        *sent += 1;
        if let Some(pace) = &mut pace {
            pace.sent(Instant::now());
        }
    }
    Ok(())
}
