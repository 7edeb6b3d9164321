//! Destination of a member's frames and events during one call of the application.

use crate::links::Links;
use lanecast_membership::{Event, MemberId, Outlet};
use lanecast_transport::Transport;

/// Frames to the transport, events to `handler`.
pub(crate) struct Outbox<'a, T: Transport, F> {
    pub(crate) links: &'a mut Links<T>,
    pub(crate) handler: &'a mut F,
}

impl<T: Transport, F: FnMut(Event<'_>)> Outlet for Outbox<'_, T, F> {
    #[inline]
    fn broadcast(&mut self, head: &[u8], body: &[u8]) -> bool {
        self.links.broadcast(head, body)
    }

    fn direct(&mut self, to: MemberId, head: &[u8], body: &[u8]) -> bool {
        self.links.direct(to, head, body)
    }

    fn probe(&mut self, to: MemberId) {
        self.links.probes.push(to);
    }

    #[inline]
    fn event(&mut self, event: Event<'_>) {
        (self.handler)(event);
    }
}
