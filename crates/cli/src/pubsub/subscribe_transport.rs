//! `lanecast sub` without a server: the messages of programs, over transports.

use super::received::Received;
use super::sub_args::SubArgs;
use super::subscriber_news::CHECK_INTERVAL;
use crate::content::Origin;
use crate::output::{INCOMPLETE, print_error, warn};
use crate::refused_hosts::RefusedHosts;
use crate::table::{counted, grouped};
use lanecast::failover::{Failover, FailoverSettings};
use lanecast::net::{DeliveryOrder, DeliverySettings};
use lanecast::prelude::*;
use lanecast::{FilteredSubscriber, MatchingTopics};
use std::process::ExitCode;

/// Events taken at once.
const RUN: u64 = 256;

struct Listener<'a> {
    arguments: &'a SubArgs,
    received: Received<'a>,
    /// The message that is being printed.
    bytes: Vec<u8>,
    refused: RefusedHosts,
    streams: usize,
    has_joined: bool,
    /// Messages are missing, or may be.
    has_lost: bool,
    /// A stream ended otherwise than by its publisher's closing it.
    is_cut_off: bool,
    failed: Option<anyhow::Error>,
}

pub(super) fn run(arguments: &SubArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::stop::flag()?;
    let context = arguments.delivery.apply(arguments.shared.way.outward()?);
    let mut listener = Listener {
        arguments,
        received: Received::new(arguments),
        bytes: Vec::new(),
        refused: RefusedHosts::new(),
        streams: 0,
        has_joined: false,
        has_lost: false,
        is_cut_off: false,
        failed: None,
    };
    match &arguments.filter {
        Some(filter) => listen_filtered(&mut listener, &context, filter, &stop)?,
        None if arguments.failover => listen_to_copies(&mut listener, &context, &stop)?,
        None => listen(&mut listener, &context, &stop)?,
    }
    let Listener { received, has_lost, is_cut_off, .. } = listener;
    received.finish()?;
    let is_incomplete = has_lost || arguments.once && is_cut_off;
    Ok(ExitCode::from(if is_incomplete { INCOMPLETE } else { 0 }))
}

/// The topics' patterns, if they have any.
fn patterns<'a>(context: &'a Context, arguments: &SubArgs) -> Option<MatchingTopics<'a>> {
    let topics = arguments.topics();
    let (first, others) = topics.split_first().filter(|_| arguments.has_pattern())?;
    Some(others.iter().fold(context.pattern(first), |it, other| it.or(other)))
}

/// A subscriber to the topics named, or to those that match.
fn subscriber(context: &Context, arguments: &SubArgs) -> Result<Subscriber, lanecast::Error> {
    match patterns(context, arguments) {
        Some(patterns) => patterns.subscriber(),
        None => context.subscriber_to(&arguments.topics()),
    }
}

/// Receives every message.
fn listen(
    listener: &mut Listener<'_>,
    context: &Context,
    stop: &impl Fn() -> bool,
) -> anyhow::Result<()> {
    let mut feed = subscriber(context, listener.arguments)?;
    while !stop() && !listener.is_done() {
        let work = listener.poll(&mut feed)?;
        if work == 0 {
            listener.refused.tell(context);
            listener.received.show()?;
        }
        feed.wait(work);
    }
    Ok(())
}

/// Receives the first copy of each message.
fn listen_to_copies(
    listener: &mut Listener<'_>,
    context: &Context,
    stop: &impl Fn() -> bool,
) -> anyhow::Result<()> {
    let order = DeliveryOrder::Publication;
    let context =
        &context.with_delivery(DeliverySettings { order, ..context.config().net.delivery });
    let subscriber = subscriber(context, listener.arguments)?;
    let mut feed = Failover::new(subscriber, FailoverSettings::default(), |it| it.number());
    while !stop() && !listener.is_done() {
        let limit = listener.received.left().min(RUN);
        let work = feed.poll(limit as usize, |event| listener.handle(event));
        if let Some(error) = listener.failed.take() {
            return Err(error);
        }
        if work == 0 {
            listener.refused.tell(context);
            listener.received.show()?;
        }
        feed.wait();
    }
    let counters = feed.counters();
    listener.note(&format!("{} dropped", counted(counters.duplicates, "duplicate")));
    Ok(())
}

/// Receives matching messages: publishers that serve filters send no others.
fn listen_filtered(
    listener: &mut Listener<'_>,
    context: &Context,
    filter: &str,
    stop: &impl Fn() -> bool,
) -> anyhow::Result<()> {
    let kind = listener.arguments.shared.kind.kind;
    let mut feeds = match patterns(context, listener.arguments) {
        Some(patterns) => vec![patterns.message_type(kind).filter(filter).subscriber()?],
        None => {
            let open = |name| context.topic(name).message_type(kind).filter(filter).subscriber();
            listener.arguments.topics().into_iter().map(open).collect::<Result<Vec<_>, _>>()?
        }
    };
    let mut set = WaitSet::new()?;
    for feed in &mut feeds {
        set.add(0, feed.wakeup()?)?;
    }
    while !stop() && !listener.is_done() {
        let mut work = 0;
        for feed in &mut feeds {
            work += listener.poll(feed)?;
        }
        if work == 0 {
            listener.refused.tell(context);
            listener.received.show()?;
            // At most so long: polls repeat requests that found no publisher listening.
            set.wait(Some(CHECK_INTERVAL))?;
        }
    }
    let unreadable: u64 = feeds.iter().map(FilteredSubscriber::malformed_messages).sum();
    if unreadable > 0 {
        let (messages, kind) = (counted(unreadable, "message"), kind.name());
        warn(&format!("{messages} could not be read as {kind}"));
    }
    Ok(())
}

impl Listener<'_> {
    /// Passes on events of `feed`, no more messages than are asked for.
    fn poll(&mut self, feed: &mut impl Subscribe) -> anyhow::Result<usize> {
        let limit = self.received.left().min(RUN);
        let work = feed.poll(limit as usize, |event| self.handle(event));
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(work),
        }
    }

    fn is_done(&self) -> bool {
        let all_left = self.arguments.once && self.has_joined && self.streams == 0;
        all_left || self.received.left() == 0
    }

    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Message(message) => {
                let mut bytes = core::mem::take(&mut self.bytes);
                // Printing may take long, and what is overwritten meanwhile is not to be printed.
                if message.copy_into(&mut bytes).is_ok() {
                    let (stream, number) = (message.stream(), message.number());
                    let source = || stream.source.clone();
                    let origin = || Origin { source: source(), number, is_recovered: None };
                    let received = &mut self.received;
                    if let Err(error) = received.print_message(&stream.topic, &mut bytes, origin) {
                        self.failed.get_or_insert(error);
                    }
                }
                self.bytes = bytes;
            }
            Event::Joined(stream) => {
                self.streams += 1;
                self.has_joined = true;
                // A stream that several publishers send has none.
                let pid = (stream.pid != 0).then(|| format!(" (pid {})", stream.pid));
                self.note(&format!("joined {stream}{}", pid.unwrap_or_default()));
            }
            Event::Left(stream, why) => {
                self.streams -= 1;
                self.is_cut_off |= why != CloseReason::Closed;
                self.note(&format!("left {stream}: {why}"));
            }
            Event::Lost(gap) => {
                self.has_lost = true;
                let (stream, first, why) = (gap.stream, gap.first, gap.why.describe());
                let last = first.saturating_add(gap.count - 1);
                warn(&match gap.count {
                    // With a filter the gap is a range of numbers, few of which may match.
                    _ if self.arguments.filter.is_some() => {
                        format!("lost what matches of {stream}, {first} to {last}: {why}")
                    }
                    1 => format!("lost message {first} of {stream}: {why}"),
                    count => {
                        let count = grouped(count);
                        format!("lost {count} messages of {stream}, {first} to {last}: {why}")
                    }
                });
            }
            Event::FilterActive(stream) => self.note(&format!("filtered {stream}")),
            Event::FilterRefused(stream, reason) => {
                self.has_lost = true;
                warn(&format!("{stream} refused the filter: {reason}"));
            }
            Event::FilterInactive(stream) => {
                self.has_lost = true;
                warn(&format!("{stream} has lost the filter, which is sent again"));
            }
            _ => {}
        }
    }

    fn note(&self, text: &str) {
        if !self.arguments.shared.quiet {
            print_error(text);
        }
    }
}
