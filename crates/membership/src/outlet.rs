//! Destination of a member's frames and events.

use crate::event::Event;
use crate::view::MemberId;

/// Takes what a member has to say: frames for others, events for its own application.
pub trait Outlet {
    /// Sends a frame to all members, in two parts that belong together. False: there is no room
    /// now, and nothing was sent.
    fn broadcast(&mut self, head: &[u8], body: &[u8]) -> bool;

    /// Sends a frame to one member. False: there is no room now, and nothing was sent.
    fn direct(&mut self, to: MemberId, head: &[u8], body: &[u8]) -> bool;

    /// Asks a member for a sign of life by a way beside the frames, if there is one. Its answer is
    /// told to [`Member::on_answer`](crate::Member::on_answer).
    fn probe(&mut self, _to: MemberId) {}

    /// An event for the application.
    fn event(&mut self, event: Event<'_>);
}
