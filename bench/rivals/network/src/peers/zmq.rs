//! ØMQ over TCP: PAIR there and back, PUSH and PULL one way, one PUSH for each subscriber: a PUB
//! socket drops what a slow subscriber has no room for.

use anyhow::Result;
use zmq::{Context, DONTWAIT, Error, Message, Socket, SocketType};

use super::socket::LONGEST_SLEEP;
use crate::end::End;
use crate::place::{Place, Role};

/// Messages that a socket holds on each side.
const HIGH_WATER_MARK: i32 = 100_000;
/// Messages that are taken at once.
const LIMIT: usize = 64;

/// An end over one socket, or over one for each subscriber.
pub struct Zmq {
    sockets: Vec<Socket>,
    /// Which socket gets the message next.
    next: usize,
    message: Message,
    bytes: Vec<u8>,
    sleeps: bool,
}

impl std::fmt::Debug for Zmq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Zmq")
    }
}

impl Zmq {
    /// Binds or connects.
    ///
    /// # Errors
    ///
    /// When ØMQ refuses.
    pub fn new(place: &Place, sleeps: bool) -> Result<Self> {
        let kind = match place.role {
            Role::Pub => SocketType::PUSH,
            Role::Sub => SocketType::PULL,
            Role::Ping | Role::Pong => SocketType::PAIR,
        };
        let context = Context::new();
        let mut sockets = Vec::new();
        for address in place.waiting_ends() {
            let socket = context.socket(kind)?;
            socket.set_sndhwm(HIGH_WATER_MARK)?;
            socket.set_rcvhwm(HIGH_WATER_MARK)?;
            socket.set_linger(0)?;
            socket.set_rcvtimeo(LONGEST_SLEEP.as_millis() as i32)?;
            let endpoint = format!("tcp://{address}");
            if place.role.begins() {
                socket.connect(&endpoint)?
            } else {
                socket.bind(&endpoint)?
            }
            sockets.push(socket);
        }
        Ok(Self { sockets, next: 0, message: Message::new(), bytes: vec![0; 1 << 16], sleeps })
    }
}

impl End for Zmq {
    #[inline]
    fn send(&mut self, size: usize, mut fill: impl FnMut(&mut [u8])) -> Result<bool> {
        if self.next == 0 {
            fill(&mut self.bytes[..size]);
        }
        while let Some(socket) = self.sockets.get(self.next) {
            match socket.send(&self.bytes[..size], DONTWAIT) {
                Ok(()) => self.next += 1,
                Err(Error::EAGAIN | Error::EINTR) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        self.next = 0;
        Ok(true)
    }

    fn flush(&mut self) -> Result<bool> {
        Ok(true)
    }

    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> Result<usize> {
        for taken in 0..LIMIT {
            let flags = if self.sleeps && taken == 0 { 0 } else { DONTWAIT };
            match self.sockets[0].recv(&mut self.message, flags) {
                Ok(()) => each(&self.message),
                Err(Error::EAGAIN | Error::EINTR) => return Ok(taken),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(LIMIT)
    }
}
