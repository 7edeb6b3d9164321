//! Descriptors of subscribers in the publisher's process, by slot.
//!
//! A descriptor cannot wait on a futex word, so the
//! [wake-up thread](crate::wakeup_thread::Wakeups) sleeps on the words of other processes'
//! sessions. A publisher in the same process signals the event itself: one thread less on the way.
//!
//! Shared by the clones of a segment. A publisher notifies on its own thread; subscribers register
//! on theirs.

use lanecast_base::sync::{Mutex, MutexGuard};
use lanecast_os::event::ArmedEvent;
use std::sync::{Arc, PoisonError};

/// The subscribers of a segment that have a descriptor and are in the publisher's process.
#[derive(Debug, Default)]
pub(crate) struct SlotEvents(Mutex<Vec<(usize, Arc<ArmedEvent>)>>);

impl SlotEvents {
    /// Makes the descriptor of the subscriber in slot `index` readable, if it has one that is
    /// armed. Called after its wake word has changed.
    pub(crate) fn notify(&self, index: usize) {
        let event =
            self.events().iter().find(|(slot, _)| *slot == index).map(|(_, event)| event.clone());
        if let Some(event) = event {
            event.notify();
        }
    }

    fn events(&self) -> MutexGuard<'_, Vec<(usize, Arc<ArmedEvent>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscriber's descriptor among those of its publisher. Dropped before the slot is released.
#[derive(Debug)]
pub(crate) struct SlotEvent {
    events: Arc<SlotEvents>,
    index: usize,
}

impl SlotEvent {
    /// Has the publisher notify `event` when it wakes slot `index`.
    pub(crate) fn register(events: Arc<SlotEvents>, index: usize, event: Arc<ArmedEvent>) -> Self {
        events.events().push((index, event));
        Self { events, index }
    }
}

impl Drop for SlotEvent {
    fn drop(&mut self) {
        self.events.events().retain(|(slot, _)| *slot != self.index);
    }
}
