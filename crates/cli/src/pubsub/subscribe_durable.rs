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
    /// Sequence after the last message of each source that was printed since the last
    /// acknowledgement.
    printed: BTreeMap<u64, u64>,
    /// Messages are missing, or were no part of the stream.
    has_lost: bool,
    body: Vec<u8>,
}

pub(super) fn run(arguments: &SubArgs, session: u64) -> anyhow::Result<ExitCode> {
    let stop = crate::stop::flag()?;
    let context = arguments.shared.way.outward()?;
    let topic = arguments.topics().first().copied().unwrap_or_default();
    let mut feed = arguments.durable.subscriber(&context, topic, session)?;
    let mut listener = Listener {
        topic,
        received: Received::new(arguments),
        news: StoreNews::new(arguments.shared.quiet),
        printed: BTreeMap::new(),
        has_lost: false,
        body: Vec::new(),
    };
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
    let is_known = arguments.durable.is_replay() || feed.wait_acknowledged(ACKNOWLEDGEMENT, |_| {});
    if !is_known {
        let no_answer = listener.news.no_answer();
        warn(&format!(
            "not enough stores know what was printed{no_answer}: the last messages may come again"
        ));
    }
    listener.received.finish()?;
    Ok(ExitCode::from(if listener.has_lost || !is_known { INCOMPLETE } else { 0 }))
}

impl Listener<'_> {
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
            }
            ReceiverEvent::UnkeptLost { session, first, count } => {
                self.lost(&unkept(session), first, count, "no store keeps them");
            }
            ReceiverEvent::Discarded { source, first, count } => {
                self.has_lost = true;
                // What comes next takes their place.
                self.printed.entry(source).and_modify(|next| *next = first.min(*next));
                let (topic, stream) = (self.topic, stream(source));
                let messages = counted(count, "message");
                warn(&format!(
                    "{messages} of {topic} from {stream}, from {first} on, were printed, and are \
                     void: their publisher died before they were stable"
                ));
            }
            ReceiverEvent::Waiting { silent } => {
                let words = silent_words(&silent);
                self.news.wait(silent, words);
            }
            ReceiverEvent::StoreLost { store } => self.news.lost(store),
            ReceiverEvent::StoreBack { store } => self.news.back(&store),
            ReceiverEvent::OtherVersion { store, version } => {
                StoreNews::other_version(&store, version);
            }
            _ => {}
        }
        Ok(())
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

    #[test]
    fn lost_and_void_messages_count_and_void_ones_are_not_acknowledged() {
        let Line { arguments } = Line::parse_from(["sub", "orders", "--durable", "9", "--quiet"]);
        let listener = || Listener {
            topic: "orders",
            received: Received::new(&arguments),
            news: StoreNews::new(true),
            printed: BTreeMap::from([(7, 5)]),
            has_lost: false,
            body: Vec::new(),
        };
        let (source, first, count, why) = (7, 5, 2, DurableLoss::Expired);
        let mut lost = listener();
        lost.handle(ReceiverEvent::Lost { source, first, count, why }).unwrap();
        assert!(lost.has_lost && lost.printed[&7] == 5);
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
}
