//! Mapping of a session's two files, ring and gate, and their names in the domain's directory.

use crate::arming;
use crate::error::JoinError;
use crate::memory::Memory;
use crate::slot_events::SlotEvents;
use crate::wake_pipe::{OpenPipes, SlotPipes};
use lanecast_base::sync::{AtomicU32, AtomicU64, Ordering};
use lanecast_base::{CacheFlush, Position};
use lanecast_os::{MapMode, Mapping, MirroredMapping, barrier, futex};
use lanecast_wire::shm::{
    FrameHeader, GATE_LIVE_OFFSET, GateHeader, GateLive, Limits, RING_LIVE_OFFSET, RingHeader,
    RingLive, SLOT_BYTES, SLOTS_OFFSET, Slot, TOPICS_OFFSET, TopicEntry, gate_bytes,
};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

/// A session's memory, mapped for its publisher or for one of its subscribers. Clones share the
/// mappings: subscribers in the publisher's process use a clone.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    data: NonNull<u8>,
    mask: u64,
    live: NonNull<RingLive>,
    counts: NonNull<AtomicU64>,
    gate_live: NonNull<GateLive>,
    slots: NonNull<Slot>,
    limits: Limits,
    events: Arc<SlotEvents>,
    /// Only the publisher has them, and only if subscribers of other processes can join.
    pipes: Option<Arc<SlotPipes>>,
    // Keeps the memory behind the pointers above mapped.
    mappings: Arc<Mappings>,
}

#[derive(Debug)]
struct Mappings {
    head: Mapping,
    _ring: MirroredMapping,
    _gate: Mapping,
}

// SAFETY: the pointers go into mappings that the value keeps; they point at atomics, and at
// message bytes that the protocol passes from one side to the other.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Maps both files; `mode` is for the ring file, the gate is writable.
    pub(crate) fn map(ring: &File, gate: &File, limits: Limits, mode: MapMode) -> io::Result<Self> {
        let too_large = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let window = usize::try_from(limits.window_bytes).map_err(too_large)?;
        let head_bytes = usize::try_from(limits.data_offset).map_err(too_large)?;
        let gate_len = usize::try_from(gate_bytes(limits.subscribers_max)).map_err(too_large)?;
        let head = Mapping::new(ring, head_bytes, mode)?;
        let data = MirroredMapping::new(ring, limits.data_offset, window, mode)?;
        let gate = Mapping::new(gate, gate_len, MapMode::ReadWrite)?;
        // SAFETY: the head is at least TOPICS_OFFSET long, and RingLive ends before that.
        let live = unsafe { head.start().add(RING_LIVE_OFFSET) }.cast();
        // SAFETY: the head ends at the data, which lie behind a count for each topic.
        let counts = unsafe { head.start().add(limits.counts_offset() as usize) }.cast();
        // SAFETY: the gate is at least SLOTS_OFFSET long, and GateLive ends before that.
        let gate_live = unsafe { gate.start().add(GATE_LIVE_OFFSET) }.cast();
        // SAFETY: as above.
        let slots = unsafe { gate.start().add(SLOTS_OFFSET) }.cast();
        Ok(Self {
            data: data.start(),
            mask: limits.window_bytes - 1,
            live,
            counts,
            gate_live,
            slots,
            limits,
            events: Arc::default(),
            pipes: None,
            mappings: Arc::new(Mappings { head, _ring: data, _gate: gate }),
        })
    }

    /// Has the publisher signal descriptors of other processes through `opened`. Called before the
    /// segment is cloned.
    pub(crate) fn signal_through(&mut self, opened: Arc<OpenPipes>) {
        self.pipes = Some(Arc::new(SlotPipes::new(opened)));
    }

    /// Descriptors that a publisher with this segment signals by itself.
    pub(crate) fn events(&self) -> Arc<SlotEvents> {
        Arc::clone(&self.events)
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Address of the byte at `at`. A whole window follows it contiguously.
    #[inline(always)]
    pub(crate) fn byte(&self, at: Position) -> NonNull<u8> {
        // SAFETY: the offset is below the window, and the ring is mapped twice.
        unsafe { self.data.add(at.offset(self.mask)) }
    }

    /// Writes the ring's header. Called by the publisher, before the file has a name.
    pub(crate) fn write_header(&mut self, header: &RingHeader) {
        let bytes = header.as_bytes();
        let start = self.mappings.head.start();
        // SAFETY: the head is longer than a header, its publisher has mapped it for writing, and
        // no other process can find the session yet.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr(), bytes.len()) };
    }

    /// Writes entry `index` of the topic table. Called by the publisher, before counting it.
    pub(crate) fn write_topic(&mut self, index: u32, entry: &TopicEntry) {
        assert!(index < self.limits.topics_max, "the topic table has room");
        let bytes = entry.as_bytes();
        // SAFETY: the entry lies within the table, which lies within the head, and readers ignore
        // it until it is counted.
        let target = unsafe { self.mappings.head.start().add(topic_offset(index)) };
        // SAFETY: as above; the head is mapped for writing by its publisher.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), target.as_ptr(), bytes.len()) };
    }

    /// Reads entry `index` of the topic table; `None` if it is absent or damaged.
    pub(crate) fn read_topic(&self, index: u32) -> Option<String> {
        if index >= self.limits.topics_max {
            return None;
        }
        let mut bytes = [0u8; size_of::<TopicEntry>()];
        // SAFETY: the entry lies within the table. Checks apply to the copy, since the shared
        // bytes can change.
        let source = unsafe { self.mappings.head.start().add(topic_offset(index)) };
        // SAFETY: as above.
        unsafe {
            core::ptr::copy_nonoverlapping(source.as_ptr(), bytes.as_mut_ptr(), bytes.len());
        }
        TopicEntry::read_from_bytes(&bytes).ok()?.name().map(str::to_owned)
    }
}

fn topic_offset(index: u32) -> usize {
    TOPICS_OFFSET + index as usize * size_of::<TopicEntry>()
}

impl Memory for Segment {
    #[inline(always)]
    fn window(&self) -> u64 {
        self.mask + 1
    }

    #[inline(always)]
    fn slots(&self) -> usize {
        self.limits.subscribers_max as usize
    }

    #[inline(always)]
    fn ring(&self) -> &RingLive {
        // SAFETY: points into the head mapping, which lives as long as `self`; every field that
        // changes is an atomic.
        unsafe { self.live.as_ref() }
    }

    #[inline(always)]
    fn gate(&self) -> &GateLive {
        // SAFETY: points into the gate mapping, which lives as long as `self`; all atomics.
        unsafe { self.gate_live.as_ref() }
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> &Slot {
        debug_assert!(index < self.slots());
        // SAFETY: the index is below the number of slots, which the gate mapping covers.
        let slot = unsafe { self.slots.add(index) };
        // SAFETY: the mapping lives as long as `self`; all atomics.
        unsafe { slot.as_ref() }
    }

    fn topics_max(&self) -> u32 {
        self.limits.topics_max
    }

    #[inline(always)]
    fn count(&self, topic: u32) -> &AtomicU64 {
        assert!(topic < self.limits.topics_max, "the topic table has the entry");
        // SAFETY: there is a count for each entry of the topic table, in the head mapping.
        let count = unsafe { self.counts.add(topic as usize) };
        // SAFETY: the mapping lives as long as `self`; all atomics.
        unsafe { count.as_ref() }
    }

    #[inline(always)]
    fn frame(&self, at: Position) -> &FrameHeader {
        // SAFETY: a frame header behind any byte of the ring lies within the second copy;
        // positions are multiples of the frame alignment. All atomics.
        unsafe { self.byte(at).cast().as_ref() }
    }

    #[inline(always)]
    fn prefetch(&self, at: Position) {
        lanecast_base::prefetch(self.byte(at).as_ptr());
    }

    #[inline(always)]
    fn prefetch_for_writing(&self, at: Position) {
        lanecast_base::prefetch_for_writing(self.byte(at).as_ptr());
    }

    #[inline(always)]
    fn flush(&self, flush: &CacheFlush, from: Position, to: Position) {
        if flush.is_on() {
            let length = to.since(from).min(self.window()) as usize;
            // SAFETY: the reader's, which the publisher does not write before the cursor has moved
            // on; a whole window follows each byte.
            flush.flush(unsafe { core::slice::from_raw_parts(self.byte(from).as_ptr(), length) });
        }
    }

    fn heavy_fence(&self) -> bool {
        barrier::heavy_fence()
    }

    fn sleep(&self, word: &AtomicU32, expected: u32, limit: Duration) {
        futex::wait(word, expected, limit);
    }

    fn wake(&self, word: &AtomicU32) {
        futex::wake(word, futex::ALL);
    }

    fn wake_slot(&self, index: usize) {
        arming::wake_subscriber(self, index, &self.events, |number| {
            let has_owner = |slot| !self.slot(slot).lease.load(Ordering::Relaxed).is_multiple_of(2);
            self.pipes.as_ref().is_some_and(|pipes| pipes.signal(index, number, has_owner))
        });
    }
}

/// Paths of one session's files.
#[derive(Clone, Debug)]
pub(crate) struct SessionFiles {
    pub(crate) session: u64,
    pub(crate) ring: PathBuf,
    pub(crate) gate: PathBuf,
}

impl SessionFiles {
    pub(crate) fn new(directory: &Path, session: u64) -> Self {
        let path = |kind: &str| directory.join(format!("{session:016x}.{kind}"));
        Self { session, ring: path("ring"), gate: path("gate") }
    }

    /// Opens the ring file for reading and checks its header.
    pub(crate) fn open_ring(&self) -> Result<(File, RingHeader, Limits), JoinError> {
        let io = |error| JoinError::Io { path: self.ring.clone(), error };
        let file = lanecast_os::open(&self.ring, false).map_err(io)?;
        let header_error = |error| JoinError::Header { path: self.ring.clone(), error };
        let (header, limits) =
            RingHeader::read(&read_start(&file).map_err(io)?).map_err(header_error)?;
        let length = file.metadata().map_err(io)?.len();
        if length != limits.file_bytes() || header.session.get() != self.session {
            let what = "the file's name or length is not that of its header";
            return Err(header_error(lanecast_wire::shm::HeaderError::Damaged(what)));
        }
        Ok((file, header, limits))
    }

    /// Opens the gate file and checks that it belongs to the ring.
    pub(crate) fn open_gate(&self, limits: &Limits, writable: bool) -> Result<File, JoinError> {
        let io = |error| JoinError::Io { path: self.gate.clone(), error };
        let file = lanecast_os::open(&self.gate, writable).map_err(io)?;
        let slots = limits.subscribers_max;
        GateHeader::read(&read_start(&file).map_err(io)?, self.session, slots)
            .map_err(|error| JoinError::Header { path: self.gate.clone(), error })?;
        Ok(file)
    }

    /// Removes both names; mapped memory stays valid.
    pub(crate) fn remove(&self) -> io::Result<()> {
        // The gate last: a gate alone is removed as stale, a ring alone is an error to readers.
        let removed = std::fs::remove_file(&self.ring);
        std::fs::remove_file(&self.gate).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        removed.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
    }
}

/// The first bytes of a file, as many as a ring header has; fewer if the file is shorter.
fn read_start(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size_of::<RingHeader>()];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() == SLOT_BYTES);
