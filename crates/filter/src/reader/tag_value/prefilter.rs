//! Which fields of a block are worth a look, found for all of them at once: whether they are sound,
//! and whether their names may be wanted.

use lanecast_base::simd::{BLOCK, Block, Blocks, Classes, Masks};

/// Names up to which it is worth while to sift them.
const NAMES_MAX: usize = 16;

/// What tells fields apart without looking at one after the other.
#[derive(Clone, Debug)]
pub(super) struct Prefilter {
    field: u8,
    pair: u8,
    /// Whether names are digits.
    is_fix: bool,
    /// How wanted names begin, if that tells something.
    names: Option<Classes>,
}

/// What is known of a block.
pub(super) struct FieldMasks {
    /// Where fields end.
    pub(super) ends: u64,
    /// Where fields start.
    pub(super) starts: u64,
    /// Where fields start that may be wanted.
    pub(super) wanted: u64,
    /// Whether the fields that start here have names as far as the block goes, and so has what
    /// started before.
    pub(super) are_sound: bool,
}

/// Certain bytes of a block.
#[derive(Default)]
struct ByteMasks {
    /// Those behind fields.
    ends: u64,
    /// Those that stand behind names, or within values.
    pairs: u64,
    /// Those that names have.
    names: u64,
    /// Those that wanted names may start with.
    passing: u64,
}

/// What a block leaves to the next.
#[derive(Clone, Copy)]
pub(super) struct Carry {
    /// 1 if a field starts with it.
    start: u64,
    /// 1 if it starts within a name.
    name: u64,
}

impl Carry {
    /// Before the first block.
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
            let second = name.get(1).copied().unwrap_or(pair);
            is_telling &= classes.put([name[0], second], 1 << (index % 8));
        }
        Self { field, pair, is_fix, names: is_telling.then_some(classes) }
    }

    /// Marks the block that starts at `at` of a message that has `length` bytes without the last
    /// separator.
    #[inline(always)]
    pub(super) fn field_masks<M: Masks>(
        &self,
        masks: M,
        (blocks, at, length): (Blocks<'_>, usize, usize),
        carry: &mut Carry,
    ) -> FieldMasks {
        let (seen, rest) = match blocks.inner(at) {
            Some(block) => (self.look(masks, block), BLOCK),
            None => {
                let block = blocks.last(at);
                (block.map_or(ByteMasks::default(), |block| self.look(masks, block)), length - at)
            }
        };
        let ByteMasks { mut ends, pairs, mut names, passing } = seen;
        let mut starts = ends << 1 | carry.start;
        carry.start = ends >> (BLOCK - 1);
        // What the last field lacks is put where it would be.
        if rest < BLOCK {
            ends |= 1 << rest;
            starts &= u64::MAX >> (BLOCK - 1 - rest);
        }
        names &= !(ends | pairs);
        // Adding carries each bit through the name that it stands before, to what ends it.
        let (past, is_within) = names.overflowing_add(starts | carry.name);
        carry.name = is_within.into();
        let are_sound = (starts & pairs) | (past & !names & !pairs) == 0;
        FieldMasks { ends, starts, wanted: starts & passing, are_sound }
    }

    #[inline(always)]
    fn look<M: Masks>(&self, masks: M, block: Block<'_>) -> ByteMasks {
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
