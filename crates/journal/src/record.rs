//! An entry to append, and a record as it is read.

/// An entry to append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Number of the topic.
    pub topic: u32,
    /// Number of the publishing client.
    pub client: u32,
    /// The client's sequence for it.
    pub client_sequence: u64,
    /// Time in nanoseconds since 1970. Raised to the last record's time if it is earlier.
    pub unix_ns: u64,
    /// Flags of the application, stored as they are.
    pub flags: u16,
    /// First bytes of the payload, for a program that has it in two pieces.
    pub head: &'a [u8],
    /// The rest of the payload, or all of it.
    pub body: &'a [u8],
}

impl Entry<'_> {
    /// Length of the payload, in bytes.
    pub(crate) const fn length(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

/// A record read from the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Sequence in the journal, from 1.
    pub sequence: u64,
    /// Number of the topic.
    pub topic: u32,
    /// Number of the publishing client.
    pub client: u32,
    /// The client's sequence for it.
    pub client_sequence: u64,
    /// Time in nanoseconds since 1970; never less than the previous record's.
    pub unix_ns: u64,
    /// Flags of the application.
    pub flags: u16,
    /// Checksum of the header. It covers that of the record before, so it identifies the journal
    /// up to here.
    pub checksum: u32,
    /// Payload.
    pub body: &'a [u8],
}
