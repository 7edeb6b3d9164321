//! Messages packed into datagrams of one size: what the kernel's batching calls are good for.
//!
//! ```text
//!   datagram:  number u64 | item | item | ... | zeros
//!   item:      length u16 | bytes
//! ```
//!
//! Long messages are cut. The length's top bit says that the message goes on in the next datagram,
//! the one below that it was begun in the last one. A number that is not the next one drops what
//! was begun, and what goes on without a beginning is dropped as well.

/// Bytes of a datagram that a network of 1500 bytes carries whole.
pub const DATAGRAM: usize = 1472;
/// Bytes of the number at its beginning.
pub const NUMBER: usize = 8;
/// Bytes of the length of an item.
pub const LENGTH: usize = 2;
const GOES_ON: u16 = 1 << 15;
const WAS_BEGUN: u16 = 1 << 14;
/// The longest piece.
const PIECE: usize = DATAGRAM - NUMBER - LENGTH;

/// Datagrams under construction, one behind the other, each padded to the full size.
#[derive(Debug)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// Offset of the next item.
    at: usize,
    /// End of the open datagram.
    end: usize,
    number: u64,
    cut: Vec<u8>,
}

impl Outbox {
    /// Room for so many datagrams, and for those that one long message needs beyond them.
    pub fn new(datagrams: usize, longest: usize) -> Self {
        let most = datagrams + longest.div_ceil(PIECE) + 1;
        let bytes = vec![0; most * DATAGRAM];
        Self { bytes, at: 0, end: 0, number: 0, cut: vec![0; longest] }
    }

    /// Adds a message.
    #[inline]
    pub fn add(&mut self, size: usize, mut fill: impl FnMut(&mut [u8])) {
        if size <= PIECE {
            return fill(self.item(size, 0));
        }
        let mut cut = std::mem::take(&mut self.cut);
        fill(&mut cut[..size]);
        let mut pieces = cut[..size].chunks(PIECE).peekable();
        let mut begun = 0;
        while let Some(piece) = pieces.next() {
            let mark = if pieces.peek().is_some() { GOES_ON } else { 0 };
            self.item(piece.len(), mark | begun).copy_from_slice(piece);
            begun = WAS_BEGUN;
        }
        self.cut = cut;
    }

    #[inline]
    fn item(&mut self, size: usize, mark: u16) -> &mut [u8] {
        if self.at + LENGTH + size > self.end {
            self.open();
        }
        let from = self.at + LENGTH;
        self.bytes[self.at..from].copy_from_slice(&(size as u16 | mark).to_le_bytes());
        self.at = from + size;
        &mut self.bytes[from..from + size]
    }

    fn open(&mut self) {
        self.pad();
        let from = self.end;
        self.bytes[from..from + NUMBER].copy_from_slice(&self.number.to_le_bytes());
        self.number += 1;
        (self.at, self.end) = (from + NUMBER, from + DATAGRAM);
    }

    fn pad(&mut self) {
        self.bytes[self.at..self.end].fill(0);
    }

    /// Whether so many are full; one more is open behind them.
    #[inline]
    pub fn has(&self, datagrams: usize) -> bool {
        self.end > datagrams * DATAGRAM
    }

    /// All datagrams; the last is only as long as its contents.
    pub fn take(&mut self) -> &[u8] {
        let length = self.at;
        (self.at, self.end) = (0, 0);
        &self.bytes[..length]
    }
}

/// Puts cut messages together again.
#[derive(Debug, Default)]
pub struct Assembly {
    next: u64,
    begun: Vec<u8>,
}

impl Assembly {
    /// Hands over the messages that a datagram completes; returns how many.
    #[inline]
    pub fn take(&mut self, datagram: &[u8], each: &mut impl FnMut(&[u8])) -> usize {
        let Some((number, mut rest)) = datagram.split_first_chunk::<NUMBER>() else { return 0 };
        let number = u64::from_le_bytes(*number);
        if number != self.next {
            self.begun.clear();
        }
        self.next = number.wrapping_add(1);
        let mut count = 0;
        while let Some((length, after)) = rest.split_first_chunk::<LENGTH>() {
            let word = u16::from_le_bytes(*length);
            let length = usize::from(word & !(GOES_ON | WAS_BEGUN));
            if length == 0 || length > after.len() {
                break;
            }
            let (piece, after) = after.split_at(length);
            rest = after;
            if word & (GOES_ON | WAS_BEGUN) == 0 {
                each(piece);
                count += 1;
            } else {
                count += self.join(piece, word, each);
            }
        }
        count
    }

    /// Takes a piece of a message that was cut; returns how many messages it completes.
    fn join(&mut self, piece: &[u8], word: u16, each: &mut impl FnMut(&[u8])) -> usize {
        if word & WAS_BEGUN == 0 {
            self.begun.clear();
        } else if self.begun.is_empty() {
            // Its beginning is missing.
            return 0;
        }
        self.begun.extend_from_slice(piece);
        if word & GOES_ON != 0 {
            return 0;
        }
        each(&self.begun);
        self.begun.clear();
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(sizes: &[usize]) -> Vec<u8> {
        let mut outbox = Outbox::new(64, 9000);
        for (at, size) in sizes.iter().enumerate() {
            outbox.add(*size, |bytes| bytes.fill(at as u8 + 1));
        }
        outbox.take().to_vec()
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let sizes = [24, 1000, 1000, PIECE, PIECE + 1, 8000, 24, 8000];
        let (mut assembly, mut seen) = (Assembly::default(), Vec::new());
        for datagram in packed(&sizes).chunks(DATAGRAM) {
            assembly.take(datagram, &mut |bytes| {
                assert!(bytes.iter().all(|byte| *byte == seen.len() as u8 + 1));
                seen.push(bytes.len());
            });
        }
        assert_eq!(seen, sizes);
    }

    #[test]
    fn a_missing_datagram_takes_its_messages_only() {
        let bytes = packed(&[8000, 24]);
        for missing in 0..5 {
            let (mut assembly, mut seen) = (Assembly::default(), Vec::new());
            for (at, datagram) in bytes.chunks(DATAGRAM).enumerate() {
                if at != missing {
                    assembly.take(datagram, &mut |bytes| seen.push(bytes.len()));
                }
            }
            assert_eq!(seen, [24], "without datagram {missing}");
        }
    }

    #[test]
    fn nonsense_is_no_message() {
        let mut assembly = Assembly::default();
        for bytes in [&[][..], &[1; 7], &[0; 8], &[0; 9], &[0; 100], &[9; 12]] {
            assert_eq!(assembly.take(bytes, &mut |_| panic!("a message")), 0);
        }
    }
}
