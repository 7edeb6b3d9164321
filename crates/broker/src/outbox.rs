//! What waits to be sent to a client.

use std::io;

/// Bytes in the order in which they leave.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    /// How many of them have left.
    sent: usize,
}

/// An outbox that was once this large gives its memory back when it is empty.
const KEPT_BYTES: usize = 1 << 20;

impl Outbox {
    /// Where to write behind all else.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How many bytes wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sends until nothing is left, or `write` takes no more: then says that it is not empty.
    ///
    /// # Errors
    /// What `write` says, but `WouldBlock` and `Interrupted`.
    pub(crate) fn send(
        &mut self,
        mut write: impl FnMut(&[u8]) -> io::Result<usize>,
    ) -> io::Result<bool> {
        while self.sent < self.bytes.len() {
            match write(&self.bytes[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.move_up();
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        self.sent = 0;
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
        Ok(true)
    }

    /// Forgets what has left, once that is most of it.
    fn move_up(&mut self) {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn all_leaves_in_order_however_it_is_taken() {
        let mut outbox = Outbox::default();
        let (mut taken, mut put) = (Vec::new(), Vec::new());
        for round in 0..1_000u32 {
            let bytes = round.to_le_bytes().repeat(round as usize % 7);
            outbox.bytes().extend_from_slice(&bytes);
            put.extend_from_slice(&bytes);
            let mut room = 11;
            let sent = outbox.send(|bytes| {
                let count = bytes.len().min(room);
                room -= count;
                taken.extend_from_slice(&bytes[..count]);
                if count == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
            });
            assert_eq!(sent.expect("no error"), outbox.is_empty());
            assert_eq!(outbox.len(), put.len() - taken.len());
        }
        while !outbox
            .send(|bytes| {
                taken.extend_from_slice(bytes);
                Ok(bytes.len())
            })
            .expect("no error")
        {}
        assert_eq!(taken, put);
        assert!(outbox.send(|_| Ok(0)).expect("nothing to send"));
        outbox.bytes().push(1);
        assert_eq!(outbox.send(|_| Ok(0)).expect_err("closed").kind(), ErrorKind::WriteZero);
    }
}
