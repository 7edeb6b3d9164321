//! A publisher of `lanecast pub` whose messages stores keep (`--persistent`).

use super::frames::Longest;
use super::pub_args::PubArgs;
use super::store_news::{StoreNews, silent_words};
use super::subscriber_news::{CHECK_INTERVAL, report, tell_subscribers};
use crate::output::warn;
use crate::refused_hosts::RefusedHosts;
use crate::table::counted;
use anyhow::bail;
use lanecast::persistence::{PersistentSendError, SendRefusal, SourceEvent};
use lanecast::{Context, PersistentPublisher};
use std::time::{Duration, Instant};

/// Time for which a message finds no room before the user is told.
const ROOM_GRACE: Duration = Duration::from_secs(2);

/// The publisher, and what its user was told.
pub(super) struct PersistentTarget {
    publisher: PersistentPublisher,
    context: Box<Context>,
    news: StoreNews,
    is_superseded: bool,
}

impl PersistentTarget {
    /// Joins the topic, and waits until enough stores have accepted the publisher, and for the
    /// subscribers that are asked for.
    pub(super) fn open(
        arguments: &PubArgs,
        source: u64,
        context: Box<Context>,
        stop: &impl Fn() -> bool,
        refused: &mut RefusedHosts,
    ) -> anyhow::Result<Self> {
        let publisher = arguments.persistent.publisher(&context, arguments.topic(), source)?;
        let news = StoreNews::new(arguments.shared.quiet);
        let mut target = Self { publisher, context, news, is_superseded: false };
        while !target.publisher.is_registered() {
            if stop() {
                bail!("stopped before enough stores had accepted the publisher");
            }
            target.check()?;
            target.wait(refused);
        }
        let wanted = arguments.wait_subscribers.unwrap_or(0);
        while target.publisher.subscribers() < wanted && !stop() {
            target.check()?;
            target.wait(refused);
        }
        Ok(target)
    }

    /// An error if another publisher goes on with the stream.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.is_superseded {
            return Err(SendRefusal::Superseded.into());
        }
        Ok(())
    }

    /// Reads what the stores answer, or waits for it.
    fn wait(&mut self, refused: &mut RefusedHosts) {
        let work = self.idle(refused);
        self.publisher.wait_at_most(work, CHECK_INTERVAL);
    }

    /// Reads what the stores answer, and tells the user of it; returns the amount of work.
    pub(super) fn idle(&mut self, refused: &mut RefusedHosts) -> usize {
        let work = self.poll();
        self.news.tell_wait();
        tell_subscribers(self.publisher.publisher(), self.news.is_quiet());
        refused.tell(&self.context);
        work
    }

    fn poll(&mut self) -> usize {
        let Self { publisher, news, is_superseded, .. } = self;
        publisher.poll(|event| match event {
            SourceEvent::Registered { next } => {
                news.go_on();
                news.note(&format!("stores have accepted the publisher, at message {next}"));
            }
            SourceEvent::Waiting { silent, wiped, unlisted, .. } => {
                let words = waiting_words(&silent, &wiped, &unlisted);
                news.wait(silent, words);
            }
            SourceEvent::StoreLost { store } => news.lost(store),
            SourceEvent::StoreBack { store } => news.back(&store),
            SourceEvent::OtherVersion { store, version } => {
                StoreNews::other_version(&store, version);
            }
            SourceEvent::Refused { store, refusal } => StoreNews::refused(&store, refusal),
            SourceEvent::Reclaimed { first, is_forced: true } => warn(&format!(
                "a registered subscriber has lost messages before {first}, which no store keeps \
                 any more"
            )),
            SourceEvent::Superseded { .. } => *is_superseded = true,
            _ => {}
        })
    }

    pub(super) fn longest(&self) -> Longest {
        let remedy = "configure a larger shm.window or persistence.flight";
        Longest { bytes: self.publisher.longest_message(), remedy }
    }

    /// Sends, waiting for room in flight, unless told to stop first; returns whether it was sent.
    pub(super) fn send(
        &mut self,
        message: &[u8],
        stop: &impl Fn() -> bool,
    ) -> anyhow::Result<bool> {
        let (mut since, mut is_told) = (None, false);
        loop {
            let error = match self.publisher.try_send(message) {
                Ok(_) => {
                    // A steady input leaves no time in which nothing is to be sent.
                    self.poll();
                    return Ok(true);
                }
                Err(error) => error,
            };
            match error {
                _ if error.may_pass() && stop() => return Ok(false),
                _ if error.may_pass() => {}
                PersistentSendError::Transport(error) => return Err(error.into()),
                other => return Err(other.into()),
            }
            let since = *since.get_or_insert_with(Instant::now);
            if !is_told && since.elapsed() >= ROOM_GRACE {
                is_told = true;
                warn(&self.stall_words(error));
            }
            let is_transport = matches!(error, PersistentSendError::Transport(_));
            let limit = if is_transport { self.publisher.room_wait() } else { CHECK_INTERVAL };
            let work = self.poll();
            self.publisher.wait_at_most(work, limit);
        }
    }

    /// Words about a message that finds no room.
    fn stall_words(&self, error: PersistentSendError) -> String {
        let messages = counted(self.publisher.in_flight(), "message");
        let no_answer = self.news.no_answer();
        match error {
            PersistentSendError::Refused(SendRefusal::NotConsumed) => {
                let first = self.publisher.consumed();
                format!(
                    "waiting for registered subscribers, which have not consumed message {first} \
                     and later ones: start them, or end their registrations by lanecast store \
                     deregister"
                )
            }
            PersistentSendError::Transport(_) => {
                format!("waiting for a subscriber or a store that does not read{no_answer}")
            }
            _ => format!("waiting for {messages} to become stable{no_answer}"),
        }
    }

    pub(super) fn subscribers(&self) -> usize {
        self.publisher.subscribers()
    }

    /// Waits until every message is stable, and was read by the subscribers; returns whether all
    /// are stable.
    pub(super) fn finish(mut self, linger: Duration) -> bool {
        let until = Instant::now() + linger;
        let left = || until.saturating_duration_since(Instant::now());
        let is_unstable = |publisher: &PersistentPublisher| publisher.stable() < publisher.next();
        while !self.is_superseded && is_unstable(&self.publisher) && !left().is_zero() {
            let work = self.poll();
            self.publisher.wait_at_most(work, left().min(CHECK_INTERVAL));
        }
        let is_stable = !is_unstable(&self.publisher);
        if !is_stable {
            let first = self.publisher.stable();
            let messages = counted(self.publisher.next() - first, "message");
            let why = if self.is_superseded {
                format!(": {}", SendRefusal::Superseded)
            } else {
                self.news.no_answer()
            };
            warn(&format!("{messages} from {first} on may be kept or not{why}"));
        }
        // Subscribers that have not read everything, stores among them that have died, get it from
        // the stores.
        report(&self.publisher.close(left()), linger);
        is_stable
    }
}

/// Words about stores that have not accepted a publisher.
fn waiting_words(silent: &[String], wiped: &[String], unlisted: &[String]) -> String {
    let mut words = Vec::new();
    if !silent.is_empty() {
        words.push(silent_words(silent));
    }
    if !wiped.is_empty() {
        let wiped = wiped.join(", ");
        words.push(format!("waiting for stores, as {wiped} lost the messages of earlier runs"));
    }
    if !unlisted.is_empty() {
        let unlisted = unlisted.join(", ");
        words.push(format!("{unlisted} hold earlier messages: add them to --stores"));
    }
    words.join("; ")
}
