//! Round trips: the sending thread keeps a schedule and times answers in between.

use super::end::SocketEnd;
use super::result::{Received, Sent};
use super::settings::{Progress, Settings, SocketBaselineError};
use crate::latency::LatencyRecorder;
use crate::monitor::RunMonitor;
use crate::pacing::{Bursts, Pace};
use crate::ping::stamp::Stamp;
use crate::recorder::Recorder;
use lanecast_base::clock::Clock;
use lanecast_base::{WaitStrategy, spin};
use lanecast_os::udp::RECEIVE_BYTES_MAX;
use std::io;
use std::time::{Duration, Instant};

/// Time without answers after which the rest counts as lost.
const PATIENCE: Duration = Duration::from_secs(2);

/// The sending thread.
pub(super) fn ping<E: SocketEnd>(
    settings: &Settings,
    end: &mut E,
    monitor: &mut RunMonitor,
    progress: &Progress,
) -> Result<Sent, SocketBaselineError> {
    monitor.pin()?;
    let mut ping = Ping {
        end,
        clock: settings.clock,
        sleeps: settings.case.wait != WaitStrategy::BusySpin,
        message: vec![0; settings.size],
        sent: 0,
        received: 0,
        start: 0,
        last: 0,
        latency: LatencyRecorder::default(),
        lateness: Recorder::new(),
        progress,
    };
    let refused = |source| settings.refused(source);
    ping.part(settings, settings.warmup, false).map_err(refused)?;
    monitor.count_from_here();
    monitor.raise();
    let start = ping.part(settings, settings.messages, true).map_err(refused)?;
    Ok(Sent {
        messages: ping.sent,
        received: Some(ping.received),
        start,
        end: ping.last.max(start),
        latency: ping.latency.latency(),
        lateness: ping.lateness.distribution(),
    })
}

struct Ping<'a, E> {
    end: &'a mut E,
    clock: Clock,
    sleeps: bool,
    message: Vec<u8>,
    sent: u64,
    received: u64,
    /// Start of this part; earlier intended times belong to another part.
    start: u64,
    /// When the last one came back.
    last: u64,
    latency: LatencyRecorder,
    lateness: Recorder,
    progress: &'a Progress,
}

impl<E: SocketEnd> Ping<'_, E> {
    /// Sends `messages` and waits for their answers; returns the start.
    fn part(&mut self, settings: &Settings, messages: u64, stamped: bool) -> io::Result<u64> {
        let second = self.clock.from_ns(1_000_000_000);
        let start = self.clock.ticks_ordered();
        (self.sent, self.received, self.start) = (0, 0, start);
        let mut pace = Bursts::even(settings.rate, messages, start, second);
        while pace.sent() < messages && !self.progress.is_stopped() {
            if let Some(burst) = pace.due_at(self.clock.ticks()) {
                for slot in burst {
                    self.send(slot.due.unwrap_or(start), stamped)?;
                }
            }
            self.listen()?;
        }
        let mut until = Instant::now() + PATIENCE;
        while self.received < self.sent && !self.progress.is_stopped() {
            match self.listen()? {
                true => until = Instant::now() + PATIENCE,
                false if Instant::now() > until => break,
                false => {}
            }
        }
        Ok(start)
    }

    #[inline]
    fn send(&mut self, due: u64, stamped: bool) -> io::Result<()> {
        let now = self.clock.ticks().max(1);
        let actual = if stamped { now } else { 0 };
        Stamp { actual, intended: due }.put(&mut self.message);
        if stamped {
            self.lateness.record(self.clock.ns(now.saturating_sub(due)));
        }
        let mut done = 0;
        while done < self.message.len() {
            let taken = self.end.send(&self.message[done..])?;
            done += taken;
            if taken == 0 {
                if self.progress.is_stopped() {
                    return Ok(());
                }
                self.listen()?;
            }
        }
        self.sent += 1;
        Ok(())
    }

    /// Handles available answers; sleeps only while a message is in flight.
    #[inline]
    fn listen(&mut self) -> io::Result<bool> {
        if self.sleeps && self.received >= self.sent {
            spin(1);
            return Ok(false);
        }
        let Self { end, clock, message, received, start, last, latency, .. } = self;
        let size = message.len();
        end.receive(|bytes| {
            *last = clock.ticks_ordered();
            for stamp in bytes.chunks_exact(size).filter_map(Stamp::read) {
                *received += u64::from(stamp.intended >= *start);
                if stamp.actual > 0 {
                    let ns = |sent| clock.ns(last.saturating_sub(sent));
                    latency.record(ns(stamp.actual), ns(stamp.intended));
                }
            }
        })
    }
}

/// The receiving thread: sends messages back.
pub(super) fn pong<E: SocketEnd>(
    settings: &Settings,
    end: &mut E,
    monitor: &mut RunMonitor,
    progress: &Progress,
) -> Result<Received, SocketBaselineError> {
    monitor.pin()?;
    monitor.raise();
    let mut answers = Vec::with_capacity(RECEIVE_BYTES_MAX);
    let mut received = Received::default();
    answer(settings, end, progress, &mut answers, &mut received)
        .map_err(|source| settings.refused(source))?;
    Ok(received)
}

fn answer<E: SocketEnd>(
    settings: &Settings,
    end: &mut E,
    progress: &Progress,
    answers: &mut Vec<u8>,
    received: &mut Received,
) -> io::Result<()> {
    while !progress.is_over() {
        answers.clear();
        end.receive(|bytes| answers.extend_from_slice(bytes))?;
        received.messages += (answers.len() / settings.size) as u64;
        let mut rest = answers.as_slice();
        while !rest.is_empty() && !progress.is_over() {
            rest = &rest[end.send(rest)?..];
        }
    }
    Ok(())
}
