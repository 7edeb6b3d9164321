//! A share of a subscriber's sessions, which one receive thread serves: reads their sockets, asks
//! for what is missing, and hands deliveries over to the subscriber.
//!
//! The thread that serves a [`ReceiveShare`] owns it as a value, so that no session is ever served
//! by two. Deliveries reach the subscriber's thread through a pipe, and its consumption comes back
//! in a counter; neither takes a lock. The lock of the sessions is the serving thread's own: the
//! subscriber enters it to read counters, to leave, and to report much consumption that the serving
//! thread, which may sleep for a millisecond, has not reported.

use crate::counters::SubscriberCounters;
use crate::delivery_queue::{DeliveryQueue, QueuedDelivery};
use crate::found_sources::FoundSources;
use crate::gap::GapReport;
use crate::owner_state::OwnerState;
use crate::receive_sessions::ReceiveSessions;
use crate::receive_thread::{Served, Turn};
use crate::source::Source;
use lanecast_base::CachePadded;
use lanecast_base::sync::{AtomicU64, Ordering};
use lanecast_os::biased::{Biased, Owner, Visitor};
use lanecast_protocol::{MILLISECOND, Nanos};
use lanecast_ring::pipe::{self, Reader, Unbounded, Writer};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Longest pause while the subscriber has unread deliveries: its consumption, which publishers wait
/// for, wakes no thread.
const UNREAD_REST: Nanos = MILLISECOND;
/// Weight of consumption that the subscriber reports itself, if the serving thread has not by then:
/// an eighth of the smallest window, so that publishers have room again at once.
const UNREPORTED_MAX: u64 = 8 << 10;
/// Longest wait for the serving thread, which gives way at the end of its turn.
const PATIENCE: Duration = Duration::from_secs(60);

/// The serving end of a share.
#[derive(Debug)]
pub(crate) struct ReceiveShare {
    subscriber: u64,
    sessions: Owner<ReceiveSessions>,
    found: FoundSources,
    deliveries: Writer<QueuedDelivery, Unbounded>,
    /// Publishers learn of the consumption up to here when it is reached; one mark at a time.
    mark: Option<u64>,
    consumption: Arc<Consumption>,
    /// Sessions that the conductor counts as served here, and the ended ones when these were last
    /// compared with those that are kept.
    assigned: BTreeSet<u64>,
    ended: u64,
    owner_state: Arc<OwnerState>,
}

/// The subscriber's end of a share.
#[derive(Debug)]
pub(crate) struct ShareReader {
    sessions: Visitor<ReceiveSessions>,
    deliveries: Reader<QueuedDelivery>,
    /// Weight of the deliveries taken from the pipe.
    read: u64,
    consumption: Arc<Consumption>,
}

/// Consumption, by the weight of deliveries handed over. Numbers that carry no other data along:
/// relaxed.
#[derive(Debug)]
struct Consumption {
    /// The handler has had so much; written by the subscriber.
    consumed: CachePadded<AtomicU64>,
    /// Publishers know of so much.
    reported: CachePadded<AtomicU64>,
}

/// Makes the two ends of a share of `subscriber`'s sessions.
pub(crate) fn share(
    sessions: ReceiveSessions,
    subscriber: u64,
    owner_state: Arc<OwnerState>,
) -> (ReceiveShare, ShareReader) {
    let (owner, visitor) = Biased::split(sessions);
    let (writer, reader) = pipe::unbounded();
    let zero = || CachePadded::new(AtomicU64::new(0));
    let consumption = Arc::new(Consumption { consumed: zero(), reported: zero() });
    let share = ReceiveShare {
        subscriber,
        sessions: owner,
        found: FoundSources::default(),
        deliveries: writer,
        mark: None,
        consumption: Arc::clone(&consumption),
        assigned: BTreeSet::new(),
        ended: 0,
        owner_state,
    };
    (share, ShareReader { sessions: visitor, deliveries: reader, read: 0, consumption })
}

impl Served for ReceiveShare {
    fn subscriber(&self) -> u64 {
        self.subscriber
    }

    fn set_thread(&mut self, thread: Option<usize>) {
        self.sessions.lock().set_thread(thread);
    }

    fn join(&mut self, source: Source, topic: String) {
        self.assigned.insert(source.session);
        self.found.push(source, topic);
    }

    fn serve(&mut self, now: Nanos, turn: &mut Turn<'_>) -> usize {
        let mut sessions = self.sessions.lock();
        let mut has_refused = false;
        if !self.found.is_empty() {
            has_refused = self.found.join(&mut sessions, now);
            // Joins that wait have no deadline of their own: a short pause stands in for it.
            turn.wait_set.owners_active |= !self.found.is_empty();
        }
        let consumed = self.consumption.consumed.load(Ordering::Relaxed);
        let reached = self.mark.take_if(|mark| *mark <= consumed);
        if let Some(mark) = reached {
            let everything = consumed == sessions.ready().handed_over();
            sessions.report_consumption(everything);
            let reported = if everything { consumed } else { mark };
            self.consumption.reported.fetch_max(reported, Ordering::Relaxed);
        }
        sessions.ready().set_consumed(consumed);
        let has_read = sessions.read_for_owner(now, turn.buffer);
        if has_read || reached.is_some() || sessions.next_deadline() <= now {
            sessions.check_deadlines(now);
        }
        let deliveries = &mut self.deliveries;
        let count = sessions.ready().hand_over(|delivery| deliveries.write(delivery));
        let handed_over = sessions.ready().handed_over();
        if handed_over > consumed {
            if self.mark.is_none() {
                self.mark = Some(handed_over);
                sessions.mark_delivered();
            }
            turn.wait_until(now + UNREAD_REST);
        }
        turn.wait_until(sessions.next_deadline());
        // Readable without being read: they would end every sleep.
        if !sessions.is_behind() {
            sessions.descriptors(&mut turn.wait_set.descriptors);
        }
        if has_refused || sessions.ended() > self.ended {
            self.ended = sessions.ended();
            let kept: BTreeSet<u64> = sessions.numbers().chain(self.found.sessions()).collect();
            turn.released.extend(self.assigned.difference(&kept));
            self.assigned = kept;
        }
        // The lock is free before the subscriber wakes up.
        drop(sessions);
        if count > 0 {
            // The reader never sleeps on the pipe: the owner's state wakes it.
            let _ = self.deliveries.flush();
            self.owner_state.notify();
        }
        count
    }
}

impl ShareReader {
    /// Appends what the serving thread has handed over.
    #[inline]
    pub(crate) fn refill(&mut self, queue: &mut DeliveryQueue) {
        let (deliveries, read) = (&mut queue.deliveries, &mut self.read);
        self.deliveries.drain(usize::MAX, |delivery| {
            *read += delivery.weight();
            deliveries.push_back(delivery);
        });
    }

    /// The handler has had all that was taken from the pipe.
    #[inline]
    pub(crate) fn report_consumption(&self, now: impl Fn() -> Nanos) {
        let Consumption { consumed, reported } = &*self.consumption;
        consumed.store(self.read, Ordering::Relaxed);
        if self.read.saturating_sub(reported.load(Ordering::Relaxed)) > UNREPORTED_MAX {
            self.report_everything(now());
        }
    }

    /// Reports consumption to publishers in place of the serving thread, unless that has handed
    /// over more since.
    #[cold]
    fn report_everything(&self, now: Nanos) {
        let (read, reported) = (self.read, &self.consumption.reported);
        self.visit(|sessions| {
            if sessions.ready().handed_over() == read {
                sessions.report_consumption(true);
                sessions.send_control(now);
                reported.fetch_max(read, Ordering::Relaxed);
            }
        });
    }

    /// Whether the sockets stay unread, and the weight of what is not consumed.
    #[cfg(test)]
    pub(crate) fn unread(&self) -> (bool, u64) {
        self.visit(|sessions| (sessions.is_behind(), sessions.ready().unread()))
    }

    pub(crate) fn counters(&self) -> SubscriberCounters {
        self.visit(|sessions| sessions.counters())
    }

    pub(crate) fn next_gap(&self, now: Nanos) -> Option<GapReport> {
        self.visit(|sessions| sessions.next_gap(now))
    }

    pub(crate) fn leave(&self, now: Nanos) {
        let consumed = self.consumption.consumed.load(Ordering::Relaxed);
        self.visit(|sessions| {
            // Publishers learn what was read before they learn of the departure.
            if sessions.ready().handed_over() == consumed {
                sessions.report_consumption(true);
            }
            sessions.leave(now);
        });
    }

    /// Enters the sessions between two turns of the serving thread. Nothing is found or done if the
    /// system refuses the barrier that this takes.
    fn visit<T: Default>(&self, work: impl FnOnce(&mut ReceiveSessions) -> T) -> T {
        let sessions = self.sessions.try_lock_for(PATIENCE);
        sessions.map(|mut sessions| work(&mut sessions)).unwrap_or_default()
    }
}
