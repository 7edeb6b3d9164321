//! A subscriber.

use crate::ledger::Ledger;
use crate::message::{Length, now};
use crate::orders::{Order, Orders};
use crate::publish::length;
use crate::words::Words;
use anyhow::{Context, Result, bail};
use lanecast_os::event::wait_readable;
use lanecast_transport::{CloseReason, Event, Stream, Subscribe};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Progress is told at most so often.
const TELL_EVERY: Duration = Duration::from_millis(20);
/// The most messages taken at a time.
const AT_ONCE: usize = 64;

/// Reads and checks everything; ends when it is told to.
///
/// Words: `topics` (how many), `length` or `longest` as the publisher's, `work` (microseconds
/// that each message takes), `sleep=descriptor` (by the subscriber's descriptor alone).
pub(crate) fn act(words: &Words) -> Result<()> {
    let network = words.network()?;
    let names: Vec<String> =
        (0..words.number("topics", 1)?).map(|number| format!("t{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut subscriber = network.subscriber(&names)?;
    println!("began=1");
    let by_descriptor = match words.text("sleep") {
        None => false,
        Some("descriptor") => true,
        Some(other) => bail!("no sleep is called {other}"),
    };
    let orders = Orders::listen()?;
    let mut witness = Witness {
        ledger: Ledger::default(),
        length: length(words)?,
        work: Duration::from_micros(words.number("work", 0)?),
        times: Vec::new(),
        read: 0,
    };
    let mut progress = Progress { told: 0, at: Instant::now() };
    while orders.next()? != Some(Order::End) {
        let mut wrong = None;
        let work = subscriber.poll(AT_ONCE, |event| {
            if let Err(error) = witness.see(&event) {
                wrong.get_or_insert(error);
            }
        });
        if let Some(error) = wrong {
            return Err(error);
        }
        progress.tell(witness.read, work == 0);
        if !by_descriptor {
            subscriber.wait(work);
        } else if work == 0 {
            wait_readable([subscriber.wakeup()?, orders.event.as_fd()], None);
            // Before the next look: an order from now on signals anew.
            orders.event.clear();
        }
    }
    println!("read={}", witness.read);
    println!("times={}", witness.summary());
    Ok(())
}

/// Reports the number of messages read from time to time.
struct Progress {
    told: u64,
    at: Instant,
}

impl Progress {
    fn tell(&mut self, read: u64, idle: bool) {
        if read != self.told && (idle || self.at.elapsed() > TELL_EVERY) {
            println!("at={read}");
            (self.told, self.at) = (read, Instant::now());
        }
    }
}

struct Witness {
    ledger: Ledger,
    length: Length,
    work: Duration,
    /// Latency of each message, in microseconds.
    times: Vec<u64>,
    read: u64,
}

impl Witness {
    fn see(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Message(message) => {
                let (number, sent) = self.length.read(message.bytes())?;
                self.ledger.read(message.stream(), number)?;
                self.times.push(now().saturating_sub(sent) / 1000);
                self.read += 1;
                self.toil();
            }
            other => {
                self.ledger.tell(other)?;
                self.repeat(other)?;
            }
        }
        Ok(())
    }

    /// Says in a line what has come.
    fn repeat(&self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Joined(stream) => {
                println!("joined={} {:016x}", stream.topic, stream.session.0);
            }
            Event::Lost(gap) => {
                let (first, why) = (gap.first, gap.why.describe());
                println!("lost={} {first} {} {why}", gap.stream.topic, gap.count);
            }
            Event::Left(stream, why) => self.part(stream, *why)?,
            _ => {}
        }
        Ok(())
    }

    fn part(&self, stream: &Stream, why: CloseReason) -> Result<()> {
        let account = self.ledger.account(stream).context("it had joined")?;
        let first = account.first.unwrap_or(0);
        println!(
            "left={} {why} first {first} read {} lost {} next {}",
            stream.topic,
            account.read,
            account.lost,
            account.next()
        );
        Ok(())
    }

    /// Latency of messages: median, high percentile and maximum.
    fn summary(mut self) -> String {
        self.times.sort_unstable();
        let parts = [500, 990, 999, 1000].map(|part| {
            let at = (self.times.len() * part / 1000).saturating_sub(1);
            let time = self.times.get(at).copied().unwrap_or(0);
            format!("{part}/1000 {time} us")
        });
        parts.join(", ")
    }

    /// Keeps busy as an application would.
    fn toil(&self) {
        if self.work.is_zero() {
            return;
        }
        std::thread::sleep(self.work);
    }
}
