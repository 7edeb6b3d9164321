//! Frames, written into a buffer.

use super::{AdvertEntry, DataHeader, FrameHeader, Kind, MAGIC, OpenEntry, TopicEntry, VERSION};
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Writes one frame into a buffer of limited length; what does not fit is refused whole.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl<'a> FrameWriter<'a> {
    /// Begins a frame at the front of `bytes`.
    ///
    /// # Panics
    /// If there is no room for a header.
    pub fn new(bytes: &'a mut [u8], kind: Kind, flags: u16, session: u64, sequence: u64) -> Self {
        let header = FrameHeader {
            magic: MAGIC.into(),
            version: VERSION,
            kind: kind as u8,
            flags: flags.into(),
            length: U16::new(0),
            session: session.into(),
            sequence: sequence.into(),
        };
        header.write_to_prefix(bytes).expect("room for a header");
        Self { bytes, used: size_of::<FrameHeader>() }
    }

    /// Adds a part; false, and nothing is added, if there is no room.
    #[must_use]
    pub fn add<T: IntoBytes + Immutable + ?Sized>(&mut self, part: &T) -> bool {
        let part = part.as_bytes();
        let Some(room) = self.bytes.get_mut(self.used..self.used + part.len()) else {
            return false;
        };
        room.copy_from_slice(part);
        self.used += part.len();
        true
    }

    /// Bytes that still fit.
    pub const fn room(&self) -> usize {
        self.bytes.len() - self.used
    }

    /// Adds a data header.
    #[must_use]
    pub fn add_data_header(&mut self, skipped: u32, retained: u32) -> bool {
        self.add(&DataHeader { skipped: skipped.into(), retained: retained.into() })
    }

    /// Adds the name of a wanted topic, as a Join has it.
    #[must_use]
    pub fn add_name(&mut self, name: &str) -> bool {
        let Ok(length) = u16::try_from(name.len()) else { return false };
        let before = self.used;
        let added = self.add(&U16::new(length)) && self.add(name.as_bytes());
        if !added {
            self.used = before;
        }
        added
    }

    /// Adds a topic, as a Welcome has it; `entry.name` is set here.
    #[must_use]
    pub fn add_topic(&mut self, mut entry: TopicEntry, name: &str) -> bool {
        let Ok(length) = u16::try_from(name.len()) else { return false };
        entry.name = length.into();
        let padding = [0u8; 3];
        let padding = &padding[..name.len().next_multiple_of(4) - name.len()];
        let before = self.used;
        let added = self.add(&entry) && self.add(name.as_bytes()) && self.add(padding);
        if !added {
            self.used = before;
        }
        added
    }

    /// Adds an entry with no names yet; `None`, and nothing is added, if it does not fit together
    /// with a name of `longest` bytes.
    pub fn add_entry(&mut self, mut entry: AdvertEntry, longest: usize) -> Option<OpenEntry> {
        if self.room() < size_of::<AdvertEntry>() + size_of::<U16>() + longest {
            return None;
        }
        entry.topics = 0.into();
        entry.length = 0.into();
        let at = self.used;
        self.add(&entry).then_some(OpenEntry { at, topics: 0, length: 0 })
    }

    /// Adds a name to the entry that was added last; false, and nothing is added, if it does not
    /// fit.
    #[must_use]
    pub fn add_entry_name(&mut self, entry: &mut OpenEntry, name: &str) -> bool {
        let before = self.used;
        if entry.topics == u16::MAX || !self.add_name(name) {
            return false;
        }
        entry.topics += 1;
        entry.length += (self.used - before) as u16;
        let bytes = &mut self.bytes[entry.at..self.used];
        if let Ok((written, _)) = AdvertEntry::mut_from_prefix(bytes) {
            written.topics = entry.topics.into();
            written.length = entry.length.into();
        }
        true
    }

    /// Ends the frame; gives its length.
    ///
    /// # Panics
    /// If the buffer is longer than a frame may be.
    pub fn finish(self) -> usize {
        let length = u16::try_from(self.used).expect("no longer than a frame may be");
        if let Ok((header, _)) = FrameHeader::mut_from_prefix(self.bytes) {
            header.length = length.into();
        }
        self.used
    }
}
