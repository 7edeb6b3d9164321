//! The thread beside the path of messages: finds publishers, and stands in for owners that are
//! busy elsewhere.

use crate::finder::Finder;
use crate::inbound::Inbound;
use crate::outbound::Outbound;
use crate::presence::{Attention, Descriptor, Presence};
use crate::session::Source;
use crate::tally::Tally;
use crate::watch::Watch;
use lanecast_base::Agent;
use lanecast_base::clock::Clock;
use lanecast_base::sync::Ordering;
use lanecast_os::biased::Visitor;
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos};
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The first rest while owners look after their ends themselves, and the longest.
const REST: Nanos = 100 * MICROSECOND;
const REST_MAX: Nanos = 16 * MILLISECOND;
/// The longest rest while a publisher's commits wait for company, which may not come: as rests
/// begin short and grow, the tail of a stream is not later than the stream took.
const CORKED_REST_MAX: Nanos = 4 * MILLISECOND;
/// Owners that sleep on their own sockets are looked at so often.
const WAITING_REST: Nanos = 100 * MILLISECOND;

/// What ends tell the conductor.
#[derive(Debug)]
pub(crate) enum Notice {
    Publish(PublisherEnd),
    Announce { session: u64, topic: String },
    Retire { session: u64 },
    Subscribe(SubscriberEnd),
    Forget { number: u64 },
}

/// Notices on their way to the conductor.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    notices: Mutex<Vec<Notice>>,
    /// How many publishers are closed, but not yet done with repairs.
    lingering: Mutex<usize>,
    done: Condvar,
}

impl Mailbox {
    pub(crate) fn post(&self, notice: Notice) {
        if matches!(notice, Notice::Retire { .. }) {
            *lock(&self.lingering) += 1;
        }
        lock(&self.notices).push(notice);
    }

    fn take(&self) -> Vec<Notice> {
        std::mem::take(&mut *lock(&self.notices))
    }

    fn settle(&self) {
        *lock(&self.lingering) -= 1;
        self.done.notify_all();
    }

    /// Waits until no closed publisher has anything to repair, at most `limit`.
    pub(crate) fn wait_until_settled(&self, limit: Duration) {
        let lingering = lock(&self.lingering);
        // What the wait says is known to whoever asked: it is over, or time is.
        drop(self.done.wait_timeout_while(lingering, limit, |lingering| *lingering > 0));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A publisher, as the conductor knows it.
#[derive(Debug)]
pub(crate) struct PublisherEnd {
    pub(crate) session: u64,
    pub(crate) source: Source,
    pub(crate) visitor: Visitor<Outbound>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) datagram_bytes: usize,
    pub(crate) seen: u64,
    /// Since when it has been closed, and for how long it may linger.
    pub(crate) retired: Option<Nanos>,
}

/// A subscriber, as the conductor knows it.
#[derive(Debug)]
pub(crate) struct SubscriberEnd {
    pub(crate) number: u64,
    pub(crate) topics: BTreeSet<String>,
    pub(crate) visitor: Visitor<Inbound>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) seen: u64,
    /// Publishers that it has not been told of, because it was busy.
    pub(crate) found: Vec<(Source, String)>,
}

/// The duty cycle.
#[derive(Debug)]
pub(crate) struct Conductor {
    mailbox: Arc<Mailbox>,
    attention: Arc<Attention>,
    finder: Finder,
    publishers: Vec<PublisherEnd>,
    subscribers: Vec<SubscriberEnd>,
    /// Whether it moves all bytes itself, and never leaves that to owners.
    always: bool,
    linger: Nanos,
    clock: Clock,
    watch: Watch,
    rest: Nanos,
    /// Found on the last turn: what to sleep on, and until when.
    descriptors: Vec<(Descriptor, bool)>,
    due: Nanos,
    attended: bool,
}

impl Conductor {
    pub(crate) fn new(
        mailbox: Arc<Mailbox>,
        attention: Arc<Attention>,
        finder: Finder,
        always: bool,
        linger: Nanos,
    ) -> Self {
        Self {
            mailbox,
            attention,
            finder,
            publishers: Vec::new(),
            subscribers: Vec::new(),
            always,
            linger,
            clock: Clock::host(),
            watch: Watch::default(),
            rest: REST,
            descriptors: Vec::new(),
            due: Nanos::MAX,
            attended: false,
        }
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    fn read_mail(&mut self, now: Nanos) -> usize {
        let notices = self.mailbox.take();
        let count = notices.len();
        for notice in notices {
            match notice {
                Notice::Publish(end) => self.publishers.push(end),
                Notice::Announce { session, topic } => {
                    if let Some(end) = self.publishers.iter().find(|end| end.session == session) {
                        self.finder.publish(&end.source, end.datagram_bytes, &topic);
                    }
                }
                Notice::Retire { session } => {
                    self.finder.unpublish(session);
                    if let Some(end) = self.publishers.iter_mut().find(|e| e.session == session) {
                        end.retired = Some(now);
                    }
                }
                Notice::Subscribe(end) => {
                    end.topics.iter().for_each(|topic| self.finder.want(topic));
                    self.subscribers.push(end);
                }
                Notice::Forget { number } => self.forget(number),
            }
        }
        count
    }

    fn forget(&mut self, number: u64) {
        let Some(at) = self.subscribers.iter().position(|end| end.number == number) else { return };
        let end = self.subscribers.swap_remove(at);
        end.topics.iter().for_each(|topic| self.finder.unwant(topic));
    }

    fn tell_what_was_found(&mut self, now: Nanos) {
        while let Some((source, topic)) = self.finder.next_found() {
            for end in &mut self.subscribers {
                if end.topics.contains(&topic) {
                    end.found.push((source, topic.clone()));
                }
            }
        }
        for end in self.subscribers.iter_mut().filter(|end| !end.found.is_empty()) {
            let Some(mut inbound) = end.visitor.try_enter() else { continue };
            for (source, topic) in end.found.drain(..) {
                // Without a socket now: the next advertisement finds it again.
                if let Err(error) = inbound.found(&source, &topic, now) {
                    inbound.note_error(&format!("cannot join {topic:?} of {source}: {error}"));
                    self.finder.lost(now, source.session);
                }
            }
            drop(inbound);
            end.presence.tell();
        }
    }

    fn visit_publishers(&mut self, now: Nanos) {
        let (always, linger) = (self.always, self.linger);
        let mailbox = Arc::clone(&self.mailbox);
        let (descriptors, due, attended) =
            (&mut self.descriptors, &mut self.due, &mut self.attended);
        self.publishers.retain_mut(|end| {
            let entries = end.visitor.entries();
            if !always && end.retired.is_none() && entries != end.seen {
                end.seen = entries;
                *attended = true;
                return true;
            }
            let Some(mut outbound) = end.visitor.try_enter() else {
                *attended = true;
                return true;
            };
            *due = (*due).min(outbound.stand_in());
            outbound.descriptors(descriptors);
            let Some(since) = end.retired else { return true };
            let over = outbound.is_settled() || now.wrapping_sub(since) > linger;
            if over {
                mailbox.settle();
            }
            !over
        });
    }

    /// How long to rest while owners look after their ends themselves.
    fn next_rest(&self) -> Nanos {
        let is_corked =
            |end: &PublisherEnd| end.tally.corked.load(Ordering::Relaxed) && end.retired.is_none();
        let longer = self.rest * 2;
        if !self.publishers.iter().any(is_corked) {
            longer.min(REST_MAX)
        } else if self.rest > CORKED_REST_MAX {
            REST
        } else {
            longer.min(CORKED_REST_MAX)
        }
    }

    fn visit_subscribers(&mut self, now: Nanos) {
        for end in &mut self.subscribers {
            for session in end.presence.take_lost() {
                self.finder.lost(now, session);
            }
            let entries = end.visitor.entries();
            let absent =
                end.presence.is_aside() || entries == end.seen && !end.presence.is_waiting();
            end.seen = entries;
            if end.presence.is_waiting() {
                self.due = self.due.min(now + WAITING_REST);
                continue;
            }
            if !self.always && !absent {
                self.attended = true;
                continue;
            }
            let Some(mut inbound) = end.visitor.try_enter() else {
                self.attended = true;
                continue;
            };
            let (due, laid_ready) = inbound.stand_in(now);
            inbound.descriptors(&mut self.descriptors);
            drop(inbound);
            self.due = self.due.min(due.unwrap_or(Nanos::MAX));
            if laid_ready {
                end.presence.tell();
            }
        }
    }
}

impl Agent for Conductor {
    fn do_work(&mut self) -> usize {
        let now = self.now();
        self.descriptors.clear();
        (self.due, self.attended) = (Nanos::MAX, false);
        let mail = self.read_mail(now);
        let found = self.finder.turn(now);
        self.tell_what_was_found(now);
        self.visit_publishers(now);
        self.visit_subscribers(now);
        self.due = self.due.min(self.finder.next_deadline(now));
        self.finder.descriptors(&mut self.descriptors);
        mail + found
    }

    fn idle(&mut self) {
        let now = self.now();
        let unsettled = self.subscribers.iter().any(|end| !end.found.is_empty());
        let limit = if self.attended || unsettled {
            self.rest = self.next_rest();
            self.rest
        } else {
            self.rest = REST;
            self.attention.fall_asleep();
            let entered = self.publishers.iter().any(|end| end.visitor.entries() != end.seen);
            if entered { REST } else { Nanos::MAX }
        };
        let limit = limit.min(self.due.saturating_sub(now));
        let limit = (limit != Nanos::MAX).then(|| Duration::from_nanos(limit));
        self.watch.sleep_beside(&self.attention.bells(), &self.descriptors, limit);
        self.attention.wake_up();
    }

    fn name(&self) -> &'static str {
        "lanecast-net"
    }
}
