//! A publisher.

use crate::message::Length;
use crate::orders::{Order, Orders};
use crate::words::Words;
use anyhow::{Result, ensure};
use lanecast_net::Publisher;
use lanecast_transport::{Claim, DepartureReason, IncompleteReason, Publish, TopicId};
use std::time::{Duration, Instant};

/// The longest wait for subscribers, and for what they have not read.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest sleep between two looks at the orders.
const NAP: Duration = Duration::from_millis(1);

/// Sends what it is told to, in turn on each topic; ends when it is told to.
///
/// Words: `transport`, `topics` (how many), `length` or `longest` (bytes), `rate` (messages a
/// second; none: as quick as may be), `count` (messages of all topics; none: without end),
/// `subscribers` (to wait for), `linger` (ms).
pub(crate) fn act(words: &Words) -> Result<()> {
    let network = words.network()?;
    let topics = words.number("topics", 1)?;
    let mut publisher = network.publisher(words.kind()?, "t0")?;
    for number in 1..topics {
        publisher.add_topic(&format!("t{number}"))?;
    }
    println!("session={:016x}", publisher.session().0);
    println!("source={}", publisher.source());
    let orders = Orders::listen()?;
    let subscribers = words.number("subscribers", 0)? as usize;
    await_subscribers(&mut publisher, subscribers)?;
    println!("publishing=1");
    let mut speech = Speech {
        publisher,
        length: length(words)?,
        topics,
        pause: words.get::<u32>("rate")?.map(|rate| Duration::from_secs(1) / rate),
        sent: 0,
    };
    speech.give(&orders, words.number("count", u64::MAX)?)?;
    println!("sent={}", speech.sent);
    let linger = words.get("linger")?.map_or(PATIENCE, Duration::from_millis);
    println!("pressed={}", speech.publisher.back_pressured());
    let completion = speech.publisher.close(linger);
    println!("drained={}", !completion.timed_out());
    let timed_out = IncompleteReason::Departed(DepartureReason::TimedOut);
    let silent = completion.incomplete().iter().filter(|one| one.reason == timed_out);
    println!("silent={}", silent.count());
    Ok(())
}

fn await_subscribers(publisher: &mut Publisher, count: usize) -> Result<()> {
    ensure!(publisher.wait_for_subscribers(count, PATIENCE), "{count} subscribers did not join");
    Ok(())
}

/// The shape of the messages, the same arguments for both sides.
pub(crate) fn length(words: &Words) -> Result<Length> {
    Ok(match words.get("length")? {
        Some(length) => Length::Even(length),
        None => Length::UpTo(words.number("longest", 400)? as usize),
    })
}

struct Speech {
    publisher: Publisher,
    length: Length,
    topics: u64,
    pause: Option<Duration>,
    sent: u64,
}

impl Speech {
    /// Sends until the order to end; `goal` is how far it may go without another order.
    fn give(&mut self, orders: &Orders, mut goal: u64) -> Result<()> {
        let mut due = Instant::now();
        loop {
            match orders.next()? {
                Some(Order::End) => return Ok(()),
                Some(Order::Send(more)) => {
                    goal = self.sent + more;
                    due = Instant::now();
                }
                Some(Order::Await(count)) => {
                    await_subscribers(&mut self.publisher, count)?;
                    println!("joined={count}");
                    due = Instant::now();
                }
                None => {}
            }
            if self.sent == goal {
                std::thread::sleep(NAP);
                continue;
            }
            let early = due.saturating_duration_since(Instant::now());
            if self.pause.is_some() && !early.is_zero() {
                std::thread::sleep(early.min(NAP));
                continue;
            }
            self.send()?;
            due += self.pause.unwrap_or_default();
            if self.sent == goal {
                println!("reached={goal}");
            }
        }
    }

    fn send(&mut self) -> Result<()> {
        let topic = TopicId((self.sent % self.topics) as u32);
        let number = self.sent / self.topics;
        let mut claim = self.publisher.claim_on(topic, self.length.of(number))?;
        self.length.write(number, &mut claim);
        claim.commit();
        self.sent += 1;
        Ok(())
    }
}
