//! Parity window: the datagrams that were received last, and the parity of blocks of which some are
//! missing. Bounded by constants: a slot is overwritten by a later datagram, a block by a later
//! block.

use super::gap_tracker::GapTracker;
use crate::fec::{FecBlock, FecSettings, add_symbol, blocks_of, solve, symbol_bytes};
use crate::sequence::before;
use crate::{MICROSECOND, Nanos};
use lanecast_wire::net::{DataHeader, FEC_DATA_MAX, FEC_DATAGRAM_MAX, WelcomeBody};
use std::collections::VecDeque;

/// Datagrams kept. At most this many times [`FEC_DATAGRAM_MAX`] bytes.
const SLOTS: usize = 256;
/// Blocks of which parity is kept, of each at most as many rows as it has datagrams.
const BLOCKS_MAX: usize = 8;
/// Time that parity may come later than the sender's delay tells: computing and sending it.
const SLACK: Nanos = 20 * MICROSECOND;

/// A received datagram.
#[derive(Clone, Debug, Default)]
struct Slot {
    /// `None` before the first.
    sequence: Option<u64>,
    blocks: Vec<u8>,
}

/// A block with too little parity so far.
#[derive(Debug)]
struct PendingBlock {
    block: FecBlock,
    /// Header fields of its first datagram.
    skipped: u32,
    retained: u32,
    rows: Vec<(u8, Vec<u8>)>,
}

/// A datagram that was missing and no longer is.
#[derive(Debug)]
pub(super) struct Rebuilt {
    pub(super) sequence: u64,
    pub(super) header: DataHeader,
    pub(super) blocks: Vec<u8>,
}

/// Use of a row of a block.
#[derive(Debug)]
pub(super) enum ParityUse {
    /// All datagrams of the block have come.
    None,
    /// Kept until there is enough of it.
    Kept,
    /// Contradicts other parity of its block.
    Contradiction,
}

/// Received datagrams and parity of a session.
#[derive(Debug)]
pub(super) struct ParityWindow {
    settings: FecSettings,
    slots: Box<[Slot]>,
    blocks: VecDeque<PendingBlock>,
}

impl ParityWindow {
    /// The window for the parity that a Welcome tells of; `None` if the session has none, or of a
    /// kind that this receiver cannot use.
    pub(super) fn of(welcome: &WelcomeBody) -> Option<Self> {
        let settings = FecSettings {
            data: welcome.fec_data,
            parity: welcome.fec_parity,
            delay: Nanos::from(welcome.fec_delay_us.get()) * MICROSECOND,
        };
        (1..=FEC_DATA_MAX).contains(&settings.data.into()).then(|| Self {
            settings,
            slots: vec![Slot::default(); SLOTS].into(),
            blocks: VecDeque::new(),
        })
    }

    /// Keeps a datagram for the rebuilding of others of its block.
    #[inline]
    pub(super) fn retain(&mut self, sequence: u64, blocks: &[u8]) {
        // Longer ones are in no session with parity.
        if blocks.len() <= FEC_DATAGRAM_MAX {
            let slot = &mut self.slots[sequence as usize % SLOTS];
            slot.sequence = Some(sequence);
            slot.blocks.clear();
            slot.blocks.extend_from_slice(blocks);
        }
    }

    fn blocks(&self, sequence: u64) -> Option<&[u8]> {
        let slot = &self.slots[sequence as usize % SLOTS];
        (slot.sequence == Some(sequence)).then_some(&slot.blocks)
    }

    /// Time until which a gap noticed now waits for parity before it is requested.
    pub(super) fn hold(&self, now: Nanos, round_trip: Nanos) -> Nanos {
        if self.settings.parity == 0 {
            return now;
        }
        now.saturating_add(self.settings.delay).saturating_add(round_trip / 2 + SLACK)
    }

    /// Whether parity of several blocks may become of use.
    pub(super) fn is_waiting(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Adds a row of the parity of a block.
    pub(super) fn add(
        &mut self,
        block: FecBlock,
        header: &DataHeader,
        (row, symbol): (u8, &[u8]),
        tracker: &GapTracker,
    ) -> ParityUse {
        if !is_missing_any(block, tracker) {
            return ParityUse::None;
        }
        let Some(pending) = self.blocks.iter_mut().find(|pending| pending.block == block) else {
            if self.blocks.len() == BLOCKS_MAX {
                self.blocks.pop_front();
            }
            let (skipped, retained) = (header.skipped.get(), header.retained.get());
            let rows = vec![(row, symbol.to_vec())];
            self.blocks.push_back(PendingBlock { block, skipped, retained, rows });
            return ParityUse::Kept;
        };
        let is_same_length = pending.rows.iter().all(|(_, known)| known.len() == symbol.len());
        let is_known = pending.rows.iter().any(|(known, _)| *known == row);
        if !is_same_length {
            return ParityUse::Contradiction;
        }
        // A row twice is no second equation, and more rows than datagrams are none either.
        if !is_known && pending.rows.len() < block.count() {
            pending.rows.push((row, symbol.to_vec()));
        }
        ParityUse::Kept
    }

    /// The missing datagrams of a block that has enough parity; `Err` if that is not the parity of
    /// the datagrams that have come. Blocks without missing datagrams are forgotten.
    pub(super) fn rebuild(&mut self, tracker: &GapTracker) -> Option<Result<Vec<Rebuilt>, ()>> {
        self.blocks.retain(|pending| is_missing_any(pending.block, tracker));
        let lost = |pending: &PendingBlock| {
            pending.block.sequences().filter(|sequence| self.blocks(*sequence).is_none()).count()
        };
        let at = self.blocks.iter().position(|pending| lost(pending) <= pending.rows.len())?;
        let pending = self.blocks.remove(at)?;
        Some(self.solve(pending, tracker).ok_or(()))
    }

    fn solve(&self, pending: PendingBlock, tracker: &GapTracker) -> Option<Vec<Rebuilt>> {
        let PendingBlock { block, skipped, retained, mut rows } = pending;
        let mut lost = Vec::new();
        for (at, sequence) in block.sequences().enumerate() {
            let Some(blocks) = self.blocks(sequence) else {
                lost.push(at);
                continue;
            };
            for (row, sum) in &mut rows {
                // Parity is as long as the longest symbol.
                (symbol_bytes(blocks) <= sum.len()).then(|| add_symbol(*row, at, blocks, sum))?;
            }
        }
        rows.truncate(lost.len());
        let mut solved = solve(&lost, rows).into_iter();
        let (mut rebuilt, mut before) = (Vec::new(), None);
        for sequence in block.sequences() {
            let blocks = match self.blocks(sequence) {
                Some(blocks) => blocks.to_vec(),
                None => blocks_of(&solved.next()?)?.to_vec(),
            };
            // Those between two datagrams of a block were not sent to this receiver.
            let skipped = before.map_or(skipped, |before: u64| {
                sequence.wrapping_sub(before).wrapping_sub(1) as u32
            });
            let retained = retained.saturating_add(sequence.wrapping_sub(block.first) as u32);
            before = Some(sequence);
            if is_missing(sequence, tracker) {
                let header = DataHeader { skipped: skipped.into(), retained: retained.into() };
                rebuilt.push(Rebuilt { sequence, header, blocks });
            }
        }
        Some(rebuilt)
    }
}

fn is_missing(sequence: u64, tracker: &GapTracker) -> bool {
    !before(sequence, tracker.head()) || tracker.overlaps_gap(sequence, sequence.wrapping_add(1))
}

fn is_missing_any(block: FecBlock, tracker: &GapTracker) -> bool {
    block.sequences().any(|sequence| is_missing(sequence, tracker))
}
