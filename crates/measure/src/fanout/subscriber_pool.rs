//! All subscribers of a server: one thread that reads their sockets.

use super::burst::DeliveryCount;
use super::load::stamped;
use super::server_protocol::{ParsedBytes, ServerProtocol};
use crate::recorder::Recorder;
use lanecast_base::clock::Clock;
use lanecast_os::direct;
use lanecast_os::poll::PollRoom;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

/// What is read at a time.
const READ_BYTES: usize = 256 << 10;
/// How soon the end is noticed.
const LOOK: Duration = Duration::from_millis(10);

/// Sockets, and what each has of a frame that is not whole.
#[derive(Debug)]
pub(super) struct SubscriberPool {
    streams: Vec<(TcpStream, Vec<u8>)>,
    buffer: Vec<u8>,
    /// All have been answered: from now on, nothing to read is no fault.
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
        speech: &impl ServerProtocol,
        balance: &DeliveryCount,
    ) -> io::Result<Recorder> {
        let (clock, mut latency) = (Clock::host(), Recorder::new());
        let (mut room, mut ready) = (PollRoom::default(), Vec::new());
        while !balance.is_over() {
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
                self.read(*at, speech, |order| {
                    count += 1;
                    if let Some(sent) = stamped(order) {
                        let now = *now.get_or_insert_with(|| clock.ticks());
                        latency.record(clock.ns(now.saturating_sub(sent)));
                    }
                })?;
                balance.arrive(count);
            }
        }
        Ok(latency)
    }

    /// Waits for an answer to each.
    pub(super) fn wait_for_answers(&mut self, speech: &impl ServerProtocol) -> io::Result<()> {
        for at in 0..self.streams.len() {
            self.streams[at].0.set_read_timeout(Some(Duration::from_secs(10)))?;
            while self.read(at, speech, |_| ())?.answers == 0 {}
            self.streams[at].0.set_nonblocking(true)?;
        }
        self.is_ready = true;
        Ok(())
    }

    fn read(
        &mut self,
        at: usize,
        speech: &impl ServerProtocol,
        each: impl FnMut(&[u8]),
    ) -> io::Result<ParsedBytes> {
        let (stream, rest) = &mut self.streams[at];
        let kept = rest.len();
        if kept > READ_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
        self.buffer[..kept].copy_from_slice(rest);
        let read = match direct::read(stream, &mut self.buffer[kept..kept + READ_BYTES]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if self.is_ready && is_empty(&error) => 0,
            Err(error) if is_empty(&error) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        };
        let bytes = &self.buffer[..kept + read];
        let split = speech.split(bytes, each)?;
        rest.clear();
        rest.extend_from_slice(&bytes[split.used..]);
        Ok(split)
    }
}

fn is_empty(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
