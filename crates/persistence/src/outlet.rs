//! Destinations of frames and events.

use crate::event::SourceEvent;
use crate::receiver_event::ReceiverEvent;
use lanecast_wire::store::StoreFrame;

/// Destination of a publisher's requests and events.
pub trait SourceOutlet {
    /// Sends a request to the store with this index. It may be lost: requests are repeated.
    fn request(&mut self, store: usize, frame: &StoreFrame<'_>);

    /// Tells the application.
    fn event(&mut self, event: SourceEvent);
}

/// Destination of a store's frames.
pub trait StoreOutlet {
    /// Sends a reply to a client: a publisher, or another store. It may be lost.
    fn reply(&mut self, client: u64, topic: &str, source: u64, frame: &StoreFrame<'_>);

    /// Sends a request to another store. It may be lost: requests are repeated.
    fn request(&mut self, store: &str, topic: &str, source: u64, frame: &StoreFrame<'_>);
}

/// Destination of a receiver's requests and events.
///
/// The functions that hand out messages are compiled for each outlet, all others once.
pub trait ReceiverOutlet {
    /// Sends a request about the stream of `source` to the store with this index; `source` is 0 in
    /// questions about the whole topic. It may be lost: requests are repeated.
    fn request(&mut self, store: usize, source: u64, frame: &StoreFrame<'_>);

    /// Tells the application.
    fn event(&mut self, event: ReceiverEvent<'_>);
}

impl<O: ReceiverOutlet + ?Sized> ReceiverOutlet for &mut O {
    fn request(&mut self, store: usize, source: u64, frame: &StoreFrame<'_>) {
        (**self).request(store, source, frame);
    }

    fn event(&mut self, event: ReceiverEvent<'_>) {
        (**self).event(event);
    }
}
