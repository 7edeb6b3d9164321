//! The pool of all subscribers of a server: one thread reads all sockets.

use super::burst::DeliveryCount;
use super::load::stamped;
use super::server_protocol::{ParsedBytes, ServerProtocol};
use crate::recorder::Recorder;
use lanecast_base::clock::Clock;
use lanecast_os::poll::PollBuffer;
use lanecast_os::raw_io;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// Interval of checks for the end.
const LOOK: Duration = Duration::from_millis(10);

/// Sockets, each with its incomplete frame.
#[derive(Debug)]
pub(super) struct SubscriberPool {
    streams: Vec<(TcpStream, Vec<u8>)>,
    buffer: Vec<u8>,
    /// Whether all are acknowledged. From then on an empty socket is no error.
    is_ready: bool,
}

impl SubscriberPool {
    pub(super) fn new(streams: Vec<TcpStream>) -> Self {
        let streams = streams.into_iter().map(|stream| (stream, Vec::new())).collect();
        Self { streams, buffer: vec![0; 2 * READ_BYTES], is_ready: false }
    }

    /// Reads until the experiment is over.
    pub(super) fn listen(
        &mut self,
        protocol: &impl ServerProtocol,
        deliveries: &DeliveryCount,
    ) -> io::Result<Recorder> {
        let (clock, mut latency) = (Clock::host(), Recorder::new());
        let (mut room, mut ready) = (PollBuffer::default(), Vec::new());
        while !deliveries.is_over() {
            let mut set = room.clear();
            for (stream, _) in &self.streams {
                set.add(stream.as_fd(), false);
            }
            set.wait(Some(LOOK));
            ready.clear();
            ready.extend((0..self.streams.len()).filter(|at| set.ready(*at)));
            for at in &ready {
                let mut count = 0;
                let mut now = None;
                self.read(*at, protocol, |order| {
                    count += 1;
                    if let Some(sent) = stamped(order) {
                        let now = *now.get_or_insert_with(|| clock.ticks());
                        latency.record(clock.ns(now.saturating_sub(sent)));
                    }
                })?;
                deliveries.arrive(count);
            }
        }
        Ok(latency)
    }

    /// Waits for the acknowledgement of each subscriber.
    pub(super) fn wait_for_answers(&mut self, protocol: &impl ServerProtocol) -> io::Result<()> {
        for at in 0..self.streams.len() {
            self.streams[at].0.set_read_timeout(Some(Duration::from_secs(10)))?;
            while self.read(at, protocol, |_| ())?.answers == 0 {}
            self.streams[at].0.set_nonblocking(true)?;
        }
        self.is_ready = true;
        Ok(())
    }

    fn read(
        &mut self,
        at: usize,
        protocol: &impl ServerProtocol,
        each: impl FnMut(&[u8]),
    ) -> io::Result<ParsedBytes> {
        let (stream, rest) = &mut self.streams[at];
        let kept = rest.len();
        if kept > READ_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
        self.buffer[..kept].copy_from_slice(rest);
        let read = match raw_io::read(stream, &mut self.buffer[kept..kept + READ_BYTES]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if self.is_ready && is_empty(&error) => 0,
            Err(error) if is_empty(&error) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        };
        let bytes = &self.buffer[..kept + read];
        let split = protocol.split(bytes, each)?;
        rest.clear();
        rest.extend_from_slice(&bytes[split.used..]);
        Ok(split)
    }
}

fn is_empty(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
