//! `lanecast sub --durable`: live messages of a topic, and from stores those that were missed.

use super::received::Received;
use super::store_news::{StoreNews, silent_words};
use super::sub_args::SubArgs;
use super::subscriber_news::CHECK_INTERVAL;
use crate::content::Origin;
use crate::output::{INCOMPLETE, warn};
use crate::refused_hosts::RefusedHosts;
use crate::table::counted;
use lanecast::DurableSubscriber;
use lanecast::persistence::ReceiverEvent;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// Events taken at once.
const RUN: u64 = 256;
/// Longest wait at the end until stores know what was printed.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(5);

/// Prints messages, and says which may be acknowledged.
struct Listener<'a> {
    topic: &'a str,
    received: Received<'a>,
    news: StoreNews,
    /// Sequence after the last message of each source that was printed, or told as lost, since the
    /// last acknowledgement.
    printed: BTreeMap<u64, u64>,
    /// Sequence of the first message of each source that came at the end and was not printed.
    unprinted: BTreeMap<u64, u64>,
    /// Messages are missing, or were no part of the stream.
    has_lost: bool,
    body: Vec<u8>,
}

pub(super) fn run(arguments: &SubArgs, session: u64) -> anyhow::Result<ExitCode> {
    let stop = crate::stop::flag()?;
    let context = arguments.shared.way.outward()?;
    let topic = arguments.topics().first().copied().unwrap_or_default();
    let mut feed = arguments.durable.subscriber(&context, topic, session)?;
    let mut listener = Listener::new(arguments, topic);
    let mut refused = RefusedHosts::new();
    let mut is_registered = false;
    while !stop() && listener.received.left() > 0 {
        let work = listener.take(&mut feed)?;
        if !is_registered && feed.is_registered() {
            is_registered = true;
            listener.news.go_on();
            listener.note("stores have accepted the subscriber");
        }
        if work == 0 {
            if arguments.durable.has_end() && feed.has_ended() {
                break;
            }
            listener.news.tell_wait();
            refused.tell(&context);
            listener.received.show()?;
        }
        feed.wait_at_most(work, CHECK_INTERVAL);
    }
    let is_known = feed.wait_acknowledged(ACKNOWLEDGEMENT, |event| listener.handle_at_end(event));
    if !is_known {
        let no_answer = listener.news.no_answer();
        warn(&format!(
            "not enough stores know what was printed{no_answer}: the last messages may come again"
        ));
    }
    listener.received.finish()?;
    Ok(ExitCode::from(if listener.has_lost || !is_known { INCOMPLETE } else { 0 }))
}

impl<'a> Listener<'a> {
    fn new(arguments: &'a SubArgs, topic: &'a str) -> Self {
        Self {
            topic,
            received: Received::new(arguments),
            news: StoreNews::new(arguments.shared.quiet),
            printed: BTreeMap::new(),
            unprinted: BTreeMap::new(),
            has_lost: false,
            body: Vec::new(),
        }
    }

    /// Prints a run of events, no more messages than are asked for, and acknowledges them when the
    /// reader of the output has them; returns the number of events.
    fn take(&mut self, feed: &mut DurableSubscriber) -> anyhow::Result<usize> {
        let limit = self.received.left().min(RUN);
        let mut count = 0;
        for event in &feed.take(limit as usize) {
            count += 1;
            self.handle(event)?;
        }
        if !self.printed.is_empty() {
            self.received.flush()?;
            for (source, next) in std::mem::take(&mut self.printed) {
                if let Some(last) = next.checked_sub(1) {
                    feed.acknowledge(source, last);
                }
            }
        }
        Ok(count)
    }

    fn handle(&mut self, event: ReceiverEvent<'_>) -> anyhow::Result<()> {
        match event {
            ReceiverEvent::Message(message) => {
                let (source, number) = (message.source(), message.sequence());
                let is_recovered = Some(message.is_recovered());
                let origin = || Origin { source: stream(source), number, is_recovered };
                self.printed.insert(source, number.saturating_add(1));
                self.print(message.bytes(), origin)?;
            }
            ReceiverEvent::Unkept { session, number, bytes } => {
                let source = unkept(session);
                self.print(bytes, || Origin { source, number, is_recovered: None })?;
            }
            ReceiverEvent::Joined { source, next, is_resumed } => {
                self.news.go_on();
                let (verb, stream) =
                    (if is_resumed { "goes on" } else { "begins" }, stream(source));
                self.note(&format!("{} from {stream} {verb} at message {next}", self.topic));
            }
            ReceiverEvent::Left { source, next } => {
                self.news.go_on();
                let stream = stream(source);
                self.note(&format!("left {} from {stream} at message {next}", self.topic));
            }
            ReceiverEvent::Lost { source, first, count, why } => {
                self.lost(&stream(source), first, count, why.describe());
                // Told once: the next run goes on behind them.
                self.printed.insert(source, first.saturating_add(count));
            }
            ReceiverEvent::UnkeptLost { session, first, count } => {
                self.lost(&unkept(session), first, count, "no store keeps them");
            }
            ReceiverEvent::Discarded { source, first, count } => {
                // What comes next takes their place.
                self.printed.entry(source).and_modify(|next| *next = first.min(*next));
                self.discarded(source, first, count);
            }
            other => self.handle_store(other),
        }
        Ok(())
    }

    /// Handles an event that comes when no more messages are to be printed. They are not
    /// acknowledged: the next run prints them, and tells of those that are lost among them.
    fn handle_at_end(&mut self, event: ReceiverEvent<'_>) {
        match event {
            ReceiverEvent::Message(message) => {
                self.unprinted.entry(message.source()).or_insert(message.sequence());
            }
            ReceiverEvent::Lost { source, first, .. } => {
                self.unprinted.entry(source).or_insert(first);
            }
            ReceiverEvent::Discarded { source, first, count } => {
                let end = first.saturating_add(count);
                // Those that follow in their place are not printed either.
                let unprinted = self.unprinted.insert(source, first).unwrap_or(end);
                if first < unprinted {
                    self.discarded(source, first, unprinted.min(end) - first);
                } else {
                    self.unprinted.insert(source, unprinted);
                }
            }
            ReceiverEvent::Joined { .. } | ReceiverEvent::Left { .. } => {}
            ReceiverEvent::Unkept { .. } | ReceiverEvent::UnkeptLost { .. } => {}
            other => self.handle_store(other),
        }
    }

    fn handle_store(&mut self, event: ReceiverEvent<'_>) {
        match event {
            ReceiverEvent::Waiting { silent } => {
                let words = silent_words(&silent);
                self.news.wait(silent, words);
            }
            ReceiverEvent::StoreLost { store } => self.news.lost(store),
            ReceiverEvent::StoreBack { store } => self.news.back(&store),
            ReceiverEvent::Refused { source, store, refusal } => {
                StoreNews::not_registered(&store, &stream(source), refusal);
            }
            ReceiverEvent::Unsettled { source, store } => {
                StoreNews::unsettled(&store, &stream(source));
            }
            ReceiverEvent::TooManyStreams { count, most } => {
                StoreNews::too_many_streams(count, most);
            }
            ReceiverEvent::OtherVersion { store, version } => {
                StoreNews::other_version(&store, version);
            }
            _ => {}
        }
    }

    fn discarded(&mut self, source: u64, first: u64, count: u64) {
        self.has_lost = true;
        let (topic, stream) = (self.topic, stream(source));
        let messages = counted(count, "message");
        warn(&format!(
            "{messages} of {topic} from {stream}, from {first} on, were printed, and are void: \
             their publisher died before they were stable"
        ));
    }

    fn print(&mut self, bytes: &[u8], origin: impl FnOnce() -> Origin) -> anyhow::Result<()> {
        self.body.clear();
        self.body.extend_from_slice(bytes);
        self.received.print_message(self.topic, &mut self.body, origin)
    }

    fn lost(&mut self, stream: &str, first: u64, count: u64, why: &str) {
        self.has_lost = true;
        let (topic, last) = (self.topic, first.saturating_add(count.saturating_sub(1)));
        let messages = counted(count, "message");
        warn(&format!("lost {messages} of {topic} from {stream}, {first} to {last}: {why}"));
    }

    fn note(&self, text: &str) {
        self.news.note(text);
    }
}

/// Name of a publisher whose messages stores keep, as `lanecast perf` has it.
fn stream(source: u64) -> String {
    format!("persistent:{source}")
}

/// Name of a publisher whose messages no store keeps.
fn unkept(session: u64) -> String {
    format!("session:{session:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use lanecast::persistence::{DurableLoss, PersistentMessage};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: SubArgs,
    }

    const LINE: [&str; 5] = ["sub", "orders", "--durable", "9", "--quiet"];

    #[test]
    fn lost_and_void_messages_count_and_void_ones_are_not_acknowledged() {
        let Line { arguments } = Line::parse_from(LINE);
        let listener = || Listener {
            printed: BTreeMap::from([(7, 5)]),
            ..Listener::new(&arguments, "orders")
        };
        let (source, first, count, why) = (7, 5, 2, DurableLoss::Expired);
        let mut lost = listener();
        lost.handle(ReceiverEvent::Lost { source, first, count, why }).unwrap();
        // A loss that is told is done with, or each run would tell it again.
        assert!(lost.has_lost && lost.printed[&7] == 7);
        let mut unkept = listener();
        unkept.handle(ReceiverEvent::UnkeptLost { session: 1, first, count }).unwrap();
        assert!(unkept.has_lost);
        let mut void = listener();
        void.handle(ReceiverEvent::Discarded { source, first: 3, count }).unwrap();
        assert!(void.has_lost && void.printed[&7] == 3);
        let next = PersistentMessage::new(7, 3, b"another", false);
        void.handle(ReceiverEvent::Message(next)).unwrap();
        assert_eq!((void.printed[&7], void.received.left()), (4, u64::MAX));
    }

    #[test]
    fn at_the_end_void_messages_count_if_they_were_printed() {
        let Line { arguments } = Line::parse_from(LINE);
        let listener = || Listener::new(&arguments, "orders");
        let message = |number| PersistentMessage::new(7, number, b"late", false);
        let void = |first, count| ReceiverEvent::Discarded { source: 7, first, count };

        let mut printed = listener();
        printed.handle_at_end(void(3, 2));
        assert!(printed.has_lost);
        // Its successors are not printed, and can be void as well.
        printed.has_lost = false;
        printed.handle_at_end(ReceiverEvent::Message(message(3)));
        printed.handle_at_end(void(3, 1));
        assert!(!printed.has_lost && printed.unprinted[&7] == 3);

        let mut late = listener();
        late.handle_at_end(ReceiverEvent::Message(message(5)));
        late.handle_at_end(void(6, 2));
        assert!(!late.has_lost && late.unprinted[&7] == 5);
        late.handle_at_end(void(4, 2));
        assert!(late.has_lost && late.unprinted[&7] == 4);
        assert!(late.printed.is_empty(), "what was not printed is not acknowledged");
    }
}
