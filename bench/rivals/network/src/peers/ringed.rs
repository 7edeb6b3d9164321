//! Datagrams by rings that the kernel shares with the program, one message each or packed.
//!
//! ```text
//!   End -> Ringed -> DatagramRing: Xdp (frames of the interface), Uring (calls of a socket)
//! ```

use anyhow::{Context, Result};

use super::frames::{Assembly, DATAGRAM, LENGTH, NUMBER};
use crate::end::End;

/// Packed datagrams that the kernel is told of at once: more made no difference.
const BATCH: usize = 32;

/// Datagrams of one address to one other, written and read where the kernel has them.
pub trait DatagramRing {
    /// Room of the next datagram, the same until it is pushed; `None` while the kernel has all.
    ///
    /// # Errors
    ///
    /// When the ring is broken.
    fn room(&mut self) -> Result<Option<&mut [u8]>>;

    /// Adds a datagram of the first `length` bytes of the room.
    fn push(&mut self, length: usize);

    /// Tells the kernel of what was pushed; false if it has not taken all of it.
    ///
    /// # Errors
    ///
    /// When the ring is broken.
    fn submit(&mut self) -> Result<bool>;

    /// Hands over datagrams that are there, some at a time.
    ///
    /// # Errors
    ///
    /// When the ring is broken.
    fn receive(&mut self, each: impl FnMut(&[u8])) -> Result<()>;
}

/// Contents of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// One message.
    Message,
    /// As many messages as fit, in the form of [`frames`](super::frames).
    Packed,
}

/// An end over a ring.
#[derive(Debug)]
pub struct Ringed<R> {
    ring: R,
    contents: Contents,
    /// Length of the datagram that is being packed; 0: none is.
    packed: usize,
    number: u64,
    /// Datagrams that the kernel has not been told of.
    pushed: usize,
    assembly: Assembly,
}

impl<R: DatagramRing> Ringed<R> {
    /// Over this ring.
    pub fn new(ring: R, contents: Contents) -> Self {
        Self { ring, contents, packed: 0, number: 0, pushed: 0, assembly: Assembly::default() }
    }

    #[inline]
    fn send_alone(&mut self, size: usize, mut fill: impl FnMut(&mut [u8])) -> Result<bool> {
        let Some(room) = self.ring.room()? else {
            self.ring.submit()?;
            return Ok(false);
        };
        fill(room.get_mut(..size).context("longer than a datagram")?);
        self.ring.push(size);
        Ok(true)
    }

    #[inline]
    fn pack(&mut self, size: usize, mut fill: impl FnMut(&mut [u8])) -> Result<bool> {
        if self.packed + LENGTH + size > DATAGRAM && !self.close()? {
            return Ok(false);
        }
        let Some(room) = self.ring.room()? else {
            self.ring.submit()?;
            return Ok(false);
        };
        if self.packed == 0 {
            room[..NUMBER].copy_from_slice(&self.number.to_le_bytes());
            self.number += 1;
            self.packed = NUMBER;
        }
        let from = self.packed + LENGTH;
        let to = from + size;
        let item = room[..DATAGRAM].get_mut(self.packed..to);
        let (length, bytes) = item.context("longer than a datagram")?.split_at_mut(LENGTH);
        length.copy_from_slice(&(size as u16).to_le_bytes());
        fill(bytes);
        self.packed = to;
        Ok(true)
    }

    /// Ends the datagram that is being packed; false if the kernel takes none now.
    fn close(&mut self) -> Result<bool> {
        if self.packed > 0 {
            self.ring.push(self.packed);
            self.packed = 0;
            self.pushed += 1;
        }
        if self.pushed < BATCH {
            return Ok(true);
        }
        self.submit()
    }

    fn submit(&mut self) -> Result<bool> {
        let all = self.ring.submit()?;
        if all {
            self.pushed = 0;
        }
        Ok(all)
    }
}

impl<R: DatagramRing> End for Ringed<R> {
    #[inline]
    fn send(&mut self, size: usize, fill: impl FnMut(&mut [u8])) -> Result<bool> {
        match self.contents {
            Contents::Message => self.send_alone(size, fill),
            Contents::Packed => self.pack(size, fill),
        }
    }

    #[inline]
    fn flush(&mut self) -> Result<bool> {
        if self.packed > 0 {
            self.close()?;
        }
        self.submit()
    }

    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> Result<usize> {
        let Self { ring, contents, assembly, .. } = self;
        let mut count = 0;
        ring.receive(|datagram| match contents {
            Contents::Message => {
                each(datagram);
                count += 1;
            }
            Contents::Packed => count += assembly.take(datagram, &mut each),
        })?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps datagrams until they are received; takes so many at once.
    #[derive(Debug)]
    struct Looped {
        room: Vec<u8>,
        pushed: Vec<Vec<u8>>,
        sent: Vec<Vec<u8>>,
        places: usize,
    }

    impl DatagramRing for Looped {
        fn room(&mut self) -> Result<Option<&mut [u8]>> {
            Ok((self.pushed.len() < self.places).then_some(self.room.as_mut_slice()))
        }

        fn push(&mut self, length: usize) {
            self.pushed.push(self.room[..length].to_vec());
        }

        fn submit(&mut self) -> Result<bool> {
            self.sent.append(&mut self.pushed);
            Ok(true)
        }

        fn receive(&mut self, mut each: impl FnMut(&[u8])) -> Result<()> {
            self.sent.drain(..).for_each(|sent| each(&sent));
            Ok(())
        }
    }

    #[test]
    fn all_messages_come_over_in_their_order() {
        for (contents, places) in [(Contents::Message, 3), (Contents::Packed, 40)] {
            let (room, pushed, sent) = (vec![0; 1500], Vec::new(), Vec::new());
            let mut end = Ringed::new(Looped { room, pushed, sent, places }, contents);
            let mut seen = Vec::new();
            let mut take = |bytes: &[u8]| seen.push((bytes.len(), bytes[0]));
            for number in 0..5000_usize {
                let size = 24 + number % 100;
                while !end.send(size, |bytes| bytes.fill(number as u8)).expect("fits") {
                    end.receive(&mut take).expect("received");
                }
                end.receive(&mut take).expect("received");
            }
            assert!(end.flush().expect("sent"));
            end.receive(&mut take).expect("received");
            let expected = (0..5000).map(|number| (24 + number % 100, number as u8));
            assert!(seen.into_iter().eq(expected), "{contents:?}");
        }
    }

    #[test]
    fn a_message_longer_than_a_datagram_is_refused() {
        for contents in [Contents::Message, Contents::Packed] {
            let (room, pushed, sent) = (vec![0; 1500], Vec::new(), Vec::new());
            let mut end = Ringed::new(Looped { room, pushed, sent, places: 2 }, contents);
            let error = end.send(1501, |_| ()).expect_err("refused");
            assert_eq!(error.to_string(), "longer than a datagram");
        }
    }
}
