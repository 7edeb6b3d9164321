//! What is appended, and what is read.

/// What is appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The topic's number.
    pub topic: u32,
    /// The number of the client that published it.
    pub client: u32,
    /// The client's own number for it.
    pub client_sequence: u64,
    /// When, in nanoseconds since 1970. A time before the last record's is raised to that.
    pub unix_ns: u64,
    /// What the application makes of them; the journal keeps them.
    pub flags: u16,
    /// The bytes.
    pub body: &'a [u8],
}

/// A record as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number in the journal, from 1.
    pub sequence: u64,
    /// The topic's number.
    pub topic: u32,
    /// The number of the client that published it.
    pub client: u32,
    /// The client's own number for it.
    pub client_sequence: u64,
    /// When it was appended, in nanoseconds since 1970; never less than the one before.
    pub unix_ns: u64,
    /// What the application makes of them.
    pub flags: u16,
    /// The bytes.
    pub body: &'a [u8],
}
