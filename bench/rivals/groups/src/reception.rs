//! Counts what a member receives: losses, repetitions, order, content, pauses, times, and the order
//! across senders. The members of the peers count by the same rules.

use crate::clock::monotonic;
use crate::message::{Content, HEADER_BYTES, Header, word_at};
use crate::times::Times;

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
    damaged: u64,
    /// Over sequences and contents in their order of delivery.
    digest: u64,
    /// Messages that it sent, when its end has come.
    sent: Option<u64>,
    has_started: bool,
    is_warm: bool,
    is_present: bool,
}

/// Times of the deliveries of other members' messages.
#[derive(Debug, Default)]
struct Latencies {
    /// Times from when messages were due.
    from_due: Times,
    /// Times from just before messages were sent.
    from_sent: Times,
}

/// Counts of everything that a member has received.
#[derive(Debug)]
pub struct Reception {
    senders: Vec<Sender>,
    content: Content,
    received: u64,
    first_at: u64,
    last_at: u64,
    longest_pause: u64,
    /// Times and counts.
    samples: Vec<(u64, u64)>,
    /// Over senders and sequences as they were delivered.
    order: u64,
    latencies: Option<Latencies>,
    mine: u32,
}

impl Reception {
    /// Nothing yet, at member `mine` of `members`.
    pub fn new(members: usize, mine: u32, content: Content, takes_latencies: bool) -> Self {
        Self {
            senders: vec![Sender::default(); members],
            content,
            received: 0,
            first_at: 0,
            last_at: 0,
            longest_pause: 0,
            samples: Vec::new(),
            order: HASH_START,
            latencies: takes_latencies.then(Latencies::default),
            mine,
        }
    }

    /// Notes that a member is here.
    pub fn start(&mut self, from: u32) {
        if let Some(sender) = self.senders.get_mut(from as usize) {
            sender.has_started = true;
        }
    }

    /// Whether all members are here.
    pub fn have_started(&self) -> bool {
        self.senders.iter().all(|sender| sender.has_started)
    }

    /// Notes that a member's warm-up is over.
    pub fn warm(&mut self, from: u32) {
        if let Some(sender) = self.senders.get_mut(from as usize) {
            sender.is_warm = true;
        }
    }

    /// Whether every member's warm-up is over.
    pub fn are_warm(&self) -> bool {
        self.senders.iter().all(|sender| sender.is_warm)
    }

    /// Takes a message that counts, whose header is `header`.
    pub fn take(&mut self, header: Header, message: &[u8]) {
        let Some(sender) = self.senders.get_mut(header.sender as usize) else { return };
        if header.sequence < sender.next {
            sender.duplicated += 1;
            return;
        }
        let (digest, is_whole) = self.content.read(sender.digest, header, message);
        sender.digest = digest;
        sender.damaged += u64::from(!is_whole);
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
            let sent_at = word_at(message, HEADER_BYTES).unwrap_or(now);
            latencies.from_due.add(now.saturating_sub(header.stamp));
            latencies.from_sent.add(now.saturating_sub(sent_at));
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
    pub fn words(&self) -> String {
        let sum = |value: fn(&Sender) -> u64| self.senders.iter().map(value).sum::<u64>();
        let each = |value: fn(&Sender) -> String| {
            self.senders.iter().map(value).collect::<Vec<_>>().join(",")
        };
        format!(
            "complete={} received={} elapsed={} steady={:.0} duplicated={} disordered={} \
             damaged={} pause={} hash={:x} by={} digests={}",
            u8::from(self.is_whole()),
            self.received,
            self.last_at - self.first_at,
            self.steady(),
            sum(|sender| sender.duplicated),
            sum(|sender| sender.disordered),
            sum(|sender| sender.damaged),
            self.longest_pause,
            self.order,
            each(|sender| sender.received.to_string()),
            each(|sender| format!("{:x}", sender.digest))
        )
    }

    /// The lines of the times, if they were taken.
    pub fn times(&self) -> Vec<String> {
        let latencies = self.latencies.iter();
        let lines = latencies.flat_map(|it| [("due", &it.from_due), ("sent", &it.from_sent)]);
        lines.map(|(from, times)| format!("times from={from} counts={}", times.printed())).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Kind;

    fn take(reception: &mut Reception, sender: u32, sequence: u64) {
        let mut bytes = [0; 64];
        let header = Header { kind: Kind::Data, sender, sequence, stamp: 0 };
        Content::Last.write(sender, sequence, &mut bytes);
        reception.take(header, &bytes);
    }

    #[test]
    fn gaps_repetitions_and_ends_are_seen() {
        let mut reception = Reception::new(2, 0, Content::Last, false);
        reception.set_present(|_| true);
        for (sender, sequence) in [(0, 0), (0, 1), (1, 0), (0, 1), (1, 2), (7, 0)] {
            take(&mut reception, sender, sequence);
        }
        let header = Header { kind: Kind::Data, sender: 0, sequence: 2, stamp: 0 };
        reception.take(header, &[0; 64]);
        assert!(!reception.is_whole());
        reception.end(0, 3);
        reception.end(1, 3);
        assert!(!reception.is_whole(), "one of member 1 is missing");
        let words = reception.words();
        let expected =
            ["received=5", "duplicated=1", "disordered=1", "damaged=1", "by=3,2", "complete=0"];
        for word in expected {
            assert!(words.contains(word), "{word}: {words}");
        }
        reception.set_present(|number| number == 0);
        assert!(reception.is_whole(), "member 1 is gone");
    }

    #[test]
    fn the_order_across_senders_shows_in_the_hash() {
        let hashes = |order: [u32; 3]| {
            let mut reception = Reception::new(3, 0, Content::Last, false);
            order.into_iter().for_each(|sender| take(&mut reception, sender, 0));
            (reception.order, reception.senders.iter().map(|it| it.digest).collect::<Vec<_>>())
        };
        assert_eq!(hashes([0, 1, 2]), hashes([0, 1, 2]));
        assert_ne!(hashes([0, 1, 2]).0, hashes([0, 2, 1]).0);
        assert_eq!(hashes([0, 1, 2]).1, hashes([0, 2, 1]).1, "digests are of one sender each");
    }

    #[test]
    fn times_count_from_the_due_time_and_from_the_actual_one() {
        let mut reception = Reception::new(2, 0, Content::Last, true);
        let now = monotonic();
        for sender in [0, 1] {
            let mut bytes = [0; 64];
            bytes[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&now.to_le_bytes());
            let stamp = now - 3_000_000_000;
            reception.take(Header { kind: Kind::Data, sender, sequence: 0, stamp }, &bytes);
        }
        let latencies = reception.latencies.as_ref().expect("taken");
        assert_eq!(latencies.from_due.count(), 1, "not of its own messages");
        let (due, sent) =
            (latencies.from_due.percentile(50.0), latencies.from_sent.percentile(50.0));
        assert!(due > 2_900_000_000 && sent < due, "{due} {sent}");
        assert_eq!(reception.times().len(), 2);
    }
}
