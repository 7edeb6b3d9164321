//! Computes parity frames from the datagrams in the send window, and remembers the blocks that were
//! sent to a group: further parity of them may answer NAKs.

use super::open_block::OpenBlock;
use super::window::Window;
use crate::Nanos;
use crate::fec::{FecBlock, FecSettings, add_symbol, symbol_bytes};
use crate::sequence::{ahead, before};
use lanecast_wire::net::{
    DATA_OFFSET, DataHeader, FrameHeader, FrameWriter, Kind, ParityBody, SYMBOL_LENGTH_BYTES,
};
use std::collections::VecDeque;

/// Bytes by which a datagram of a session with parity has to be shorter than a frame: a parity
/// frame is longer than the longest datagram of its block.
pub(super) const OVERHEAD: usize =
    (size_of::<ParityBody>() + SYMBOL_LENGTH_BYTES).next_multiple_of(8);
/// Blocks whose parity can still answer NAKs.
const SENT_MAX: usize = 256;

/// A block that was sent to the group.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentBlock {
    pub(super) block: FecBlock,
    /// Next row to answer NAKs with: none is sent twice.
    pub(super) next_row: u8,
    /// Last answer, and the rows of it.
    pub(super) answered_at: Option<Nanos>,
    pub(super) answered: usize,
}

/// Parity of a session: its settings, and what it is computed with.
#[derive(Debug)]
pub(super) struct ParityEncoder {
    pub(super) settings: FecSettings,
    /// Open block of the group; unicast receivers have their own.
    pub(super) group: OpenBlock,
    /// Blocks sent to the group, the oldest first.
    sent: VecDeque<SentBlock>,
    /// The frame to be sent, and its symbol.
    pub(super) frame: Vec<u8>,
    symbol: Vec<u8>,
}

impl ParityEncoder {
    pub(super) fn new(settings: FecSettings) -> Self {
        Self {
            settings: settings.clamped(),
            group: OpenBlock::default(),
            sent: VecDeque::new(),
            frame: Vec::new(),
            symbol: Vec::new(),
        }
    }

    /// Computes a parity frame; false if a datagram of the block is no longer retained.
    pub(super) fn compute(
        &mut self,
        (window, session): (&Window, u64),
        (block, skipped): (FecBlock, u32),
        row: u8,
    ) -> bool {
        if !block.sequences().all(|sequence| window.holds(sequence)) {
            return false;
        }
        let blocks = |sequence| &window.datagram(sequence)[DATA_OFFSET..];
        let longest = block.sequences().map(|sequence| symbol_bytes(blocks(sequence))).max();
        self.symbol.clear();
        self.symbol.resize(longest.unwrap_or(SYMBOL_LENGTH_BYTES), 0);
        for (at, sequence) in block.sequences().enumerate() {
            add_symbol(row, at, blocks(sequence), &mut self.symbol);
        }
        let header = size_of::<FrameHeader>() + size_of::<DataHeader>() + size_of::<ParityBody>();
        self.frame.resize(header + self.symbol.len(), 0);
        let mut writer = FrameWriter::new(&mut self.frame, Kind::Parity, 0, session, block.first);
        let retained = ahead(block.first, window.oldest()).clamp(0, i64::from(u32::MAX)) as u32;
        let body = ParityBody {
            members: block.members.into(),
            row,
            proactive: self.settings.parity,
            reserved: 0.into(),
        };
        let _fits = writer.add_data_header(skipped, retained)
            && writer.add(&body)
            && writer.add(&self.symbol[..]);
        writer.finish();
        true
    }

    /// The block that was sent to the group with the datagram, if it is remembered.
    pub(super) fn sent_block(&mut self, sequence: u64) -> Option<&mut SentBlock> {
        let at = self.sent.partition_point(|sent| !before(sequence, sent.block.end()));
        self.sent.get_mut(at).filter(|sent| sent.block.contains(sequence))
    }

    /// Remembers a block, whose further rows may answer NAKs.
    pub(super) fn remember(&mut self, open: OpenBlock) {
        if self.sent.len() == SENT_MAX {
            self.sent.pop_front();
        }
        let (block, next_row) = (open.block, self.settings.parity);
        self.sent.push_back(SentBlock { block, next_row, answered_at: None, answered: 0 });
    }
}
