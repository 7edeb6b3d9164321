//! The connection: frames out, frames in.

use crate::error::ClientError;
use lanecast_wire::command::{LENGTH_BYTES, begin_frame, end_frame, frame_bytes};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long a connection may take to be made, for each address of the server.
const CONNECT: Duration = Duration::from_secs(5);
/// What is read at a time.
const READ_BYTES: usize = 64 << 10;
/// What is gathered before it is written.
const GATHERED_BYTES: usize = 32 << 10;
/// The longest frame that is taken.
const FRAME_BYTES_MAX: usize = 256 << 20;
/// A read waits for this long at least: zero would be for ever.
const WAIT_MIN: Duration = Duration::from_micros(100);

/// A connection, what has come in part, and what has been gathered.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    came: Vec<u8>,
    /// How many bytes of them have been taken.
    taken: usize,
    gathered: Vec<u8>,
}

impl Link {
    pub(crate) fn connect(server: &str) -> Result<Self, ClientError> {
        let failed = |error| ClientError::Connect { server: server.to_owned(), error };
        let mut last = io::Error::new(ErrorKind::NotFound, "no such host");
        for address in server.to_socket_addrs().map_err(failed)? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    stream.set_nodelay(true).map_err(failed)?;
                    let (came, gathered) = (Vec::new(), Vec::new());
                    return Ok(Self { stream, came, taken: 0, gathered });
                }
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    /// Adds a frame to what is gathered; sends that if it is much.
    pub(crate) fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), ClientError> {
        let start = begin_frame(&mut self.gathered);
        write(&mut self.gathered);
        end_frame(&mut self.gathered, start);
        if self.gathered.len() >= GATHERED_BYTES { self.send() } else { Ok(()) }
    }

    /// Sends what is gathered.
    pub(crate) fn send(&mut self) -> Result<(), ClientError> {
        let sent = self.stream.write_all(&self.gathered);
        self.gathered.clear();
        sent.map_err(ClientError::Ended)
    }

    /// The payload of the next frame; none if none has come by `until`.
    pub(crate) fn next(&mut self, until: Option<Instant>) -> Result<Option<Vec<u8>>, ClientError> {
        loop {
            let rest = &self.came[self.taken..];
            let total = frame_bytes(rest, FRAME_BYTES_MAX);
            let total = total.map_err(|long| ended(ErrorKind::InvalidData, &long.to_string()))?;
            if let Some(total) = total {
                let payload = rest[LENGTH_BYTES..total].to_vec();
                self.taken += total;
                return Ok(Some(payload));
            }
            self.came.drain(..self.taken);
            self.taken = 0;
            if !self.read(until)? {
                return Ok(None);
            }
        }
    }

    /// Reads once; false if nothing has come by `until`.
    fn read(&mut self, until: Option<Instant>) -> Result<bool, ClientError> {
        let wait = until.map(|until| until.saturating_duration_since(Instant::now()).max(WAIT_MIN));
        self.stream.set_read_timeout(wait).map_err(ClientError::Ended)?;
        let before = self.came.len();
        self.came.resize(before + READ_BYTES, 0);
        let read = self.stream.read(&mut self.came[before..]);
        self.came.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(ended(ErrorKind::UnexpectedEof, "the server has closed it")),
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(false),
                ErrorKind::Interrupted => Ok(true),
                _ => Err(ClientError::Ended(error)),
            },
        }
    }
}

fn ended(kind: ErrorKind, why: &str) -> ClientError {
    ClientError::Ended(io::Error::new(kind, why))
}
