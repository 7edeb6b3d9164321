//! The reading end.

use crate::attachment::Attachment;
use crate::domain::Shared;
use crate::lobby::Visit;
use crate::mailbox::Mailbox;
use lanecast_base::sync::{AtomicU32, Ordering};
use lanecast_base::{WaitStep, Waiter, spin};
use lanecast_os::futex;
use lanecast_transport::{Event, Subscribe};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep: loops that also look at other things come by ten times a second.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A subscriber over shared memory: reads all publishers of its topics in place.
///
/// Made by [`Domain`](crate::Domain)'s `subscriber`. From the moment it has joined a
/// session it holds the publisher to its pace: poll it, or drop it.
pub struct Subscriber {
    // First: no session is joined for a subscriber that is being dropped.
    visit: Visit,
    attachments: Vec<Attachment>,
    /// Whose turn it is to be polled first.
    turn: usize,
    /// The sessions that have taken its place away.
    evicted_from: Vec<u64>,
    mailbox: Arc<Mailbox>,
    news_seen: u32,
    waiter: Waiter,
    domain: Arc<Shared>,
}

impl Subscriber {
    pub(crate) fn new(mailbox: Arc<Mailbox>, domain: Arc<Shared>) -> Self {
        Self {
            visit: Visit::begin(domain.key().cloned(), Arc::clone(&mailbox)),
            attachments: Vec::new(),
            turn: 0,
            evicted_from: Vec::new(),
            waiter: Waiter::new(mailbox.wait),
            mailbox,
            news_seen: 0,
            domain,
        }
    }

    /// Joins again the sessions that evicted this subscriber, at their live edge.
    ///
    /// Their streams are told as joined anew.
    pub fn rejoin(&mut self) {
        let sessions = core::mem::take(&mut self.evicted_from);
        self.mailbox.known().retain(|session, _| !sessions.contains(session));
        self.visit.meet_again(&sessions);
        self.domain.look_again();
    }

    /// Something that others can call to end a [`sleep`](Self::sleep), now or the next one.
    pub fn alarm(&self) -> impl Fn() + Send + Sync + 'static {
        let mailbox = Arc::downgrade(&self.mailbox);
        move || {
            if let Some(mailbox) = mailbox.upgrade() {
                mailbox.ring();
            }
        }
    }

    /// Takes over what has been joined for it since the last call.
    #[cold]
    #[inline(never)]
    fn collect(&mut self, news: u32) {
        self.news_seen = news;
        self.attachments.append(&mut self.mailbox.take());
    }

    #[inline(always)]
    fn poll_from(&mut self, limit: usize, handler: &mut impl FnMut(Event<'_>)) -> usize {
        let count = self.attachments.len();
        self.turn = if self.turn + 1 < count { self.turn + 1 } else { 0 };
        let (mut work, mut over) = (0, false);
        for step in 0..count {
            let index = self.turn + step;
            let index = if index < count { index } else { index - count };
            let attachment = &mut self.attachments[index];
            work += attachment.poll(limit.saturating_sub(work), handler);
            over |= attachment.is_over();
            if work >= limit {
                break;
            }
        }
        if over {
            self.bury();
        }
        work
    }

    #[cold]
    #[inline(never)]
    fn bury(&mut self) {
        let evicted = self.attachments.iter().filter(|attachment| attachment.was_evicted());
        self.evicted_from.extend(evicted.map(Attachment::session));
        self.attachments.retain(|attachment| !attachment.is_over());
    }

    /// Sleeps until there are news, or for a while.
    pub fn sleep(&self) {
        // PAIRS(news): acquire here, release in `Mailbox::ring`.
        if self.mailbox.news().load(Ordering::Acquire) != self.news_seen {
            return;
        }
        let mut words: [(&AtomicU32, u32); futex::WORDS_MAX] =
            [(self.mailbox.news(), self.news_seen); futex::WORDS_MAX];
        let mut limit = LONGEST_WAIT;
        let mut prepared = 0;
        for attachment in &self.attachments {
            let Some((word, expected, covered)) = attachment.prepare_sleep() else { break };
            prepared += 1;
            if !covered {
                limit = Duration::from_millis(1);
            }
            if let Some(entry) = words.get_mut(prepared) {
                *entry = (word, expected);
            } else {
                // More sessions than one sleep can watch: look at the rest now and then.
                limit = Duration::from_millis(1);
            }
        }
        if prepared == self.attachments.len() {
            futex::wait_any(&words[..(prepared + 1).min(futex::WORDS_MAX)], limit);
        }
        for attachment in &self.attachments[..prepared] {
            attachment.awake();
        }
    }
}

impl Subscribe for Subscriber {
    #[inline]
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        // PAIRS(news): acquire here, release in `Mailbox::ring`.
        let news = self.mailbox.news().load(Ordering::Acquire);
        if news != self.news_seen {
            self.collect(news);
        }
        self.poll_from(limit, &mut handler)
    }

    #[inline]
    fn wait(&mut self, work: usize) {
        if work > 0 {
            self.waiter.found(work);
            return;
        }
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.sleep(),
        }
    }

    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT
    }

    fn streams(&self) -> usize {
        self.attachments.iter().map(Attachment::streams).sum()
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber")
            .field("topics", &self.mailbox.topics)
            .field("sessions", &self.attachments.len())
            .finish_non_exhaustive()
    }
}
