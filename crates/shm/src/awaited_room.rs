//! Room in a subscriber's selection, while topics that found none wait for it.
//!
//! Shared by the subscriber, its images, and the threads that find sessions for it; whichever
//! thread makes room wakes the subscriber, which then joins what waits.

use crate::wake_signal::WakeSignal;
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_transport::{RoomListener, TopicSelection};
use std::sync::Arc;

/// Whether topics of a subscriber wait for room in its selection.
#[derive(Debug)]
pub(crate) struct AwaitedRoom {
    topics: TopicSelection,
    is_awaited: AtomicBool,
    /// Wakes the subscriber.
    signal: Arc<WakeSignal>,
}

impl AwaitedRoom {
    /// Room that nothing waits for, in `topics`.
    pub(crate) fn new(topics: &TopicSelection, signal: &Arc<WakeSignal>) -> Arc<Self> {
        let (topics, signal) = (topics.clone(), Arc::clone(signal));
        let room = Arc::new(Self { topics, is_awaited: AtomicBool::new(false), signal });
        let listener: Arc<dyn RoomListener> = Arc::<Self>::clone(&room);
        room.topics.tell_of_room(Arc::downgrade(&listener));
        room
    }

    /// Notes that topics wait for room; called by the subscriber, which
    /// [looks](Self::may_sleep) before it sleeps.
    pub(crate) fn request(&self) {
        self.is_awaited.store(true, Ordering::Relaxed);
        self.topics.fence_before_look();
    }

    /// As [`request`](Self::request), on other threads: the subscriber may be asleep.
    pub(crate) fn request_for_subscriber(&self) {
        self.request();
        if self.is_there() {
            self.signal.wake();
        }
    }

    /// Whether topics wait for room.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// Whether topics wait for room, and there is some.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        self.is_awaited() && self.topics.has_room()
    }

    /// Whether the subscriber may sleep on its signal, whose causes up to `seen_epoch` it has
    /// handled. Room that was made and taken by others while it tried what waits, and then made
    /// again, has not woken it: nothing was noted as waiting then.
    #[inline]
    pub(crate) fn may_sleep(&self, seen_epoch: u32) -> bool {
        self.signal.epoch() == seen_epoch && !self.is_there()
    }

    /// Notes that nothing waits for room: what did is tried now.
    pub(crate) fn withdraw(&self) {
        self.is_awaited.store(false, Ordering::Relaxed);
    }
}

impl RoomListener for AwaitedRoom {
    fn on_room(&self) {
        if self.is_awaited() {
            self.signal.wake();
        }
    }
}
