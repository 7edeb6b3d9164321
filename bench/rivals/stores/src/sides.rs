//! The load, and the measurement that is the same for both sides.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;

/// Messages before the measured ones.
const WARM_UP: u64 = 1_000;

/// Messages of a repetition.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Length of a message in bytes.
    pub size: usize,
    /// Most messages that are not confirmed.
    pub window: u64,
    /// Messages that are sent with this window.
    pub messages: u64,
    /// Messages that are sent one at a time.
    pub singles: u64,
}

/// A publisher whose messages are kept, with its servers.
pub trait PersistentSide {
    /// Sends as many messages as have room among `window` unconfirmed ones, at most `most`; returns
    /// their number.
    ///
    /// # Errors
    /// If the servers have ended or refuse.
    fn send(&mut self, body: &[u8], most: u64, window: u64) -> Result<u64>;

    /// Waits for confirmations, for a while; returns the number of messages that were confirmed so
    /// far, since the beginning.
    ///
    /// # Errors
    /// If the servers have ended, or confirm something else than was sent.
    fn confirmed(&mut self) -> Result<u64>;

    /// Checks that all servers together have kept `messages`.
    ///
    /// # Errors
    /// If they have not, or do not answer.
    fn check(&mut self, messages: u64) -> Result<()>;
}

/// Figures of a repetition.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// Messages a second with the window, from the first one to the confirmation of the last.
    pub messages_per_second: f64,
    /// Messages of that.
    pub messages: u64,
    /// Times from a message to its confirmation, one message at a time, in nanoseconds.
    pub p50_ns: u64,
    /// The same, of 99 in 100 messages at most.
    pub p99_ns: u64,
    /// The longest time.
    pub max_ns: u64,
    /// Messages of that.
    pub singles: u64,
}

/// Sends the load and waits for its confirmations.
///
/// # Errors
/// If the side fails, or is silent for `patience`.
pub fn measure(side: &mut impl PersistentSide, load: Load, patience: Duration) -> Result<Figures> {
    let body = vec![b'x'; load.size];
    let mut sent = 0;
    run(side, &body, (&mut sent, WARM_UP.min(load.messages)), load.window, patience)?;
    let start = Instant::now();
    run(side, &body, (&mut sent, load.messages), load.window, patience)?;
    let took = start.elapsed();
    let mut times = Vec::new();
    for _ in 0..load.singles {
        let start = Instant::now();
        run(side, &body, (&mut sent, 1), 1, patience)?;
        times.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    side.check(sent)?;
    times.sort_unstable();
    let at =
        |share: f64| times.get(((times.len() as f64 * share) as usize).min(times.len().max(1) - 1));
    let time = |share| at(share).copied().unwrap_or(0);
    Ok(Figures {
        messages_per_second: load.messages as f64 / took.as_secs_f64(),
        messages: load.messages,
        p50_ns: time(0.5),
        p99_ns: time(0.99),
        max_ns: times.last().copied().unwrap_or(0),
        singles: load.singles,
    })
}

/// Sends `count` messages and waits until all that was sent is confirmed.
fn run(
    side: &mut impl PersistentSide,
    body: &[u8],
    (sent, count): (&mut u64, u64),
    window: u64,
    patience: Duration,
) -> Result<()> {
    let until = *sent + count;
    let (mut confirmed, mut progress) = (0, Instant::now());
    while confirmed < until {
        *sent += side.send(body, until - *sent, window)?;
        let now = side.confirmed()?;
        ensure!(now <= *sent, "{now} messages are confirmed, {sent} were sent");
        if now > confirmed {
            (confirmed, progress) = (now, Instant::now());
        }
        ensure!(
            progress.elapsed() < patience,
            "{confirmed} of {sent} messages are confirmed, and no more for {patience:?}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Confirms every other message with each look.
    #[derive(Default)]
    struct Model {
        sent: u64,
        confirmed: u64,
        most_open: u64,
        is_silent: bool,
    }

    impl PersistentSide for Model {
        fn send(&mut self, body: &[u8], most: u64, window: u64) -> Result<u64> {
            assert_eq!(body.len(), 100);
            let count = most.min(window - (self.sent - self.confirmed));
            self.sent += count;
            self.most_open = self.most_open.max(self.sent - self.confirmed);
            Ok(count)
        }

        fn confirmed(&mut self) -> Result<u64> {
            let open = self.sent - self.confirmed;
            self.confirmed += if self.is_silent { 0 } else { open.div_ceil(2) };
            Ok(self.confirmed)
        }

        fn check(&mut self, messages: u64) -> Result<()> {
            ensure!(messages == self.sent);
            Ok(())
        }
    }

    const LOAD: Load = Load { size: 100, window: 7, messages: 500, singles: 11 };

    #[test]
    fn the_load_is_sent_within_its_window_and_confirmed() {
        let mut model = Model::default();
        let figures = measure(&mut model, LOAD, Duration::from_secs(60)).unwrap();
        assert_eq!((model.sent, model.confirmed, model.most_open), (1_011, 1_011, 7));
        assert_eq!((figures.messages, figures.singles), (500, 11));
        assert!(figures.p50_ns <= figures.p99_ns && figures.p99_ns <= figures.max_ns);
    }

    #[test]
    fn silence_is_an_error() {
        let mut model = Model { is_silent: true, ..Model::default() };
        let error = measure(&mut model, LOAD, Duration::ZERO).unwrap_err().to_string();
        assert!(error.starts_with("0 of 7 messages are confirmed"), "{error}");
    }
}
