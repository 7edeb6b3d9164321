//! The bodies of frames that carry no messages.
#![allow(missing_debug_implementations, reason = "types that zerocopy derives within the macro")]

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

macro_rules! body {
    ($(#[$about:meta])* $name:ident [$bytes:literal] {
        $($(#[$field_about:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_about])* pub $field: $type,)*
        }

        impl $name {
            /// The body at the front of `bytes`, and what follows it.
            #[inline]
            pub fn split(bytes: &[u8]) -> Option<(&Self, &[u8])> {
                Self::ref_from_prefix(bytes).ok()
            }
        }

        const _: () = assert!(size_of::<$name>() == $bytes);
    };
}

body! {
    /// Sequences `first` and the `count - 1` after it.
    Range [16] {
        /// The first.
        first: U64,
        /// Number of datagrams.
        count: U32,
        /// Zero.
        reserved: U32,
    }
}

body! {
    /// In a session frame, after its [`DataHeader`](super::DataHeader); then [`TopicHead`]s. The
    /// frame's sequence is the next one to be sent.
    SessionBody [8] {
        /// Joined receivers.
        receivers: U32,
        /// Zero.
        reserved: U32,
    }
}

body! {
    /// Newest position of a topic.
    TopicHead [24] {
        /// The topic's number within the session.
        topic: U32,
        /// Zero.
        reserved: U32,
        /// The next fragment's number.
        fragment: U64,
        /// The next message's number.
        message: U64,
    }
}

body! {
    /// In a Nak; then [`Range`]s. The frame's sequence is the first that the receiver misses.
    NakBody [8] {
        /// The receiver that misses them.
        receiver: U64,
    }
}

body! {
    /// In a Join; then names of wanted topics, each a `u16` length and UTF-8.
    JoinBody [32] {
        /// The joining receiver: random, new for each session that it joins.
        receiver: U64,
        /// The cookie of the sender's challenge, or 0.
        cookie: U64,
        /// The receiver's clock, to be sent back.
        echo: U64,
        /// Datagrams that it can buffer without reading.
        window: U32,
        /// The group that it belongs to for flow control, or 0.
        tag: U32,
    }
}

body! {
    /// In a Challenge.
    ChallengeBody [24] {
        /// The receiver.
        receiver: U64,
        /// Cookie to return in a Join.
        cookie: U64,
        /// The clock of the Join.
        echo: U64,
    }
}

body! {
    /// In a Welcome; then [`TopicEntry`]s, each followed by its name. The frame's sequence is the
    /// first that the receiver will get.
    WelcomeBody [40] {
        /// The admitted receiver.
        receiver: U64,
        /// The clock of the Join.
        echo: U64,
        /// The longest message, in bytes.
        longest: U32,
        /// Datagrams that the sender retains.
        window: U32,
        /// Joined receivers, this one included.
        receivers: U32,
        /// The sender's process.
        pid: U32,
        /// Silence after which the sender counts as dead, in ms.
        liveness_ms: U32,
        /// The most data datagrams of an FEC block; 0: the session has no parity.
        fec_data: u8,
        /// Parity frames that follow each block unasked.
        fec_parity: u8,
        /// Longest time from a datagram to the parity of its block, in microseconds.
        fec_delay_us: U16,
    }
}

body! {
    /// In a Parity frame, after its [`DataHeader`](super::DataHeader), which is the one of the
    /// block's first datagram; then the symbol. The frame's sequence is that of this datagram.
    ParityBody [12] {
        /// Bit *n*: the datagram *n* after the first belongs to the block.
        members: U64,
        /// The row of the code that this symbol was computed with.
        row: u8,
        /// Rows that are sent unasked; further ones answer NAKs.
        proactive: u8,
        /// Zero.
        reserved: U16,
    }
}

body! {
    /// A topic of the session; its name follows, padded with zeros to a multiple of 4.
    TopicEntry [24] {
        /// Number of the topic within the session.
        topic: U32,
        /// The name's bytes.
        name: U16,
        /// Zero.
        reserved: U16,
        /// The number of its first fragment at or after the Welcome's sequence.
        fragment: U64,
        /// The number of its first message at or after the Welcome's sequence.
        message: U64,
    }
}

body! {
    /// In a Status. The frame's sequence is the first that the application has not read.
    StatusBody [48] {
        /// The receiver.
        receiver: U64,
        /// The first sequence that has not arrived.
        received: U64,
        /// The first sequence that it cannot take.
        limit: U64,
        /// The receiver's clock, to be sent back; 0: no need.
        echo: U64,
        /// The group that it belongs to for flow control, or 0.
        tag: U32,
        /// Datagrams that it has given up so far.
        lost: U32,
        /// Topics whose beginning it knows.
        topics: U32,
        /// Round-trip time to the sender, in nanoseconds; 0 if unknown.
        round_trip: U32,
    }
}

body! {
    /// In an Echo.
    EchoBody [16] {
        /// The receiver that asked.
        receiver: U64,
        /// The clock of the Status.
        echo: U64,
    }
}

body! {
    /// In a Leave.
    LeaveBody [8] {
        /// The leaving receiver.
        receiver: U64,
    }
}

body! {
    /// In an Eject; the frame's flags say why.
    EjectBody [8] {
        /// The ejected receiver.
        receiver: U64,
    }
}

/// A list of `T` that fills the rest of a frame; what is no whole entry is left out.
#[inline]
pub fn list<T: FromBytes + Immutable + KnownLayout + Unaligned>(bytes: &[u8]) -> &[T] {
    let whole = bytes.len() - bytes.len() % size_of::<T>();
    <[T]>::ref_from_bytes(&bytes[..whole]).unwrap_or_default()
}

/// The names in the rest of a Join.
pub const fn names(bytes: &[u8]) -> Names<'_> {
    Names { rest: bytes }
}

/// Names, each a `u16` length and UTF-8; ends early at the first that is not well formed.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (length, rest) = U16::ref_from_prefix(self.rest).ok()?;
        let bytes = rest.get(..usize::from(length.get()))?;
        let name = std::str::from_utf8(bytes).ok().filter(|name| !name.is_empty())?;
        self.rest = &rest[bytes.len()..];
        Some(name)
    }
}

impl Names<'_> {
    /// Whether all is well formed: the names fill the space to its end.
    pub fn is_whole(mut self) -> bool {
        self.by_ref().for_each(drop);
        self.rest.is_empty()
    }
}

/// The topics in the rest of a Welcome.
pub const fn topics(bytes: &[u8]) -> Topics<'_> {
    Topics { rest: bytes }
}

/// Topics with their names; ends early at the first that is not well formed.
#[derive(Clone, Copy, Debug)]
pub struct Topics<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Topics<'a> {
    type Item = (&'a TopicEntry, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (entry, rest) = TopicEntry::split(self.rest)?;
        let length = usize::from(entry.name.get());
        let name = rest.get(..length)?;
        self.rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((entry, std::str::from_utf8(name).ok()?))
    }
}
