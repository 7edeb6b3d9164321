//! A publisher or subscriber whose program sleeps on a descriptor, as the wake-up thread sees it.
//!
//! Publishers and subscribers wake each other by futex words in shared memory, on which a
//! descriptor cannot wait. The domain's [`WakeupThread`](crate::wakeup_thread::WakeupThread) sleeps
//! on these words and makes the end's descriptor readable.

use crate::arming::{self, SeenValue};
use crate::local_session::LocalSession;
use crate::memory::Memory;
use crate::ring_writer::bits;
use crate::segment::Segment;
use crate::wake_pipe::WakePipe;
use crate::wake_signal::WakeSignal;
use lanecast_base::sync::{AtomicBool, AtomicU32, Ordering};
use lanecast_os::event::ArmedEvent;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The event of one end, and the words that wake it.
#[derive(Debug)]
pub(crate) struct WatchedEnd {
    event: Arc<ArmedEvent>,
    words: Mutex<Vec<Arc<WatchedWord>>>,
    /// The session, if the end is its publisher.
    session: Option<Arc<LocalSession>>,
    /// The descriptor is a pipe, which other processes can open.
    has_pipe: bool,
    /// The other side may not have seen that the end was armed, and must not be relied on.
    is_uncovered: AtomicBool,
}

/// A futex word that the wake-up thread sleeps on.
#[derive(Debug)]
pub(crate) struct WatchedWord {
    place: WordPlace,
    seen: SeenValue,
    purpose: Purpose,
}

/// Use that the wake-up thread makes of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Sleeps on it.
    Only,
    /// Sleeps on it, although the end is woken by other means unless they fail.
    Backup,
    /// Checks that the end is announced: the publisher is in this process, and signals the event.
    Announcement,
}

/// Location of a futex word; keeps its memory mapped.
#[derive(Debug)]
enum WordPlace {
    /// Wakes a subscriber for anything but messages.
    Signal(Arc<WakeSignal>),
    /// Wakes the subscriber in a slot of a session.
    Slot(Segment, usize),
    /// Wakes a session's publisher.
    Publisher(Segment),
}

impl WatchedWord {
    fn new(place: WordPlace, purpose: Purpose) -> Arc<Self> {
        let word = Self { place, seen: SeenValue::default(), purpose };
        word.take_change();
        Arc::new(word)
    }

    /// The word of a subscriber's signal.
    pub(crate) fn signal(signal: Arc<WakeSignal>) -> Arc<Self> {
        Self::new(WordPlace::Signal(signal), Purpose::Only)
    }

    /// The wake word of slot `index`, whose subscriber may have a pipe.
    pub(crate) fn slot(segment: Segment, index: usize, has_pipe: bool) -> Arc<Self> {
        let purpose = if has_pipe { Purpose::Backup } else { Purpose::Only };
        Self::new(WordPlace::Slot(segment, index), purpose)
    }

    /// The wake word of slot `index`, whose publisher is in this process.
    pub(crate) fn local_slot(segment: Segment, index: usize) -> Arc<Self> {
        Self::new(WordPlace::Slot(segment, index), Purpose::Announcement)
    }

    pub(crate) fn is_backup(&self) -> bool {
        self.purpose == Purpose::Backup
    }

    /// Whether the thread sleeps on the word.
    pub(crate) fn is_slept_on(&self) -> bool {
        self.purpose != Purpose::Announcement
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        match &self.place {
            WordPlace::Signal(signal) => signal.word(),
            WordPlace::Slot(segment, index) => &segment.slot(*index).wake,
            WordPlace::Publisher(segment) => &segment.gate().publisher_wake,
        }
    }

    /// The value to sleep on: of the last [`take_change`](Self::take_change).
    pub(crate) fn seen(&self) -> u32 {
        self.seen.get()
    }

    /// Whether the word has changed since the last call, and the thread sleeps on it.
    pub(crate) fn take_change(&self) -> bool {
        self.is_slept_on() && self.seen.take_change(self.word())
    }

    /// Whether the other side would wake the end. If not, it has done so, or another process
    /// has withdrawn the announcement.
    fn is_announced(&self) -> bool {
        // Relaxed, both: the wake-up thread looks again.
        match &self.place {
            WordPlace::Signal(_) => true,
            WordPlace::Slot(segment, index) => {
                segment.gate().sleepers.load(Ordering::Relaxed) & 1 << *index != 0
            }
            WordPlace::Publisher(segment) => {
                segment.gate().publisher_waits.load(Ordering::Relaxed) != 0
            }
        }
    }
}

impl WatchedEnd {
    /// A subscriber, whose descriptor is readable until its first empty poll: the end of `pipe`, if
    /// it has one.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub(crate) fn subscriber(pipe: Option<&WakePipe>) -> io::Result<Self> {
        let event = match pipe {
            Some(pipe) => ArmedEvent::over(pipe.event()?),
            None => ArmedEvent::new()?,
        };
        event.arm();
        event.notify();
        Ok(Self { has_pipe: pipe.is_some(), ..Self::new(event, None, Vec::new()) })
    }

    /// The publisher of `session`.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub(crate) fn publisher(session: Arc<LocalSession>) -> io::Result<Self> {
        let place = WordPlace::Publisher(session.segment().clone());
        let word = WatchedWord::new(place, Purpose::Only);
        Ok(Self::new(ArmedEvent::new()?, Some(session), vec![word]))
    }

    fn new(
        event: ArmedEvent,
        session: Option<Arc<LocalSession>>,
        words: Vec<Arc<WatchedWord>>,
    ) -> Self {
        Self {
            event: Arc::new(event),
            words: Mutex::new(words),
            session,
            has_pipe: false,
            is_uncovered: AtomicBool::new(false),
        }
    }

    pub(crate) const fn event(&self) -> &Arc<ArmedEvent> {
        &self.event
    }

    pub(crate) fn words(&self) -> MutexGuard<'_, Vec<Arc<WatchedWord>>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the descriptor readable if the end is armed; called after one of its words changed.
    pub(crate) fn notify(&self) {
        let gate = self.session.as_ref().map(|session| session.segment().gate());
        arming::notify(&self.event, gate);
    }

    /// Notes whether the fence after the end was armed reaches the other side; returns whether that
    /// has changed.
    pub(crate) fn note_coverage(&self, is_covered: bool) -> bool {
        // Relaxed, both: the owner wakes the thread after a change.
        let has_changed = self.is_uncovered() == is_covered;
        if has_changed {
            self.is_uncovered.store(!is_covered, Ordering::Relaxed);
        }
        has_changed
    }

    pub(crate) fn is_uncovered(&self) -> bool {
        self.is_uncovered.load(Ordering::Relaxed)
    }

    /// Makes the descriptor readable if a wake-up was lost, by accident or malice of another
    /// process: the end is armed and not announced to all of its peers, or its signal is gone from
    /// the pipe.
    pub(crate) fn recover_lost_wakeup(&self, words: &[Arc<WatchedWord>]) {
        if self.event.is_armed() {
            if !words.iter().all(|word| word.is_announced()) {
                self.notify();
            }
        } else if self.has_pipe {
            self.event.signal_again();
        }
    }

    /// Whether the end is a publisher that waits for room, and may have to evict a subscriber for
    /// it: one that died, or, with a policy against slow ones, any.
    pub(crate) fn has_to_evict(&self) -> bool {
        let Some(session) = self.session.as_ref().filter(|_| self.event.is_armed()) else {
            return false;
        };
        let (ring, segment) = (session.segment().ring(), session.segment());
        let used = segment.gate().used.load(Ordering::Relaxed);
        session.evicts()
            || bits(used, segment.slots()).any(|index| {
                // Relaxed: the publisher checks anew what it acts on.
                let lease = segment.slot(index).lease.load(Ordering::Relaxed);
                !lease.is_multiple_of(2)
                    && lease != ring.evicted[index].load(Ordering::Relaxed)
                    && !session.is_slot_owner_alive(index)
            })
    }

    /// Whether the end is a publisher that waits for room.
    pub(crate) fn awaits_room(&self) -> bool {
        self.session.is_some() && self.event.is_armed()
    }
}
