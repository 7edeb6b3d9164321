//! Forward error correction: the code by which parity of a block of datagrams is computed, and
//! lost ones are rebuilt.
//!
//! A datagram's *symbol* is the length of its blocks and the blocks themselves, followed by zeros.
//! Row *r* of the code is the sum of all symbols of the block, each multiplied by a coefficient of
//! a Cauchy matrix over GF(2^8): any *n* rows rebuild any *n* lost datagrams. A coefficient
//! depends on row and place only, so a block may have fewer datagrams than others, and further
//! rows can be computed later. `docs/protocol/net.md` has the formula. The field's arithmetic is
//! that of `fec-rs`, by the processor's vector instructions.

use crate::sequence::ahead;
use crate::{MICROSECOND, Nanos};
use fec_rs::galois;
use lanecast_wire::net::{FEC_DATA_MAX, FEC_PARITY_MAX, SYMBOL_LENGTH_BYTES};

/// Longest span of a block, in sequences: the bits of its members.
pub(crate) const SPAN: u64 = u64::BITS as u64;

/// Parity of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FecSettings {
    /// Most data datagrams of a block: 1 to [`FEC_DATA_MAX`].
    pub data: u8,
    /// Parity frames that follow each block unasked; with 0, parity only answers NAKs. At most
    /// [`FEC_PARITY_MAX`].
    pub parity: u8,
    /// Longest time from a datagram to the parity of its block, which then has fewer datagrams;
    /// at most 65,535 µs.
    pub delay: Nanos,
}

impl FecSettings {
    /// Longest [`delay`](Self::delay).
    pub const DELAY_MAX: Nanos = u16::MAX as Nanos * MICROSECOND;

    /// The nearest settings within the limits.
    pub(crate) fn clamped(self) -> Self {
        Self {
            data: self.data.clamp(1, FEC_DATA_MAX as u8),
            parity: self.parity.min(FEC_PARITY_MAX as u8),
            delay: self.delay.min(Self::DELAY_MAX),
        }
    }
}

/// Datagrams that share their parity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FecBlock {
    pub(crate) first: u64,
    /// Bit *n*: the datagram *n* after the first is in the block.
    pub(crate) members: u64,
}

impl FecBlock {
    pub(crate) const fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// Number of datagrams.
    pub(crate) const fn count(&self) -> usize {
        self.members.count_ones() as usize
    }

    /// Sequence after the last datagram.
    pub(crate) const fn end(&self) -> u64 {
        self.first.wrapping_add(SPAN - self.members.leading_zeros() as u64)
    }

    /// Adds a datagram; the first one begins the block.
    pub(crate) const fn add(&mut self, sequence: u64) {
        if self.members == 0 {
            self.first = sequence;
        }
        debug_assert!(self.takes(sequence), "the caller looks before");
        self.members |= 1 << (sequence.wrapping_sub(self.first) % SPAN);
    }

    /// Whether the datagram is within the span of the block.
    pub(crate) const fn takes(&self, sequence: u64) -> bool {
        self.members == 0 || sequence.wrapping_sub(self.first) < SPAN
    }

    /// Whether the datagram is in the block.
    pub(crate) const fn contains(&self, sequence: u64) -> bool {
        let at = ahead(sequence, self.first);
        at >= 0 && at < SPAN as i64 && self.members >> at & 1 == 1
    }

    /// The sequences in order.
    pub(crate) fn sequences(self) -> impl Iterator<Item = u64> {
        (0..SPAN)
            .filter(move |at| self.members >> at & 1 == 1)
            .map(move |at| self.first.wrapping_add(at))
    }
}

/// Coefficient of the datagram at place `at` of its block, in a row.
fn coefficient(row: u8, at: usize) -> u8 {
    // Never zero: places begin where rows end.
    galois::div(1, (FEC_PARITY_MAX + at) as u8 ^ row)
}

/// Bytes of a datagram's symbol.
pub(crate) const fn symbol_bytes(blocks: &[u8]) -> usize {
    SYMBOL_LENGTH_BYTES + blocks.len()
}

/// Adds the symbol of a datagram with these `blocks`, at place `at`, to a row's.
///
/// # Panics
/// If it is longer than the row's.
pub(crate) fn add_symbol(row: u8, at: usize, blocks: &[u8], sum: &mut [u8]) {
    let factor = coefficient(row, at);
    let (length, rest) = sum.split_at_mut(SYMBOL_LENGTH_BYTES);
    galois::mul_slice_xor(factor, &(blocks.len() as u16).to_le_bytes(), length);
    galois::mul_slice_xor(factor, blocks, &mut rest[..blocks.len()]);
}

/// Blocks of the datagram in a symbol; `None` if it is not well formed.
pub(crate) fn blocks_of(symbol: &[u8]) -> Option<&[u8]> {
    let (length, rest) = symbol.split_first_chunk::<SYMBOL_LENGTH_BYTES>()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (blocks, padding) = rest.split_at_checked(length)?;
    // What was not computed from datagrams has anything there.
    padding.iter().all(|byte| *byte == 0).then_some(blocks)
}

/// Solves for the datagrams at the places `lost`: `rows` are as many, without the symbols of the
/// datagrams that are there. Returns their symbols in the same order.
pub(crate) fn solve(lost: &[usize], mut rows: Vec<(u8, Vec<u8>)>) -> Vec<Vec<u8>> {
    let of = |(row, _): &(u8, Vec<u8>)| lost.iter().map(|at| coefficient(*row, *at)).collect();
    let mut matrix: Vec<Vec<u8>> = rows.iter().map(of).collect();
    // Gauss and Jordan. No pivot is zero: every square part of a Cauchy matrix is regular.
    for column in 0..lost.len() {
        for other in (0..lost.len()).filter(|other| *other != column) {
            let factor = galois::div(matrix[other][column], matrix[column][column]);
            let [from, to] = matrix.get_disjoint_mut([column, other]).expect("two rows");
            galois::mul_slice_xor(factor, from, to);
            let [from, to] = rows.get_disjoint_mut([column, other]).expect("two rows");
            galois::mul_slice_xor(factor, &from.1, &mut to.1);
        }
    }
    let scaled = rows.into_iter().enumerate().map(|(at, (_, bytes))| {
        let mut symbol = vec![0; bytes.len()];
        galois::mul_slice(galois::div(1, matrix[at][at]), &bytes, &mut symbol);
        symbol
    });
    scaled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use fec_rs::ReedSolomon;

    /// Datagrams of unequal lengths.
    fn datagrams(count: usize, seed: u64) -> Vec<Vec<u8>> {
        let mut rng = Rng::new(seed);
        (0..count).map(|_| (0..rng.below(90)).map(|_| rng.below(255) as u8).collect()).collect()
    }

    fn row(row: u8, datagrams: &[Vec<u8>]) -> Vec<u8> {
        let longest = datagrams.iter().map(|blocks| symbol_bytes(blocks)).max().unwrap_or(0);
        let mut sum = vec![0; longest];
        datagrams.iter().enumerate().for_each(|(at, blocks)| add_symbol(row, at, blocks, &mut sum));
        sum
    }

    /// Multiplication as the page defines it.
    fn times(a: u8, b: u8) -> u8 {
        let (mut product, mut a) = (0, u16::from(a));
        for bit in 0..8 {
            product ^= if b >> bit & 1 == 1 { a } else { 0 };
            a = if a & 0x80 == 0 { a << 1 } else { a << 1 ^ 0x11d };
        }
        product as u8
    }

    #[test]
    fn rows_are_those_of_the_library_and_of_the_page() {
        let data = datagrams(5, 3);
        let longest = data.iter().map(|blocks| symbol_bytes(blocks)).max().unwrap();
        let mut shards: Vec<Vec<u8>> = data
            .iter()
            .map(|blocks| {
                let mut symbol = (blocks.len() as u16).to_le_bytes().to_vec();
                symbol.extend(blocks);
                symbol.resize(longest, 0);
                symbol
            })
            .collect();
        let symbols = shards.clone();
        shards.resize(5 + FEC_PARITY_MAX, vec![0; longest]);
        ReedSolomon::new(5, FEC_PARITY_MAX).unwrap().encode(&mut shards).unwrap();
        for number in 0..FEC_PARITY_MAX as u8 {
            let computed = row(number, &data);
            assert_eq!(computed, shards[5 + usize::from(number)], "row {number}");
            for at in 0..longest {
                let by_hand = symbols.iter().enumerate().fold(0, |sum, (place, symbol)| {
                    let divisor = (32 + place) as u8 ^ number;
                    let inverse = (1..=255).find(|it| times(*it, divisor) == 1).unwrap();
                    sum ^ times(inverse, symbol[at])
                });
                assert_eq!(computed[at], by_hand, "byte {at} of row {number}");
            }
        }
    }

    #[test]
    fn the_normative_page_s_example_is_the_code_s() {
        const PAGE: &str = include_str!("../../../docs/protocol/net.md");
        assert!(PAGE.contains("row 0 is `ab 00 ab 2a`: 1/32 is `6c`, and 1/33 is `ed`"));
        assert_eq!(row(0, &[vec![1], vec![2, 3]]), [0xab, 0, 0xab, 0x2a]);
        assert_eq!((coefficient(0, 0), coefficient(0, 1)), (0x6c, 0xed));
    }

    #[test]
    fn any_rows_rebuild_as_many_datagrams() {
        let mut rng = Rng::new(1);
        for seed in 0..300 {
            let count = 1 + rng.below(FEC_DATA_MAX as u64 - 1) as usize;
            let data = datagrams(count, seed);
            let mut places: Vec<usize> = (0..count).collect();
            let mut numbers: Vec<u8> = (0..FEC_PARITY_MAX as u8).collect();
            let lost = 1 + rng.below(count.min(6) as u64 - 1) as usize;
            while places.len() > lost {
                places.remove(rng.below(places.len() as u64 - 1) as usize);
            }
            while numbers.len() > lost {
                numbers.remove(rng.below(numbers.len() as u64 - 1) as usize);
            }
            let mut rows: Vec<_> = numbers.iter().map(|it| (*it, row(*it, &data))).collect();
            for (number, sum) in &mut rows {
                for at in (0..count).filter(|at| !places.contains(at)) {
                    add_symbol(*number, at, &data[at], sum);
                }
            }
            for (place, symbol) in places.iter().zip(solve(&places, rows)) {
                assert_eq!(blocks_of(&symbol), Some(&data[*place][..]), "{count}, {places:?}");
            }
        }
    }

    #[test]
    fn symbols_that_are_not_well_formed_are_refused() {
        assert_eq!(blocks_of(&[2, 0, 7, 8, 0]), Some(&[7, 8][..]));
        assert_eq!(blocks_of(&[0, 0]), Some(&[][..]));
        for symbol in [&[2, 0, 7, 8, 1][..], &[4, 0, 7, 8, 0], &[255, 255, 0], &[1], &[]] {
            assert_eq!(blocks_of(symbol), None, "{symbol:?}");
        }
    }

    #[test]
    fn a_block_knows_its_datagrams_through_the_wrap() {
        let mut block = FecBlock::default();
        let first = u64::MAX - 1;
        for sequence in [first, first.wrapping_add(2), first.wrapping_add(63)] {
            assert!(block.takes(sequence));
            block.add(sequence);
        }
        assert_eq!((block.count(), block.end()), (3, first.wrapping_add(64)));
        assert!(!block.takes(first.wrapping_add(64)) && !block.takes(first.wrapping_sub(1)));
        assert!(block.contains(0) && !block.contains(1) && !block.contains(first - 1));
        assert_eq!(block.sequences().collect::<Vec<_>>(), [first, 0, 61]);
    }
}
