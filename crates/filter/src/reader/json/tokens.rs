//! Where the brackets, commas and quotes of a JSON text are.

use lanecast_base::mask::{BLOCK, Blocks, Masks, Scan, scan};

/// Bytes that are searched at once: a reader that stops early has not searched much in vain.
const WINDOW: usize = 8 * BLOCK;

/// Room for the tokens of a window.
#[derive(Clone, Debug)]
pub(crate) struct Tape {
    places: Box<[u32; WINDOW]>,
}

impl Default for Tape {
    fn default() -> Self {
        Self { places: Box::new([0; WINDOW]) }
    }
}

/// The tokens of one text, in order: both quotes of each string, and outside of strings brackets,
/// braces and commas.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    bytes: &'a [u8],
    places: &'a mut [u32; WINDOW],
    /// How many of `places` hold tokens, and which is next.
    count: usize,
    next: usize,
    last_end: usize,
    state: State,
}

/// Where the search for tokens stands.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The start of the next window.
    start: usize,
    /// All ones within a string.
    in_string: u64,
    /// Whether a backslash ended the last block and means its next byte.
    escapes_next: bool,
    /// Whether there was any backslash.
    has_escapes: bool,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(bytes: &'a [u8], tape: &'a mut Tape) -> Self {
        let state = State::default();
        Self { bytes, places: &mut tape.places, count: 0, next: 0, last_end: 0, state }
    }

    /// The place of the next token.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<usize> {
        if self.next == self.count && !self.refill() {
            return None;
        }
        let place = *self.places.get(self.next)? as usize;
        self.next += 1;
        self.last_end = place + 1;
        // Never false: it tells the compiler that what comes of this is within the text.
        (place < self.bytes.len()).then_some(place)
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
        self.state.has_escapes
    }

    #[inline(never)]
    fn refill(&mut self) -> bool {
        (self.count, self.next) = (0, 0);
        while self.count == 0 && self.state.start < self.bytes.len() {
            let (bytes, places) = (self.bytes, &mut *self.places);
            (self.count, self.state) = scan(Search { bytes, places, state: self.state });
        }
        self.count > 0
    }
}

/// The search of one window.
struct Search<'a> {
    bytes: &'a [u8],
    places: &'a mut [u32; WINDOW],
    state: State,
}

impl Scan for Search<'_> {
    type Output = (usize, State);

    #[inline(always)]
    fn run<M: Masks>(self, masks: M) -> (usize, State) {
        let Self { bytes, places, mut state } = self;
        let mut short = [0; BLOCK];
        let blocks = Blocks::new(bytes, &mut short);
        let end = state.start + WINDOW;
        let mut count = 0;
        while state.start < end
            && let Some(block) = blocks.get(state.start)
        {
            let mut quotes = block.any(masks, *b"\"");
            let backslashes = block.any(masks, *b"\\");
            if backslashes != 0 || state.escapes_next {
                quotes &= !state.escaped(backslashes);
            }
            let inside = up_to_each(quotes) ^ state.in_string;
            state.in_string = 0_u64.wrapping_sub(inside >> 63);
            let mut tokens = block.any(masks, *b"{}[],") & !inside | quotes;
            while tokens != 0 {
                if let Some(place) = places.get_mut(count) {
                    *place = (state.start + tokens.trailing_zeros() as usize) as u32;
                }
                count += 1;
                tokens &= tokens - 1;
            }
            state.start += BLOCK;
        }
        (count, state)
    }
}

impl State {
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
            let mut tape = Tape::default();
            let mut tokens = Tokens::new(&bytes, &mut tape);
            let found: Vec<usize> = std::iter::from_fn(|| tokens.next()).collect();
            prop_assert_eq!(found, slowly(&bytes));
        }
    }
}
