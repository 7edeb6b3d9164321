//! Ledger of one topic of a subscriber: checks deliveries against the published messages.

use crate::ensure;
use crate::payload::Payloads;
use crate::truth::{TopicTruth, Truth};
use crate::violation::Verdict;

/// Ledger of one topic: contracts 1 and 2 of `lanecast-transport`.
///
/// Messages are counted from the subscriber's first, whose number (`base`) is known as soon as a
/// message is long enough to contain its own.
#[derive(Debug)]
pub struct Ledger {
    topic: usize,
    stage: Stage,
    /// Lower limit of the first message's number.
    oldest: u64,
    /// Upper limit: messages published after Joined belong to the subscriber.
    newest: u64,
    base: Option<u64>,
    next: u64,
    read: u64,
    lost: u64,
    /// The batch of the last message continues.
    is_amid: bool,
    /// Left was delivered, with another reason than closing.
    may_return: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Joined,
    /// A loss of unknown size: only Left may follow.
    Uncertain,
    Left,
}

impl Ledger {
    /// Creates the ledger of a topic, whose first message is not older than `oldest`.
    pub const fn new(topic: usize, oldest: u64) -> Self {
        let (stage, base) = (Stage::Waiting, None);
        let (is_amid, may_return) = (false, false);
        Self {
            topic,
            stage,
            oldest,
            newest: 0,
            base,
            next: 0,
            read: 0,
            lost: 0,
            is_amid,
            may_return,
        }
    }

    /// Number of the topic.
    pub const fn topic(&self) -> usize {
        self.topic
    }

    /// State in words: the topic, the first message, and the number of deliveries.
    pub fn state(&self) -> String {
        format!("{}:{:?}{:?}+{}", self.topic, self.stage, self.base, self.next)
    }

    /// Number of messages read.
    pub const fn read(&self) -> u64 {
        self.read
    }

    /// Number of messages reported as lost.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether Joined was delivered, and Left was not.
    pub fn is_joined(&self) -> bool {
        self.stage == Stage::Joined
    }

    /// Whether Left was delivered.
    pub fn has_left(&self) -> bool {
        self.stage == Stage::Left
    }

    /// Whether the last delivery is a message whose batch continues.
    pub const fn is_amid_batch(&self) -> bool {
        self.is_amid
    }

    /// Lowers the limit of the first message of a topic that was not joined yet.
    pub fn reach_back(&mut self, oldest: u64) {
        if self.stage == Stage::Waiting {
            self.oldest = self.oldest.min(oldest);
        }
    }

    /// Joined was delivered; after Left, counting starts again.
    pub fn join(&mut self, truth: &Truth) -> Verdict {
        if self.stage == Stage::Left && self.may_return {
            self.base = self.base.map(|base| base + self.next);
            (self.oldest, self.newest) = (self.oldest + self.next, self.newest + self.next);
            (self.next, self.stage) = (0, Stage::Joined);
            return Ok(());
        }
        ensure!(self.stage == Stage::Waiting, "Joined, but it is {:?}", self.stage);
        self.stage = Stage::Joined;
        self.newest = self.truth(truth).published();
        Ok(())
    }

    /// A message was read.
    pub fn read_message(&mut self, truth: &Truth, bytes: &[u8], more: Option<bool>) -> Verdict {
        ensure!(self.stage == Stage::Joined, "a message, but it is {:?}", self.stage);
        let topic = self.truth(truth);
        if let (None, Some(number)) = (self.base, Payloads::number(bytes)) {
            let base = number.wrapping_sub(self.next);
            self.check_base(base, &format!("message {number}"))?;
            self.base = Some(base);
        }
        if let Some(base) = self.base {
            let due = base + self.next;
            let told = Payloads::number(bytes);
            let published = topic.published();
            ensure!(due < published, "message {due} of {published}: {told:?}");
            let length = bytes.len();
            ensure!(
                topic.speech.is(due, bytes),
                "not message {due}: it says {told:?}, and has {length} bytes of {}",
                topic.speech.length(due)
            );
            let goes_on = topic.goes_on[due as usize];
            ensure!(more.is_none_or(|more| more == goes_on), "MORE is wrong at {due}: {goes_on}");
            self.is_amid = goes_on;
        }
        self.next += 1;
        self.read += 1;
        Ok(())
    }

    /// Messages were reported as lost; the number is known unless the session has broken off.
    pub fn lose(&mut self, truth: &Truth, first: u64, count: Option<u64>) -> Verdict {
        ensure!(self.stage == Stage::Joined, "Lost, but it is {:?}", self.stage);
        ensure!(first == self.next, "lost from {first}, but {} is due", self.next);
        self.is_amid = false;
        let Some(count) = count else {
            self.stage = Stage::Uncertain;
            return Ok(());
        };
        ensure!(count > 0, "nothing was lost from {first}");
        self.next += count;
        self.lost += count;
        let (base, published) = (self.base.unwrap_or(self.oldest), self.truth(truth).published());
        ensure!(
            base + self.next <= published,
            "lost {count} from {first}, counted from {base}, but there are only {published}"
        );
        Ok(())
    }

    /// Left was delivered; after a close, nothing may be missing.
    pub fn leave(&mut self, truth: &Truth, was_closed: bool) -> Verdict {
        let is_certain = self.stage == Stage::Joined;
        ensure!(is_certain || self.stage == Stage::Uncertain, "Left, but it is {:?}", self.stage);
        self.stage = Stage::Left;
        (self.is_amid, self.may_return) = (false, !was_closed);
        if was_closed {
            ensure!(is_certain, "an unknown number is lost from {} on", self.next);
            ensure!(truth.is_closed, "told that it closed, but it has not");
            self.check_whole(truth)?;
        }
        Ok(())
    }

    /// Checks that every published message was delivered or reported as lost.
    pub fn check_whole(&self, truth: &Truth) -> Verdict {
        let published = self.truth(truth).published();
        ensure!(self.next <= published, "{} told of {published} published", self.next);
        let base = published - self.next;
        match self.base {
            Some(known) => {
                ensure!(known == base, "message {} of {published} is due", known + self.next);
                Ok(())
            }
            None => self.check_base(base, "the end"),
        }
    }

    /// Whether every published message was delivered or reported as lost.
    pub fn is_whole(&self, truth: &Truth) -> bool {
        self.check_whole(truth).is_ok()
    }

    fn check_base(&self, base: u64, what: &str) -> Verdict {
        let (oldest, newest) = (self.oldest, self.newest);
        ensure!(
            (oldest..=newest).contains(&base),
            "the first message is {base}, as {what} shows, which is not in {oldest}..={newest}"
        );
        Ok(())
    }

    fn truth<'a>(&self, truth: &'a Truth) -> &'a TopicTruth {
        &truth.topics[self.topic]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Sizes;

    fn truth(published: usize) -> Truth {
        let mut topic = TopicTruth::new("a".into(), Payloads::new(1, 0, Sizes::Even(24)));
        topic.goes_on = vec![false; published];
        Truth { session: 1, topics: vec![topic], is_closed: true }
    }

    fn read(ledger: &mut Ledger, truth: &Truth, number: u64) -> Verdict {
        let mut bytes = [0; 24];
        truth.topics[0].speech.write(number, &mut bytes);
        ledger.read_message(truth, &bytes, Some(false))
    }

    fn joined(truth: &Truth) -> Ledger {
        let mut ledger = Ledger::new(0, 0);
        ledger.join(truth).expect("joins");
        ledger
    }

    #[test]
    fn a_whole_account_is_accepted() -> Verdict {
        let truth = truth(10);
        let mut ledger = joined(&truth);
        read(&mut ledger, &truth, 3)?;
        read(&mut ledger, &truth, 4)?;
        ledger.lose(&truth, 2, Some(3))?;
        read(&mut ledger, &truth, 8)?;
        assert!(!ledger.is_whole(&truth));
        read(&mut ledger, &truth, 9)?;
        ledger.leave(&truth, true)?;
        assert_eq!((ledger.read(), ledger.lost()), (4, 3));
        Ok(())
    }

    #[test]
    fn whatever_is_wrong_is_noticed() {
        let truth = truth(10);
        let after = |numbers: &[u64]| {
            let mut ledger = joined(&truth);
            numbers.iter().for_each(|n| read(&mut ledger, &truth, *n).expect("right"));
            ledger
        };
        assert!(read(&mut after(&[1, 2]), &truth, 2).is_err(), "twice");
        assert!(read(&mut after(&[1, 2]), &truth, 4).is_err(), "lost in silence");
        assert!(after(&[1, 2]).lose(&truth, 1, Some(1)).is_err(), "from the wrong one");
        assert!(after(&[1, 2]).lose(&truth, 2, Some(0)).is_err(), "nothing");
        assert!(after(&[1, 2]).lose(&truth, 2, Some(9)).is_err(), "more than there are");
        assert!(after(&[1, 2]).leave(&truth, true).is_err(), "before the end");
        assert!(after(&[1, 2]).join(&truth).is_err(), "joined twice");
        assert!(read(&mut Ledger::new(0, 0), &truth, 0).is_err(), "before Joined");
        let mut uncertain = after(&[8]);
        uncertain.lose(&truth, 1, None).expect("right");
        assert!(read(&mut uncertain, &truth, 9).is_err(), "who knows how many were lost?");
        assert!(uncertain.leave(&truth, true).is_err(), "a closed session's count is known");
        assert!(read(&mut Ledger { oldest: 2, ..after(&[]) }, &truth, 1).is_err(), "too old");
        let mut joined = Ledger { oldest: 2, ..after(&[]) };
        joined.reach_back(0);
        assert!(read(&mut joined, &truth, 1).is_err(), "it begins where it began");
        let mut again = after(&[1, 2]);
        again.leave(&truth, false).expect("right");
        again.join(&truth).expect("its publisher was not dead");
        assert!(read(&mut again, &truth, 4).is_err(), "lost in silence between the two");
        again.lose(&truth, 0, Some(1)).expect("right");
        read(&mut again, &truth, 4).expect("right");
        let mut ledger = after(&[8, 9]);
        ledger.leave(&truth, true).expect("right");
        assert!(ledger.leave(&truth, true).is_err(), "left twice");
        assert!(ledger.lose(&truth, 2, Some(1)).is_err(), "after the end");
    }

    #[test]
    fn short_messages_are_counted_until_one_tells_its_number() -> Verdict {
        let mut truth = truth(5);
        truth.topics[0].speech = Payloads::new(1, 0, Sizes::Even(3));
        let mut ledger = joined(&truth);
        ledger.read_message(&truth, b"abc", None)?;
        ledger.check_whole(&truth)?;
        truth.topics[0].goes_on.push(false);
        ledger.newest = 2;
        assert!(!ledger.is_whole(&truth));
        Ok(())
    }
}
