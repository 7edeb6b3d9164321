//! The conductor's part in receiving: finds publishers, and stands in for the owners of
//! subscribers.

use crate::conductor::{Findings, Part};
use crate::desk::Mailbox;
use crate::finder::Finder;
use crate::inbound::{Admission, Inbound};
use crate::presence::Presence;
use crate::publishers::enter;
use crate::session::Source;
use lanecast_os::biased::Visitor;
use lanecast_protocol::{MILLISECOND, Nanos};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Owners that sleep on their own sockets are looked at so often.
const WAITING_REST: Nanos = 100 * MILLISECOND;

/// The most that wait until a subscriber has a place for another session, and so many are tried in
/// one turn. Further topics of sessions that are joined wait for nothing.
const LATER_MAX: usize = 4_096;
const LATER_AT_ONCE: usize = 128;

/// What is to be told, and wanted.
#[derive(Debug)]
pub(crate) enum Notice {
    Announce { source: Source, datagram_bytes: usize, topic: String },
    Withdraw { session: u64 },
    Subscribe(SubscriberEnd),
    Forget { number: u64 },
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

/// Subscribers whose owners only read are looked at so often.
const OWNERS_REST: Nanos = 1_000_000;

/// All subscribers of a context, and who finds publishers for them.
#[derive(Debug)]
pub(crate) struct Subscribers {
    mailbox: Arc<Mailbox<Notice>>,
    finder: Finder,
    ends: Vec<SubscriberEnd>,
    /// Whether owners never look at their sockets.
    always: bool,
}

impl Subscribers {
    pub(crate) const fn new(mailbox: Arc<Mailbox<Notice>>, finder: Finder, always: bool) -> Self {
        Self { mailbox, finder, ends: Vec::new(), always }
    }

    fn read_mail(&mut self) -> usize {
        let notices = self.mailbox.take();
        let count = notices.len();
        for notice in notices {
            match notice {
                Notice::Announce { source, datagram_bytes, topic } => {
                    self.finder.publish(&source, datagram_bytes, &topic);
                }
                Notice::Withdraw { session } => self.finder.unpublish(session),
                Notice::Subscribe(end) => {
                    end.topics.iter().for_each(|topic| self.finder.want(topic));
                    self.ends.push(end);
                }
                Notice::Forget { number } => self.forget(number),
            }
        }
        count
    }

    fn forget(&mut self, number: u64) {
        let Some(at) = self.ends.iter().position(|end| end.number == number) else { return };
        let end = self.ends.swap_remove(at);
        end.topics.iter().for_each(|topic| self.finder.unwant(topic));
    }

    fn tell_what_was_found(&mut self, now: Nanos) {
        while let Some((source, topic)) = self.finder.next_found() {
            for end in &mut self.ends {
                if end.topics.contains(&topic) {
                    end.found.push((source, topic.clone()));
                }
            }
        }
        for end in self.ends.iter_mut().filter(|end| !end.found.is_empty()) {
            let Some(mut inbound) = end.visitor.try_enter() else { continue };
            let (mut later, mut tried) = (Vec::new(), 0);
            for (source, topic) in end.found.drain(..) {
                if tried >= LATER_AT_ONCE && !inbound.has(&source) {
                    later.push((source, topic));
                    continue;
                }
                match inbound.found(&source, &topic, now) {
                    Ok(Admission::Joined) => {}
                    Ok(Admission::Later) => {
                        tried += 1;
                        later.push((source, topic));
                    }
                    // The next advertisement finds it again: perhaps others have gone by then.
                    Ok(Admission::Refused) => self.finder.lost(now, source.session),
                    // Without a socket now: the same.
                    Err(error) => {
                        inbound.note_error(&format!("cannot join {topic:?} of {source}: {error}"));
                        self.finder.lost(now, source.session);
                    }
                }
            }
            // Those that were not tried come first the next time.
            let (tried, most) = (tried.min(later.len()), later.len().min(LATER_MAX));
            later.rotate_left(tried);
            for (source, _) in later.drain(most..) {
                self.finder.lost(now, source.session);
            }
            end.found = later;
            drop(inbound);
            end.presence.tell();
        }
    }

    fn visit(&mut self, now: Nanos, findings: &mut Findings) {
        if self.always && !self.ends.is_empty() {
            // What owners have read may be told soon, and they do not come back to tell it.
            findings.due = findings.due.min(now + OWNERS_REST);
        }
        for end in &mut self.ends {
            for session in end.presence.take_lost() {
                self.finder.lost(now, session);
            }
            findings.attended |= !end.found.is_empty();
            let entries = end.visitor.entries();
            let is_waiting = end.presence.is_waiting();
            let absent = end.presence.is_aside() || entries == end.seen && !is_waiting;
            end.seen = entries;
            if is_waiting && !self.always {
                findings.due = findings.due.min(now + WAITING_REST);
                continue;
            }
            let may_enter = self.always || absent;
            let entered = if may_enter { enter(&end.visitor, self.always) } else { None };
            let Some(mut inbound) = entered else {
                findings.attended = true;
                continue;
            };
            let (due, laid_ready) = inbound.stand_in(now);
            inbound.descriptors(&mut findings.descriptors);
            drop(inbound);
            findings.due = findings.due.min(due.unwrap_or(Nanos::MAX));
            if laid_ready {
                end.presence.tell();
            }
        }
    }
}

impl Part for Subscribers {
    fn turn(&mut self, now: Nanos, findings: &mut Findings) -> usize {
        let mail = self.read_mail();
        let found = self.finder.turn(now);
        self.tell_what_was_found(now);
        self.visit(now, findings);
        findings.due = findings.due.min(self.finder.next_deadline(now));
        self.finder.descriptors(&mut findings.descriptors);
        mail + found
    }
}
