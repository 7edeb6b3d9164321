//! Counts what a member receives: losses, repetitions, order, pauses, and the order across senders.

use crate::clock::monotonic;
use crate::message::Header;

/// Between two samples of the count.
const SAMPLE_NS: u64 = 20_000_000;
/// Start value and factor of the FNV hash.
const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;
const HASH_FACTOR: u64 = 0x100_0000_01b3;

/// Counts of one sender.
#[derive(Clone, Debug, Default)]
struct Sender {
    next: u64,
    received: u64,
    duplicated: u64,
    disordered: u64,
    /// Messages that it sent, when its end has come.
    sent: Option<u64>,
    has_started: bool,
    is_present: bool,
}

/// Counts of everything that a member has received.
#[derive(Debug)]
pub struct Reception {
    senders: Vec<Sender>,
    received: u64,
    first_at: u64,
    last_at: u64,
    longest_pause: u64,
    /// Times and counts.
    samples: Vec<(u64, u64)>,
    /// Over senders and sequences as they were delivered.
    order: u64,
    /// Times from sending to delivery of other members' messages, if they are taken.
    latencies: Option<Vec<u64>>,
    mine: u32,
}

impl Reception {
    /// Nothing yet, at member `mine` of `members`.
    pub fn new(members: usize, mine: u32, takes_latencies: bool) -> Self {
        Self {
            senders: vec![Sender::default(); members],
            received: 0,
            first_at: 0,
            last_at: 0,
            longest_pause: 0,
            samples: Vec::new(),
            order: HASH_START,
            latencies: takes_latencies.then(Vec::new),
            mine,
        }
    }

    /// Notes that a member is ready.
    pub fn start(&mut self, from: u32) {
        if let Some(sender) = self.senders.get_mut(from as usize) {
            sender.has_started = true;
        }
    }

    /// Whether all members are ready.
    pub fn have_started(&self) -> bool {
        self.senders.iter().all(|sender| sender.has_started)
    }

    /// Takes a message that counts.
    pub fn take(&mut self, header: Header) {
        let Some(sender) = self.senders.get_mut(header.sender as usize) else { return };
        sender.has_started = true;
        if header.sequence < sender.next {
            sender.duplicated += 1;
            return;
        }
        sender.disordered += u64::from(header.sequence > sender.next);
        sender.next = header.sequence + 1;
        sender.received += 1;
        let members = self.senders.len() as u64;
        let place = header.sequence.wrapping_mul(members).wrapping_add(header.sender.into());
        self.order = (self.order ^ place).wrapping_mul(HASH_FACTOR);
        let now = monotonic();
        if self.first_at == 0 {
            self.first_at = now;
        } else {
            self.longest_pause = self.longest_pause.max(now - self.last_at);
        }
        self.last_at = now;
        self.received += 1;
        if header.sender != self.mine
            && let Some(latencies) = &mut self.latencies
        {
            latencies.push(now.saturating_sub(header.stamp));
        }
        if self.samples.last().is_none_or(|(at, _)| now - at > SAMPLE_NS) {
            self.samples.push((now, self.received));
        }
    }

    /// Notes how many messages a member has sent.
    pub fn end(&mut self, from: u32, sent: u64) {
        if let Some(sender) = self.senders.get_mut(from as usize) {
            sender.sent = Some(sent);
        }
    }

    /// Sets the members of the present view.
    pub fn set_present(&mut self, is_present: impl Fn(u32) -> bool) {
        for (number, sender) in (0..).zip(&mut self.senders) {
            sender.is_present = is_present(number);
        }
    }

    /// Whether everything has come that present members have sent.
    pub fn is_whole(&self) -> bool {
        let mut present = self.senders.iter().filter(|sender| sender.is_present);
        present.all(|sender| sender.sent.is_some_and(|sent| sender.received >= sent))
    }

    /// The counts, as words of the result line.
    pub fn words(&mut self) -> String {
        let sum = |value: fn(&Sender) -> u64| self.senders.iter().map(value).sum::<u64>();
        let by: Vec<String> = self.senders.iter().map(|it| it.received.to_string()).collect();
        let mut words = format!(
            "complete={} received={} elapsed={} steady={:.0} duplicated={} disordered={} pause={} \
             hash={:x} by={}",
            u8::from(self.is_whole()),
            self.received,
            self.last_at - self.first_at,
            self.steady(),
            sum(|sender| sender.duplicated),
            sum(|sender| sender.disordered),
            self.longest_pause,
            self.order,
            by.join(",")
        );
        if let Some(latencies) = &mut self.latencies {
            words += &format!(" {}", percentiles(latencies));
        }
        words
    }

    /// Messages a second in the second half of the time.
    fn steady(&self) -> f64 {
        let middle = self.first_at + (self.last_at - self.first_at) / 2;
        let later = self.samples.iter().find(|(at, _)| *at >= middle && *at < self.last_at);
        later.map_or(0.0, |(at, count)| {
            (self.received - count) as f64 * 1e9 / (self.last_at - at) as f64
        })
    }
}

/// The least of some times in nanoseconds, and their percentiles, as words.
pub fn percentiles(times: &mut [u64]) -> String {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or(0);
    format!("count={} min={} p50={} p90={} p99={}", times.len(), at(0), at(50), at(90), at(99))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Kind;

    fn data(sender: u32, sequence: u64) -> Header {
        Header { kind: Kind::Data, sender, sequence, stamp: 0 }
    }

    #[test]
    fn gaps_repetitions_and_ends_are_seen() {
        let mut reception = Reception::new(2, 0, false);
        reception.set_present(|_| true);
        for (sender, sequence) in [(0, 0), (0, 1), (1, 0), (0, 1), (1, 2), (7, 0)] {
            reception.take(data(sender, sequence));
        }
        assert!(reception.have_started() && !reception.is_whole());
        reception.end(0, 2);
        reception.end(1, 3);
        assert!(!reception.is_whole(), "one of member 1 is missing");
        let words = reception.words();
        for word in ["received=4", "duplicated=1", "disordered=1", "by=2,2", "complete=0"] {
            assert!(words.contains(word), "{word}: {words}");
        }
        reception.set_present(|number| number == 0);
        assert!(reception.is_whole(), "member 1 is gone");
    }

    #[test]
    fn the_order_across_senders_shows_in_the_hash() {
        let hash = |order: [u32; 3]| {
            let mut reception = Reception::new(3, 0, false);
            order.into_iter().for_each(|sender| reception.take(data(sender, 0)));
            reception.order
        };
        assert_eq!(hash([0, 1, 2]), hash([0, 1, 2]));
        assert_ne!(hash([0, 1, 2]), hash([0, 2, 1]));
    }
}
