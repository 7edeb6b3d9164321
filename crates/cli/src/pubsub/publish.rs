//! `lanecast pub`.

use super::frames::Frames;
use super::input::{self, Input};
use super::pace::Pace;
use super::pub_args::PubArgs;
use super::subscriber_news::CHECK_INTERVAL;
use super::target::Target;
use crate::output::{INCOMPLETE, print_error, warn, wrong_arguments};
use crate::refused_hosts::RefusedHosts;
use crate::table::{counted, rate};
use anyhow::{Error, bail};
use lanecast::ClaimError;
use lanecast_client::ClientError;
use std::io;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

/// Messages between two looks at what is due while there is nothing to send.
const IDLE_INTERVAL: u64 = 1_024;

pub(crate) fn run(arguments: &PubArgs) -> anyhow::Result<ExitCode> {
    if let Some(words) = arguments.misfit() {
        return Ok(wrong_arguments(&words));
    }
    arguments.shared.warn_old_topic();
    let stop = crate::stop::flag()?;
    let mut refused = RefusedHosts::new();
    let mut target = Target::open(arguments, &stop, &mut refused)?;
    let messages = arguments.messages();
    let given = arguments.shared.count.unwrap_or(u64::MAX).min(messages.len() as u64);
    let input = if messages.is_empty() {
        let frames = Frames::new(arguments.binary);
        input::read(arguments.from_file.as_deref(), frames, target.longest())?
    } else {
        input::given(&messages)
    };
    let (start, mut sent) = (Instant::now(), 0);
    let published = publish(arguments, (&mut target, &mut refused), &input, &stop, &mut sent);
    if published.is_err() && sent > 0 {
        warn(&format!("{} sent before the error", counted(sent, "message")));
    }
    published?;
    // Another publisher that goes on is told of with what is not stable.
    let _ = target.idle(arguments, &mut refused);
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
    (target, refused): (&mut Target, &mut RefusedHosts),
    input: &Receiver<Input>,
    stop: &impl Fn() -> bool,
    sent: &mut u64,
) -> anyhow::Result<()> {
    let mut pace = arguments.rate.map(|rate| Pace::new(rate, Instant::now()));
    while !stop() && arguments.shared.count.is_none_or(|count| *sent < count) {
        if let Some(wait) = pace.as_ref().and_then(|pace| pace.wait(Instant::now())) {
            std::thread::sleep(wait.min(CHECK_INTERVAL));
            target.idle(arguments, refused)?;
            continue;
        }
        let mut message = match input.recv_timeout(CHECK_INTERVAL) {
            Ok(message) => message.map_err(|error| numbered(*sent + 1, error.into()))?,
            Err(RecvTimeoutError::Timeout) => {
                target.idle(arguments, refused)?;
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
        let taken = target.send(arguments, &message, stop);
        if !taken.map_err(|error| numbered(*sent + 1, error))? {
            break;
        }
        *sent += 1;
        if sent.is_multiple_of(IDLE_INTERVAL) {
            target.idle(arguments, refused)?;
        }
        if let Some(pace) = &mut pace {
            pace.sent(Instant::now());
        }
    }
    Ok(())
}

/// The error with the number of the message that it is about, from 1 on, if it is about one. A
/// refusal by a server comes later, and names the message that it is about itself.
fn numbered(number: u64, error: Error) -> Error {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    let of_input = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let is_about_it = matches!(of_input, Some(InvalidData | UnexpectedEof))
        || matches!(error.downcast_ref(), Some(ClaimError::TooLong { .. }))
        || matches!(error.downcast_ref(), Some(ClientError::TooLong { .. }));
    if is_about_it { error.context(format!("message {number}")) } else { error }
}
