//! The conductor's part in sending: stands in for the owners of publishers.

use crate::conductor::{Findings, Part};
use crate::desk::Mailbox;
use crate::outbound::Outbound;
use crate::tally::Tally;
use lanecast_base::sync::Ordering;
use lanecast_os::biased::{Visitor, VisitorGuard};
use lanecast_protocol::Nanos;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an owner may keep the only thread that sends waiting; then it is looked for again.
const PATIENCE: Duration = Duration::from_micros(50);

/// What publishers tell the conductor.
#[derive(Debug)]
pub(crate) enum Notice {
    Publish(PublisherEnd),
    Retire { session: u64 },
}

/// A publisher, as the conductor knows it.
#[derive(Debug)]
pub(crate) struct PublisherEnd {
    pub(crate) session: u64,
    pub(crate) visitor: Visitor<Outbound>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) seen: u64,
    /// Since when it has been closed.
    pub(crate) retired: Option<Nanos>,
}

/// How many publishers are closed, but not yet done with repairs.
#[derive(Debug, Default)]
pub(crate) struct Lingering {
    count: Mutex<usize>,
    done: Condvar,
}

impl Lingering {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another one is about to retire.
    pub(crate) fn add(&self) {
        *self.count() += 1;
    }

    fn settle(&self) {
        *self.count() -= 1;
        self.done.notify_all();
    }

    /// Waits until no closed publisher has anything to repair, at most `limit`.
    pub(crate) fn wait_until_settled(&self, limit: Duration) {
        let count = self.count();
        // What the wait says is known to whoever asked: it is over, or time is.
        drop(self.done.wait_timeout_while(count, limit, |count| *count > 0));
    }
}

/// All publishers of a context.
#[derive(Debug)]
pub(crate) struct Publishers {
    mailbox: Arc<Mailbox<Notice>>,
    lingering: Arc<Lingering>,
    /// For how long one that has closed may linger.
    linger: Nanos,
    ends: Vec<PublisherEnd>,
    /// Whether owners never send.
    always: bool,
}

impl Publishers {
    pub(crate) const fn new(
        mailbox: Arc<Mailbox<Notice>>,
        lingering: Arc<Lingering>,
        linger: Nanos,
        always: bool,
    ) -> Self {
        Self { mailbox, lingering, linger, ends: Vec::new(), always }
    }

    fn read_mail(&mut self, now: Nanos) -> usize {
        let notices = self.mailbox.take();
        let count = notices.len();
        for notice in notices {
            match notice {
                Notice::Publish(end) => self.ends.push(end),
                Notice::Retire { session } => {
                    if let Some(end) = self.ends.iter_mut().find(|end| end.session == session) {
                        end.retired = Some(now);
                    }
                }
            }
        }
        count
    }
}

impl Part for Publishers {
    fn turn(&mut self, now: Nanos, findings: &mut Findings) -> usize {
        let mail = self.read_mail(now);
        let (always, linger, lingering) = (self.always, self.linger, &self.lingering);
        self.ends.retain_mut(|end| {
            let entries = end.visitor.entries();
            let is_attended = !always && end.retired.is_none() && entries != end.seen;
            end.seen = entries;
            let entered = if is_attended { None } else { enter(&end.visitor, always) };
            let Some(mut outbound) = entered else {
                findings.attended = true;
                return true;
            };
            findings.due = findings.due.min(outbound.stand_in());
            outbound.descriptors(&mut findings.descriptors);
            let Some(since) = end.retired else { return true };
            let over = outbound.is_settled() || now.wrapping_sub(since) > linger;
            if over {
                lingering.settle();
            }
            !over
        });
        mail
    }

    fn was_entered(&self) -> bool {
        self.ends.iter().any(|end| end.visitor.entries() != end.seen)
    }

    fn is_corked(&self) -> bool {
        let is_corked =
            |end: &PublisherEnd| end.tally.corked.load(Ordering::Relaxed) && end.retired.is_none();
        self.ends.iter().any(is_corked)
    }
}

/// Goes in to an end, patiently if nobody else does what is to be done there.
pub(crate) fn enter<T>(visitor: &Visitor<T>, always: bool) -> Option<VisitorGuard<'_, T>> {
    if always { visitor.enter_patiently(PATIENCE) } else { visitor.try_enter() }
}
