//! Events of a world.

/// An event of a world, at its time.
#[derive(Debug)]
pub(super) enum Event {
    ToStore { store: usize, life: u32, frame: Vec<u8> },
    ToPublisher { publisher: usize, store: usize, life: u32, frame: Vec<u8> },
    Live { store: usize, life: u32, session: u64, number: u64, body: Vec<u8> },
    Publish(usize),
    TickPublisher(usize),
    TickStore(usize, u32),
    Synchronize(usize, u32),
    Fault,
    StartStore(usize),
    StartPublisher,
    ToReceiver { receiver: usize, life: u32, store: usize, store_life: u32, frame: Vec<u8> },
    LiveToReceiver { receiver: usize, life: u32, session: u64, number: u64, body: Vec<u8> },
    TickReceiver(usize, u32),
    Consume(usize, u32),
    StartReceiver(usize),
    SessionAtStore { store: usize, life: u32, session: u64, is_there: bool },
    SessionAtReceiver { receiver: usize, life: u32, session: u64, change: SessionChange },
    Readmit { receiver: usize, life: u32, publisher: usize },
    FindAgain { store: usize, life: u32, publisher: usize },
}

/// A change of a session at one that takes part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionChange {
    Joined,
    /// The session goes on without it.
    CutOff,
    /// The session has ended.
    Left,
}
