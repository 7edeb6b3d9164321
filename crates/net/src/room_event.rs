//! The descriptor of a publisher: readable when a refused claim may find room.
//!
//! Part of the publisher's `SendSession`, and used under its lock: by the owner, whose claims are
//! refused or succeed, and by the conductor, which reads the receivers' reports.

use lanecast_os::event::EventFd;
use std::io;
use std::sync::Arc;

/// A publisher's descriptor, if its program asked for one, and the state of its last claim.
#[derive(Debug, Default)]
pub(crate) struct RoomEvent {
    event: Option<Arc<EventFd>>,
    /// Without a descriptor, only whether the last claim was refused.
    state: RoomState,
}

#[derive(Clone, Copy, Debug, Default)]
enum RoomState {
    /// The last claim was not refused.
    #[default]
    Settled,
    /// The last claim was refused, when the window had to keep everything from `retained` on.
    Refused { retained: Option<u64> },
    /// Receivers have made progress since the refusal: the descriptor is readable.
    Signalled,
    /// The last claim was refused before there was a descriptor, which is readable.
    Opened,
}

impl RoomEvent {
    /// The descriptor. A new one is unreadable, unless the last claim was refused: progress since
    /// then has signalled nothing, and the next claim settles it.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub(crate) fn open(&mut self) -> io::Result<Arc<EventFd>> {
        let event = match self.event.take() {
            Some(event) => event,
            None => {
                let is_refused = matches!(self.state, RoomState::Refused { .. });
                let event = Arc::new(EventFd::new(is_refused)?);
                if is_refused {
                    self.state = RoomState::Opened;
                }
                event
            }
        };
        Ok(Arc::clone(self.event.insert(event)))
    }

    /// A claim was refused; `retained` is the first sequence that the window has to keep. Returns
    /// whether it is the first refusal with a descriptor since a claim succeeded.
    #[cold]
    pub(crate) fn on_refused(&mut self, retained: Option<u64>) -> bool {
        let is_first = matches!(self.state, RoomState::Settled | RoomState::Opened);
        self.change(RoomState::Refused { retained });
        is_first && self.event.is_some()
    }

    /// A claim succeeded.
    #[inline(always)]
    pub(crate) fn on_claimed(&mut self) {
        if !matches!(self.state, RoomState::Settled) {
            self.change(RoomState::Settled);
        }
    }

    /// The session was driven: makes the descriptor readable if receivers have made progress since
    /// a refusal.
    pub(crate) fn on_driven(&mut self, retained: Option<u64>) {
        if let RoomState::Refused { retained: at_refusal } = self.state
            && at_refusal != retained
            && let Some(event) = &self.event
        {
            event.signal();
            self.state = RoomState::Signalled;
        }
    }

    #[cold]
    fn change(&mut self, state: RoomState) {
        if let (RoomState::Signalled | RoomState::Opened, Some(event)) = (self.state, &self.event) {
            event.clear();
        }
        self.state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::event::wait_readable;
    use std::os::fd::AsFd;
    use std::time::Duration;

    #[test]
    fn only_progress_after_a_refusal_makes_it_readable_until_the_next_claim() {
        let mut room = RoomEvent::default();
        assert!(!room.on_refused(Some(6)), "there is no descriptor yet");
        room.on_claimed();
        let event = room.open().unwrap();
        let is_readable = || wait_readable([event.as_fd()], Some(Duration::ZERO)) == [true];
        room.on_driven(Some(7));
        assert!(!is_readable(), "nothing was refused");
        assert!(room.on_refused(Some(7)));
        room.on_driven(Some(7));
        assert!(!is_readable(), "no progress");
        room.on_driven(Some(8));
        room.on_driven(Some(9));
        assert!(is_readable());
        assert!(!room.on_refused(Some(9)), "not the first");
        assert!(!is_readable(), "refused again");
        room.on_driven(None);
        assert!(is_readable(), "the last receiver left");
        room.on_claimed();
        room.on_driven(Some(12));
        assert!(!is_readable(), "nothing is waited for");
    }

    /// Progress before the descriptor was there has signalled nothing: the program tries again.
    #[test]
    fn it_is_readable_from_the_start_after_a_refusal() {
        let mut room = RoomEvent::default();
        assert!(!room.on_refused(Some(6)), "there is no descriptor yet");
        room.on_driven(Some(7));
        let event = room.open().unwrap();
        let is_readable = || wait_readable([event.as_fd()], Some(Duration::ZERO)) == [true];
        assert!(is_readable());
        assert!(room.on_refused(Some(7)), "the first one that the descriptor waits for");
        assert!(!is_readable() && !room.on_refused(Some(7)));
        room.on_driven(Some(8));
        assert!(is_readable());
        room.on_claimed();
        assert!(!is_readable());
    }
}
