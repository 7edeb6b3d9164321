//! UDP as it is: one datagram a message, one system call each.

use anyhow::Result;

use super::socket::{Pair, is_harmless};
use crate::end::End;

/// The longest message.
const LONGEST: usize = 65_507;

/// An end that sends each message by itself.
#[derive(Debug)]
pub struct Datagrams {
    sockets: Pair,
    message: Vec<u8>,
    inbox: Vec<u8>,
}

impl Datagrams {
    /// Over these sockets.
    pub fn new(sockets: Pair) -> Self {
        Self { sockets, message: vec![0; LONGEST], inbox: vec![0; LONGEST] }
    }
}

impl End for Datagrams {
    #[inline]
    fn send(&mut self, size: usize, mut fill: impl FnMut(&mut [u8])) -> Result<bool> {
        let message = &mut self.message[..size];
        fill(message);
        match self.sockets.out.send(message) {
            Ok(_) => Ok(true),
            Err(error) if is_harmless(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn flush(&mut self) -> Result<bool> {
        Ok(true)
    }

    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> Result<usize> {
        match self.sockets.inward.recv(&mut self.inbox) {
            Ok(length) => {
                each(&self.inbox[..length]);
                Ok(1)
            }
            Err(error) if is_harmless(&error) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}
