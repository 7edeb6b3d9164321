//! JSON tokenizer: finds brackets, braces, commas and quotes 64 bytes at a time.

use crate::malformed::{Malformed, MalformedReason};
use lanecast_base::simd::{BLOCK, Blocks, Masks, Scan, scan};
use std::num::NonZero;

/// Tokens of one text in order: both quotes of each string and, outside of strings, brackets,
/// braces and commas.
///
/// Blocks are searched on demand, so a reader that stops early has searched little in vain. Small
/// enough to be copied into registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens<'a> {
    bytes: &'a [u8],
    block: Found,
    last_end: usize,
}

/// A block with its tokens.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    start: usize,
    /// Mask of the tokens not yet consumed.
    left: u64,
    carry: Carry,
}

/// State carried from one block to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Carry {
    /// Whether the block ends within a string.
    in_string: bool,
    /// Whether the last byte is a backslash that escapes the next one.
    escapes_next: bool,
    /// Whether there was any backslash so far.
    has_escapes: bool,
}

/// Position after a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// The next token is not yet read.
    Pending,
    /// The token at this position ended a literal and is consumed.
    Consumed(usize),
    /// The first token inside an object or array is next.
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

    /// Position of the next token.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<usize> {
        // The block is used up; the search skips blocks without tokens.
        if self.block.left == 0 {
            self.block = search(self.bytes, self.block.start + BLOCK, self.block.carry);
        }
        let left = NonZero::new(self.block.left)?;
        let place = self.block.start + left.trailing_zeros() as usize;
        // Subtracting one clears the lowest bit; `left` is not 0 here.
        self.block.left &= left.get() - 1;
        self.last_end = place + 1;
        Some(place)
    }

    /// Position of the next token.
    ///
    /// # Errors
    ///
    /// If the text ends.
    #[inline(always)]
    pub(crate) fn token(&mut self) -> Result<usize, Malformed> {
        self.next().ok_or(Malformed::new(self.bytes.len(), MalformedReason::Unfinished))
    }

    /// Position after the last token.
    #[inline(always)]
    pub(crate) fn last_end(&self) -> usize {
        self.last_end
    }

    /// Whether there is a backslash before the last token. May be true for one after it.
    #[inline(always)]
    pub(crate) fn has_escapes(&self) -> bool {
        self.block.carry.has_escapes
    }

    /// Position of the quote that opens the next member name; `None` at the end of the object.
    #[inline(always)]
    pub(super) fn name(&mut self, next: Next) -> Result<Option<usize>, Malformed> {
        let is_first = matches!(next, Next::FirstInside);
        if !is_first && self.ends(next, b'}')? {
            return Ok(None);
        }
        let before = self.last_end;
        let open = self.token()?;
        match self.bytes[open] {
            // Anything but blanks before the token is an error, whatever the token.
            _ if !self.is_blank(before, open) => Err(self.unexpected(before)),
            b'"' => Ok(Some(open)),
            b'}' if is_first => Ok(None),
            _ => Err(self.unexpected(open)),
        }
    }

    /// Skips to the end of the object or array that the last token belongs to.
    #[inline(always)]
    pub(crate) fn skip(&mut self) -> Result<(), Malformed> {
        let mut depth = 1;
        while depth > 0 {
            match self.bytes[self.token()?] {
                // Kinds of brackets need not pair here, as unwanted values are only skipped.
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// Skips the value after `start`; `at` is its first token.
    #[inline(always)]
    pub(super) fn skip_value(&mut self, start: usize, at: usize) -> Result<Next, Malformed> {
        match self.bytes[at] {
            b'"' | b'{' | b'[' if !self.is_blank(start, at) => {
                return Err(self.unexpected(self.skip_blanks(start)));
            }
            // Brackets in strings are no tokens, so the next token is the closing quote.
            b'"' => _ = self.token()?,
            b'{' | b'[' => self.skip()?,
            _ => {
                let start = self.skip_blanks(start);
                return match self.bytes[start] {
                    // The first byte tells literals well enough if the value is not wanted.
                    b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Ok(Next::Consumed(at)),
                    _ => Err(self.not_a_literal(start, at)),
                };
            }
        }
        Ok(Next::Pending)
    }

    /// Whether the token after a value is `end` instead of a comma.
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
        // Most messages have no blanks, and the comparison spares the loop.
        start == end || self.skip_blanks(start) >= end
    }

    /// First position from `start` that is not blank.
    #[inline(always)]
    pub(crate) fn skip_blanks(&self, mut start: usize) -> usize {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(start) {
            start += 1;
        }
        start
    }

    #[cold]
    pub(crate) fn unexpected(&self, at: usize) -> Malformed {
        // An error past the last byte means that the message is cut off.
        let is_end = at >= self.bytes.len();
        Malformed::new(
            at,
            if is_end { MalformedReason::Unfinished } else { MalformedReason::Unexpected },
        )
    }

    /// Error of the literal between `start` and the token at `end`.
    #[cold]
    pub(super) fn not_a_literal(&self, start: usize, end: usize) -> Malformed {
        match self.bytes.get(start..end).unwrap_or_default().trim_ascii_end() {
            [] => self.unexpected(end),
            _ => Malformed::new(start, MalformedReason::NotALiteral),
        }
    }
}

/// The first block from `start` with tokens; an empty one at the end of the text.
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
            // Most blocks have no backslash and skip the loop over escapes.
            if backslashes != 0 || carry.escapes_next {
                quotes &= !carry.escaped(backslashes);
            }
            // An open string at the block start inverts the parity.
            let inside = up_to_each(quotes) ^ 0_u64.wrapping_sub(carry.in_string.into());
            carry.in_string = inside >> (BLOCK - 1) == 1;
            // Brackets and commas count outside of strings only, quotes always.
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
    /// Mask of the escaped bytes of a block.
    #[inline]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        let mut escaped = u64::from(self.escapes_next);
        let mut left = backslashes & !escaped;
        (self.has_escapes, self.escapes_next) = (true, false);
        while left != 0 {
            let backslash = left & left.wrapping_neg();
            // The escaped byte is the first one of the next block.
            self.escapes_next = backslash == 1 << 63;
            escaped |= backslash << 1;
            // An escaped backslash escapes nothing itself.
            left &= !(backslash | backslash << 1);
        }
        escaped
    }
}

/// Prefix XOR: each bit is the parity of all bits up to it. Applied to quotes, it marks the bytes
/// inside of strings.
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

    /// Reference implementation of the token search.
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
