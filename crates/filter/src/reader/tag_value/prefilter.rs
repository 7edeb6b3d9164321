//! SIMD prefilter: finds, for all fields of a 64-byte block at once, which names are well-formed
//! and which may be wanted.

use lanecast_base::simd::{BLOCK, Block, Blocks, Classes, Masks};

/// Most wanted names for which the prefilter is useful.
const NAMES_MAX: usize = 16;

/// Byte classes of a field set.
#[derive(Clone, Debug)]
pub(super) struct Prefilter {
    field: u8,
    pair: u8,
    /// Whether names must be digits.
    is_fix: bool,
    /// Classes of the first two bytes of wanted names; `None` if too many names would share them.
    names: Option<Classes>,
}

/// Masks of one block, one bit per byte.
pub(super) struct FieldMasks {
    /// Ends of fields.
    pub(super) ends: u64,
    /// Starts of fields.
    pub(super) starts: u64,
    /// Starts of fields that may be wanted.
    pub(super) wanted: u64,
    /// Whether all names are well-formed as far as the block shows them, including a name continued
    /// from the previous block.
    pub(super) are_sound: bool,
}

/// Byte masks of one block.
#[derive(Default)]
struct ByteMasks {
    /// Field separators.
    ends: u64,
    /// Separators after names; within values they are plain bytes.
    pairs: u64,
    /// Bytes allowed in names.
    names: u64,
    /// Bytes that may start a wanted name.
    passing: u64,
}

/// State carried from one block to the next.
#[derive(Clone, Copy)]
pub(super) struct Carry {
    /// 1 if a field starts at the first byte.
    start: u64,
    /// 1 if the block starts within a name.
    name: u64,
}

impl Carry {
    /// State before the first block.
    pub(super) const FIRST: Self = Self { start: 1, name: 0 };
}

impl Prefilter {
    pub(super) fn new<'a>(
        is_fix: bool,
        [field, pair]: [u8; 2],
        names: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Self {
        let (mut classes, mut is_telling) = (Classes::default(), names.len() <= NAMES_MAX);
        for (index, name) in names.enumerate() {
            // A name of one byte is followed by its separator.
            let second = name.get(1).copied().unwrap_or(pair);
            is_telling &= classes.put([name[0], second], 1 << (index % 8));
        }
        Self { field, pair, is_fix, names: is_telling.then_some(classes) }
    }

    /// Masks of the block at `at`; `length` excludes the separator that may end the message.
    #[inline(always)]
    pub(super) fn field_masks<M: Masks>(
        &self,
        masks: M,
        (blocks, at, length): (Blocks<'_>, usize, usize),
        carry: &mut Carry,
    ) -> FieldMasks {
        let (seen, rest) = match blocks.inner(at) {
            Some(block) => (self.byte_masks(masks, block), BLOCK),
            None => {
                let block = blocks.last(at);
                (
                    block.map_or(ByteMasks::default(), |block| self.byte_masks(masks, block)),
                    length - at,
                )
            }
        };
        let ByteMasks { mut ends, pairs, mut names, passing } = seen;
        let mut starts = ends << 1 | carry.start;
        carry.start = ends >> (BLOCK - 1);
        // The missing separator of the last field is added.
        if rest < BLOCK {
            ends |= 1 << rest;
            starts &= u64::MAX >> (BLOCK - 1 - rest);
        }
        // Separators end the carry below even where names may contain them.
        names &= !(ends | pairs);
        // The addition carries each start bit through its name to the byte after it.
        let (past, is_within) = names.overflowing_add(starts | carry.name);
        carry.name = is_within.into();
        let are_sound = (starts & pairs) | (past & !names & !pairs) == 0;
        FieldMasks { ends, starts, wanted: starts & passing, are_sound }
    }

    #[inline(always)]
    fn byte_masks<M: Masks>(&self, masks: M, block: Block<'_>) -> ByteMasks {
        let passing = match &self.names {
            Some(names) if M::HAS_CLASSES => block.classes(masks, names),
            _ => None,
        };
        ByteMasks {
            ends: block.any(masks, [self.field]),
            pairs: block.any(masks, [self.pair]),
            names: if self.is_fix { block.digits(masks) } else { u64::MAX },
            passing: passing.unwrap_or(u64::MAX),
        }
    }
}
