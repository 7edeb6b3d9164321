//! `lanecast sub` without a server: the messages of programs, over transports.

use super::INCOMPLETE;
use super::received::Received;
use super::sub_args::SubArgs;
use crate::filter::{Evaluator, parse};
use crate::output::{print_error, warn};
use crate::table::{counted, grouped};
use lanecast::prelude::*;
use lanecast_filter::ternary::Ternary;
use std::process::ExitCode;

/// Events taken at once.
const RUN: u64 = 256;

struct Listener<'a> {
    arguments: &'a SubArgs,
    received: Received<'a>,
    filter: Option<Evaluator>,
    /// Messages that the filter could not read.
    unreadable: u64,
    /// The message that is being printed.
    bytes: Vec<u8>,
    streams: usize,
    has_joined: bool,
    has_lost: bool,
    /// A stream ended otherwise than by its publisher's closing it.
    is_cut_off: bool,
    failed: Option<anyhow::Error>,
}

pub(super) fn run(arguments: &SubArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::stop::flag()?;
    let filter = arguments.filter.as_ref();
    let filter = filter.map(|filter| Evaluator::new(&parse(filter)?, arguments.kind.kind));
    let filter = filter.transpose()?;
    let context = arguments.way.outward()?;
    let mut feed = subscriber(&context, arguments)?;
    let mut listener = Listener {
        arguments,
        received: Received::new(arguments),
        filter,
        unreadable: 0,
        bytes: Vec::new(),
        streams: 0,
        has_joined: false,
        has_lost: false,
        is_cut_off: false,
        failed: None,
    };
    while !stop() && !listener.is_done() {
        let limit = listener.received.left().min(RUN);
        let work = feed.poll(limit as usize, |event| listener.handle(event));
        if work == 0 {
            listener.received.flush()?;
        }
        if let Some(error) = listener.failed.take() {
            return Err(error);
        }
        feed.wait(work);
    }
    let Listener { received, unreadable, has_lost, is_cut_off, .. } = listener;
    received.finish()?;
    if unreadable > 0 {
        let kind = arguments.kind.kind.name();
        warn(&format!("{} could not be read as {kind}", counted(unreadable, "message")));
    }
    let is_incomplete = has_lost || arguments.once && is_cut_off;
    Ok(ExitCode::from(if is_incomplete { INCOMPLETE } else { 0 }))
}

/// A subscriber to the topics named, or to those that match.
fn subscriber(context: &Context, arguments: &SubArgs) -> Result<Subscriber, lanecast::Error> {
    let topics = arguments.topics();
    match topics.split_first() {
        Some((first, others)) if arguments.has_pattern() => {
            let patterns = others.iter().fold(context.pattern(first), |it, other| it.or(other));
            patterns.subscriber()
        }
        _ => context.subscriber_to(&topics),
    }
}

impl Listener<'_> {
    fn is_done(&self) -> bool {
        let all_left = self.arguments.once && self.has_joined && self.streams == 0;
        all_left || self.received.left() == 0
    }

    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Message(message) => {
                let mut bytes = core::mem::take(&mut self.bytes);
                // Printing may take long, and what is overwritten meanwhile is not to be printed.
                if message.copy_into(&mut bytes).is_ok() && self.matches(&bytes) {
                    let topic = message.stream().topic.as_str();
                    if let Err(error) = self.received.print_message(topic, &mut bytes) {
                        self.failed.get_or_insert(error);
                    }
                }
                self.bytes = bytes;
            }
            Event::Joined(stream) => {
                self.streams += 1;
                self.has_joined = true;
                self.note(&format!("joined {stream} (pid {})", stream.pid));
            }
            Event::Left(stream, why) => {
                self.streams -= 1;
                self.is_cut_off |= why != CloseReason::Closed;
                self.note(&format!("left {stream}: {why}"));
            }
            Event::Lost(gap) => {
                self.has_lost = true;
                let (stream, first, why) = (gap.stream, gap.first, gap.why.describe());
                warn(&match gap.count {
                    1 => format!("lost message {first} of {stream}: {why}"),
                    count => {
                        let last = first.saturating_add(count - 1);
                        let count = grouped(count);
                        format!("lost {count} messages of {stream}, {first} to {last}: {why}")
                    }
                });
            }
            _ => {}
        }
    }

    /// Whether the filter lets a message through; there may be none.
    fn matches(&mut self, bytes: &[u8]) -> bool {
        let Some(filter) = &mut self.filter else { return true };
        match filter.truth(bytes) {
            Ok(truth) => truth == Ternary::True,
            Err(_) => {
                self.unreadable += 1;
                false
            }
        }
    }

    fn note(&self, text: &str) {
        if !self.arguments.quiet {
            print_error(text);
        }
    }
}
