//! Sessions with what they did between two looks, as `ls` and `top` show them.

use crate::table::grouped;
use lanecast::shm::{
    DomainSnapshot, SessionRates, SessionReport, SubscriberRates, SubscriberReport,
};
use lanecast::{WaitStrategy, shm};
use lanecast_os::process::State;

/// Width of a session's number.
pub(crate) const NUMBER_COLUMNS: usize = 16;

/// A session and its rates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) report: SessionReport,
    pub(crate) rates: SessionRates,
}

/// A subscriber of a session and its rates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscriber<'a> {
    pub(crate) report: &'a SubscriberReport,
    pub(crate) rates: SubscriberRates,
    session: &'a Session,
}

/// The sessions of `now`, with their rates since `before`.
pub(crate) fn since(before: &DomainSnapshot, now: &DomainSnapshot) -> Vec<Session> {
    let with_rates = |report: &SessionReport| Session {
        rates: before.rates_until(report, now.at),
        report: report.clone(),
    };
    now.sessions.iter().map(with_rates).collect()
}

/// Why sessions could not be read, in words.
pub(crate) fn errors(look: &shm::DomainSnapshot) -> Vec<String> {
    look.unreadable.iter().map(ToString::to_string).collect()
}

/// The name of a waiting strategy.
pub(crate) fn wait_name(wait: Option<WaitStrategy>) -> &'static str {
    wait.map_or("?", WaitStrategy::name)
}

impl Session {
    pub(crate) fn number(&self) -> String {
        format!("{:016x}", self.report.session)
    }

    pub(crate) const fn state(&self) -> &'static str {
        match (self.report.is_closed, self.report.is_alive) {
            (true, _) => "closed",
            (false, true) => "alive",
            (false, false) => "dead",
        }
    }

    pub(crate) fn subscribers(&self) -> impl Iterator<Item = Subscriber<'_>> {
        let rates = self.rates.subscribers.iter().copied();
        // A rate for each: a report without one is shown at rest.
        let rates = rates.chain(std::iter::repeat(SubscriberRates::default()));
        let pairs = self.report.subscribers.iter().zip(rates);
        pairs.map(|(report, rates)| Subscriber { report, rates, session: self })
    }

    /// Part of the window that its slowest subscriber has yet to read, from 0 to 1.
    pub(crate) fn fill(&self) -> f64 {
        let fills = self.subscribers().filter(|subscriber| !subscriber.report.is_evicted);
        fills.map(|subscriber| subscriber.fill()).fold(0.0, f64::max)
    }

    /// The mean length of its messages, with headers: of late, or else over its life.
    fn message_bytes(&self) -> Option<f64> {
        let (report, rates) = (&self.report, &self.rates);
        if rates.messages > 0.0 {
            return Some(rates.bytes / rates.messages);
        }
        (report.messages > 0).then(|| report.position as f64 / report.messages as f64)
    }
}

impl Subscriber<'_> {
    pub(crate) const fn state(&self) -> &'static str {
        match self.report {
            // The publisher evicts it too, to have its slot.
            SubscriberReport { is_alive: false, .. } => "dead",
            SubscriberReport { is_evicted: true, .. } => "evicted",
            SubscriberReport { state: Some(State::Stopped), .. } => "stopped",
            _ => "alive",
        }
    }

    /// Part of the window that it has yet to read, from 0 to 1.
    pub(crate) fn fill(&self) -> f64 {
        let window = self.session.report.window_bytes.max(1);
        (self.report.lag_bytes as f64 / window as f64).min(1.0)
    }

    /// Whether the living subscriber leaves the publisher no room. Its position is published up to
    /// an eighth of a window late, so the last eighth counts as full.
    pub(crate) fn holds_publisher_up(&self) -> bool {
        let full = self.report.lag_bytes > self.session.report.window_bytes / 8 * 7;
        full && self.report.is_alive && !self.report.is_evicted
    }

    /// [`lag_messages`](Self::lag_messages) in words: all but nothing is an estimate.
    pub(crate) fn behind(&self) -> String {
        match self.lag_messages() {
            Some(0) => "0".to_owned(),
            Some(count) => format!("~{}", grouped(count)),
            None => "?".to_owned(),
        }
    }

    /// About how many messages it has yet to read; `None` if their length is not known.
    pub(crate) fn lag_messages(&self) -> Option<u64> {
        match self.report.lag_bytes {
            0 => Some(0),
            lag => {
                let each = self.session.message_bytes().filter(|&bytes| bytes >= 1.0)?;
                Some((lag as f64 / each).round() as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(lag_bytes: u64) -> Session {
        let mut session = Session::default();
        let report = &mut session.report;
        (report.window_bytes, report.messages, report.position) = (1024, 100, 6400);
        let mut subscriber = SubscriberReport::default();
        (subscriber.is_alive, subscriber.lag_bytes) = (true, lag_bytes);
        report.subscribers.push(subscriber);
        session
    }

    fn seen<T>(session: &Session, look: impl Fn(Subscriber<'_>) -> T) -> T {
        look(session.subscribers().next().unwrap())
    }

    #[test]
    fn a_full_window_holds_the_publisher_up() {
        let half = session(512);
        assert_eq!((half.fill(), seen(&half, |s| s.holds_publisher_up())), (0.5, false));
        let mut full = session(1024);
        assert_eq!((full.fill(), seen(&full, |s| s.holds_publisher_up())), (1.0, true));
        full.report.subscribers[0].is_evicted = true;
        assert_eq!((full.fill(), seen(&full, |s| s.holds_publisher_up())), (0.0, false));
        assert_eq!(session(u64::MAX).fill(), 1.0, "damage is bounded");
    }

    #[test]
    fn a_dead_subscriber_is_dead_also_when_it_is_evicted() {
        let mut session = session(0);
        for (is_alive, is_evicted, state) in [
            (true, false, "alive"),
            (true, true, "evicted"),
            (false, false, "dead"),
            (false, true, "dead"),
        ] {
            let report = &mut session.report.subscribers[0];
            (report.is_alive, report.is_evicted) = (is_alive, is_evicted);
            assert_eq!(seen(&session, |s| s.state()), state);
        }
    }

    #[test]
    fn messages_behind_come_from_the_mean_length() {
        let mut session = session(640);
        assert_eq!(seen(&session, |s| s.lag_messages()), Some(10));
        (session.rates.messages, session.rates.bytes) = (2.0, 640.0);
        assert_eq!(seen(&session, |s| s.lag_messages()), Some(2), "of late they are longer");
        session.report.messages = 0;
        session.rates = SessionRates::default();
        assert_eq!(seen(&session, |s| s.lag_messages()), None);
        session.report.subscribers[0].lag_bytes = 0;
        assert_eq!(seen(&session, |s| s.lag_messages()), Some(0));
    }
}
