//! One end of a connection between hosts, implemented by each peer.

use anyhow::Result;

use rivals_kit::{Load, Receiver, Sender, Tally};

/// One end. It sends and receives on its caller's thread.
pub trait End {
    /// Takes one message of `size` bytes, which `fill` writes, and sends it or gathers it; false
    /// if there is no room now.
    ///
    /// # Errors
    ///
    /// When the transport is broken.
    fn send(&mut self, size: usize, fill: impl FnMut(&mut [u8])) -> Result<bool>;

    /// Lets go of what was gathered; false if some of it is still here.
    ///
    /// # Errors
    ///
    /// When the transport is broken.
    fn flush(&mut self) -> Result<bool>;

    /// Hands over messages that are there, some at a time; returns how many. An end that was made
    /// to sleep does so until there is one, but not for long.
    ///
    /// # Errors
    ///
    /// When the transport is broken.
    fn receive(&mut self, each: impl FnMut(&[u8])) -> Result<usize>;
}

/// An end as the kit's publisher sees it.
#[derive(Debug)]
pub struct Outlet<E>(pub E);

impl<E: End> Sender for Outlet<E> {
    #[inline]
    fn send(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut fill = Some(fill);
        while !self.0.send(size, |bytes| {
            if let Some(fill) = fill.take() {
                fill(bytes);
            }
        })? {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        while !self.0.flush()? {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// The run ends a publisher when its subscribers are done.
    fn linger(&mut self) -> Result<()> {
        self.flush()
    }
}

/// An end as the kit's subscriber sees it.
#[derive(Debug)]
pub struct Intake<E>(pub E);

impl<E: End> Receiver for Intake<E> {
    #[inline]
    fn poll(&mut self, tally: &mut Tally) -> Result<usize> {
        self.0.receive(|bytes| tally.take(bytes))
    }
}

/// Whether an end is made to sleep while it waits for a message.
pub fn sleeps(load: &Load) -> bool {
    load.wait == rivals_kit::Wait::Block
}
