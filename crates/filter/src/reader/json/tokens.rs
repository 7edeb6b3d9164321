//! Where the brackets, commas and quotes of a JSON text are, and what may stand between them.

use crate::malformed::{Malformed, MalformedReason};
use lanecast_base::simd::{BLOCK, Blocks, Masks, Scan, scan};
use std::num::NonZero;

/// The tokens of one text, in order: both quotes of each string, and outside of strings brackets,
/// braces and commas.
///
/// They are searched block by block: a reader that stops early has not searched much in vain. Small
/// enough to be copied by who wants to have it in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens<'a> {
    bytes: &'a [u8],
    block: Found,
    last_end: usize,
}

/// A block with tokens.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    start: usize,
    /// Those that are yet to come.
    left: u64,
    carry: Carry,
}

/// What a block leaves to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Carry {
    /// Whether it ends within a string.
    in_string: bool,
    /// Whether a backslash ends it and means the next byte.
    escapes_next: bool,
    /// Whether there was any backslash.
    has_escapes: bool,
}

/// What comes behind a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// A token that is yet to be read.
    Pending,
    /// The token at this place, which ended a literal.
    Consumed(usize),
    /// The first token within.
    FirstInside,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, block: search(bytes, 0, Carry::default()), last_end: 0 }
    }

    /// The text.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The place of the next token.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<usize> {
        if self.block.left == 0 {
            self.block = search(self.bytes, self.block.start + BLOCK, self.block.carry);
        }
        let left = NonZero::new(self.block.left)?;
        let place = self.block.start + left.trailing_zeros() as usize;
        self.block.left &= left.get() - 1;
        self.last_end = place + 1;
        Some(place)
    }

    /// The same where there has to be one.
    #[inline(always)]
    pub(crate) fn token(&mut self) -> Result<usize, Malformed> {
        self.next().ok_or(Malformed::new(self.bytes.len(), MalformedReason::Unfinished))
    }

    /// The place behind the last token.
    #[inline(always)]
    pub(crate) fn last_end(&self) -> usize {
        self.last_end
    }

    /// Whether there is a backslash in what was searched so far, which is all up to the last
    /// token at least.
    #[inline(always)]
    pub(crate) fn has_escapes(&self) -> bool {
        self.block.carry.has_escapes
    }

    /// The quote that the next name of an object starts with; none at the end of the object.
    #[inline(always)]
    pub(super) fn name(&mut self, next: Next) -> Result<Option<usize>, Malformed> {
        let is_first = matches!(next, Next::FirstInside);
        if !is_first && self.ends(next, b'}')? {
            return Ok(None);
        }
        let before = self.last_end;
        let open = self.token()?;
        match self.bytes[open] {
            _ if !self.is_blank(before, open) => Err(self.unexpected(before)),
            b'"' => Ok(Some(open)),
            b'}' if is_first => Ok(None),
            _ => Err(self.unexpected(open)),
        }
    }

    /// Skips to the end of the object or array that the last token is in or began.
    #[inline(always)]
    pub(crate) fn skip(&mut self) -> Result<(), Malformed> {
        let mut depth = 1;
        while depth > 0 {
            match self.bytes[self.token()?] {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// Skips a value that starts behind `start`, where `at` is the first token.
    #[inline(always)]
    pub(super) fn skip_value(&mut self, start: usize, at: usize) -> Result<Next, Malformed> {
        match self.bytes[at] {
            b'"' | b'{' | b'[' if !self.is_blank(start, at) => {
                return Err(self.unexpected(self.skip_blanks(start)));
            }
            b'"' => _ = self.token()?,
            b'{' | b'[' => self.skip()?,
            _ => {
                let start = self.skip_blanks(start);
                return match self.bytes[start] {
                    b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Ok(Next::Consumed(at)),
                    _ => Err(self.not_a_literal(start, at)),
                };
            }
        }
        Ok(Next::Pending)
    }

    /// Whether the token behind a value is `end`, where it could also be a comma.
    #[inline(always)]
    pub(super) fn ends(&mut self, next: Next, end: u8) -> Result<bool, Malformed> {
        let at = match next {
            Next::Consumed(at) => at,
            Next::Pending | Next::FirstInside => {
                let before = self.last_end;
                let at = self.token()?;
                if !self.is_blank(before, at) {
                    return Err(self.unexpected(self.skip_blanks(before)));
                }
                at
            }
        };
        match self.bytes[at] {
            b',' => Ok(false),
            byte if byte == end => Ok(true),
            _ => Err(self.unexpected(at)),
        }
    }

    #[inline(always)]
    pub(crate) fn is_blank(&self, start: usize, end: usize) -> bool {
        start == end || self.skip_blanks(start) >= end
    }

    /// The first place from `start` on that is not blank.
    #[inline(always)]
    pub(crate) fn skip_blanks(&self, mut start: usize) -> usize {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(start) {
            start += 1;
        }
        start
    }

    #[cold]
    pub(crate) fn unexpected(&self, at: usize) -> Malformed {
        let is_end = at >= self.bytes.len();
        Malformed::new(
            at,
            if is_end { MalformedReason::Unfinished } else { MalformedReason::Unexpected },
        )
    }

    /// What is wrong with the literal between `start` and the token at `end`.
    #[cold]
    pub(super) fn not_a_literal(&self, start: usize, end: usize) -> Malformed {
        match self.bytes.get(start..end).unwrap_or_default().trim_ascii_end() {
            [] => self.unexpected(end),
            _ => Malformed::new(start, MalformedReason::NotALiteral),
        }
    }
}

/// The first block from `start` on that has tokens; if there is none, one that has none.
#[inline(never)]
fn search(bytes: &[u8], start: usize, carry: Carry) -> Found {
    scan(Search { bytes, start, carry })
}

struct Search<'a> {
    bytes: &'a [u8],
    start: usize,
    carry: Carry,
}

impl Scan for Search<'_> {
    type Output = Found;

    #[inline(always)]
    fn run<M: Masks>(self, masks: M) -> Found {
        let Self { bytes, mut start, mut carry } = self;
        let mut short = [0; BLOCK];
        let blocks = Blocks::new(bytes, &mut short);
        while let Some(block) = blocks.get(start) {
            let mut quotes = block.any(masks, *b"\"");
            let backslashes = block.any(masks, *b"\\");
            if backslashes != 0 || carry.escapes_next {
                quotes &= !carry.escaped(backslashes);
            }
            let inside = up_to_each(quotes) ^ 0_u64.wrapping_sub(carry.in_string.into());
            carry.in_string = inside >> (BLOCK - 1) == 1;
            let left = block.any(masks, *b"{}[],") & !inside | quotes;
            if left != 0 {
                return Found { start, left, carry };
            }
            start += BLOCK;
        }
        Found { start, left: 0, carry }
    }
}

impl Carry {
    /// Which bytes of a block a backslash before them means.
    #[inline]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        let mut escaped = u64::from(self.escapes_next);
        let mut left = backslashes & !escaped;
        (self.has_escapes, self.escapes_next) = (true, false);
        while left != 0 {
            let backslash = left & left.wrapping_neg();
            self.escapes_next = backslash == 1 << 63;
            escaped |= backslash << 1;
            left &= !(backslash | backslash << 1);
        }
        escaped
    }
}

/// Each bit says whether an odd number of `bits` is at its place and below.
#[inline(always)]
fn up_to_each(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the search finds, found slowly.
    fn slowly(bytes: &[u8]) -> Vec<usize> {
        let (mut places, mut in_string, mut is_escaped) = (Vec::new(), false, false);
        for (at, byte) in bytes.iter().enumerate() {
            let is_token = match byte {
                b'"' if !is_escaped => {
                    in_string = !in_string;
                    true
                }
                b'{' | b'}' | b'[' | b']' | b',' => !in_string,
                _ => false,
            };
            is_escaped = *byte == b'\\' && !is_escaped;
            if is_token {
                places.push(at);
            }
        }
        places
    }

    proptest! {
        #[test]
        fn tokens_are_outside_of_strings(text in "[a\"\\\\{},:]{0,200}", repeats in 1..8_usize) {
            let bytes = text.repeat(repeats).into_bytes();
            let mut tokens = Tokens::new(&bytes);
            let found: Vec<usize> = std::iter::from_fn(|| tokens.next()).collect();
            prop_assert_eq!(found, slowly(&bytes));
        }
    }
}
