//! Ledger of one topic of a subscriber: checks deliveries against the published messages.

use crate::ensure;
use crate::payload::Payloads;
use crate::truth::{TopicTruth, Truth};
use crate::violation::Verdict;
use lanecast_protocol::receiver::DeliveryOrder;
use std::collections::BTreeSet;

/// Ledger of one topic: contracts 1 and 2 of `lanecast-transport`.
///
/// Each message and each loss has the publisher's own numbers: every one continues the last, and
/// the first lies among those that a subscriber that joined then may begin with. In order of
/// arrival they may come in any order, but each once, and none is missing at the end.
#[derive(Debug)]
pub struct Ledger {
    topic: usize,
    stage: Stage,
    /// Lower limit of the first message's number.
    oldest: u64,
    /// Upper limit: messages published after Joined belong to the subscriber.
    newest: u64,
    /// Number of the next message, from the first delivery on.
    next: Option<u64>,
    /// Numbers accounted for, in order of arrival.
    told: Option<BTreeSet<u64>>,
    read: u64,
    lost: u64,
    /// Messages read after a later one.
    overtaken: u64,
    /// The batch of the last message continues.
    is_amid: bool,
    /// Left was delivered, with another reason than closing.
    may_return: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Joined,
    Left,
}

impl Ledger {
    /// Creates the ledger of a topic, whose first message is not older than `oldest`.
    pub fn new(topic: usize, oldest: u64, order: DeliveryOrder) -> Self {
        Self {
            topic,
            told: (order == DeliveryOrder::Arrival).then(BTreeSet::new),
            overtaken: 0,
            stage: Stage::Waiting,
            oldest,
            newest: 0,
            next: None,
            read: 0,
            lost: 0,
            is_amid: false,
            may_return: false,
        }
    }

    /// Number of the topic.
    pub const fn topic(&self) -> usize {
        self.topic
    }

    /// State in words: the topic, and the next message.
    pub fn state(&self) -> String {
        format!("{}:{:?}{:?}", self.topic, self.stage, self.next)
    }

    /// Number of messages read.
    pub const fn read(&self) -> u64 {
        self.read
    }

    /// Number of messages reported as lost.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Number of messages read after a later one.
    pub const fn overtaken(&self) -> u64 {
        self.overtaken
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

    /// Joined was delivered; after Left, the stream continues where it was.
    pub fn join(&mut self, truth: &Truth) -> Verdict {
        if self.stage == Stage::Left && self.may_return {
            self.stage = Stage::Joined;
            return Ok(());
        }
        ensure!(self.stage == Stage::Waiting, "Joined, but it is {:?}", self.stage);
        self.stage = Stage::Joined;
        self.newest = self.truth(truth).published();
        Ok(())
    }

    /// Message `number` was read.
    pub fn read_message(
        &mut self,
        truth: &Truth,
        (number, bytes): (u64, &[u8]),
        more: Option<bool>,
    ) -> Verdict {
        ensure!(self.stage == Stage::Joined, "a message, but it is {:?}", self.stage);
        self.check_next(number, "a message")?;
        let topic = self.truth(truth);
        let (told, published) = (Payloads::number(bytes), topic.published());
        ensure!(number < published, "message {number} of {published}: {told:?}");
        let length = bytes.len();
        ensure!(
            topic.speech.is(number, bytes),
            "not message {number}: it says {told:?}, and has {length} bytes of {}",
            topic.speech.length(number)
        );
        let goes_on = topic.goes_on[number as usize];
        ensure!(more.is_none_or(|more| more == goes_on), "MORE is wrong at {number}: {goes_on}");
        // In order of arrival batches come in pieces.
        self.is_amid = goes_on && self.told.is_none();
        self.account(number, 1);
        self.read += 1;
        Ok(())
    }

    /// Messages were reported as lost.
    pub fn lose(&mut self, truth: &Truth, first: u64, count: u64) -> Verdict {
        ensure!(self.stage == Stage::Joined, "Lost, but it is {:?}", self.stage);
        self.check_next(first, "a loss")?;
        ensure!(count > 0, "nothing was lost from {first}");
        let published = self.truth(truth).published();
        ensure!(
            published.checked_sub(first).is_some_and(|most| count <= most),
            "lost {count} from {first}, but there are only {published}"
        );
        if let Some(told) = &self.told {
            let twice = told.range(first..first + count).next();
            ensure!(twice.is_none(), "lost {count} from {first}, but {twice:?} was accounted for");
        }
        self.is_amid = false;
        self.account(first, count);
        self.lost += count;
        Ok(())
    }

    /// Accounts for numbers from `first` on.
    fn account(&mut self, first: u64, count: u64) {
        match &mut self.told {
            None => self.next = Some(first + count),
            Some(told) => {
                self.overtaken += u64::from(told.last().is_some_and(|last| first < *last));
                told.extend(first..first + count);
            }
        }
    }

    /// Left was delivered; after a close, nothing may be missing.
    pub fn leave(&mut self, truth: &Truth, was_closed: bool) -> Verdict {
        ensure!(self.stage == Stage::Joined, "Left, but it is {:?}", self.stage);
        self.stage = Stage::Left;
        (self.is_amid, self.may_return) = (false, !was_closed);
        ensure!(self.has_no_holes(), "Left, but neither read nor lost: {}", self.holes());
        if was_closed {
            ensure!(truth.is_closed, "told that it closed, but it has not");
            self.check_whole(truth)?;
        }
        Ok(())
    }

    /// Checks that every published message was delivered or reported as lost.
    pub fn check_whole(&self, truth: &Truth) -> Verdict {
        let published = self.truth(truth).published();
        let Some((first, last)) = self.range() else {
            return self.check_next(published, "the end");
        };
        ensure!(self.has_no_holes(), "neither read nor lost: {}", self.holes());
        ensure!(last + 1 == published, "the end at {published}, but {} is due", last + 1);
        let (oldest, newest) = (self.oldest, self.newest);
        let begins = (oldest..=newest).contains(&first);
        ensure!(begins, "{first} is the first, which is not in {oldest}..={newest}");
        Ok(())
    }

    /// First and last number accounted for, in order of arrival.
    fn range(&self) -> Option<(u64, u64)> {
        let told = self.told.as_ref()?;
        Some((*told.first()?, *told.last()?))
    }

    /// Whether every number between the first and the last was accounted for.
    fn has_no_holes(&self) -> bool {
        let count = self.told.as_ref().map_or(0, |told| told.len() as u64);
        self.range().is_none_or(|(first, last)| last - first + 1 == count)
    }

    fn holes(&self) -> String {
        let (Some((first, last)), Some(told)) = (self.range(), &self.told) else {
            return String::new();
        };
        let holes: Vec<u64> = (first..last).filter(|number| !told.contains(number)).collect();
        format!("{holes:?}")
    }

    /// Whether every published message was delivered or reported as lost.
    pub fn is_whole(&self, truth: &Truth) -> bool {
        self.check_whole(truth).is_ok()
    }

    /// Checks that `number` is the next one, or one that the subscriber may begin with.
    fn check_next(&self, number: u64, what: &str) -> Verdict {
        let (oldest, newest) = (self.oldest, self.newest);
        if let Some(told) = self.told.as_ref().filter(|told| !told.is_empty()) {
            ensure!(number >= oldest, "{what} at {number}, which is older than {oldest}");
            ensure!(!told.contains(&number), "{what} at {number}, which was accounted for");
            return Ok(());
        }
        match self.next {
            Some(next) => ensure!(number == next, "{what} at {number}, but {next} is due"),
            // Behind a gap the first may come later.
            None if self.told.is_some() => ensure!(number >= oldest, "{what} at {number}"),
            None => ensure!(
                (oldest..=newest).contains(&number),
                "{what} at {number} is the first, which is not in {oldest}..={newest}"
            ),
        }
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
        ledger.read_message(truth, (number, &bytes), Some(false))
    }

    fn joined(truth: &Truth) -> Ledger {
        let mut ledger = Ledger::new(0, 0, DeliveryOrder::Publication);
        ledger.join(truth).expect("joins");
        ledger
    }

    #[test]
    fn a_whole_account_is_accepted() -> Verdict {
        let truth = truth(10);
        let mut ledger = joined(&truth);
        read(&mut ledger, &truth, 3)?;
        read(&mut ledger, &truth, 4)?;
        ledger.lose(&truth, 5, 3)?;
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
        assert!(after(&[1, 2]).lose(&truth, 2, 1).is_err(), "from the wrong one");
        assert!(after(&[1, 2]).lose(&truth, 3, 0).is_err(), "nothing");
        assert!(after(&[1, 2]).lose(&truth, 3, 9).is_err(), "more than there are");
        assert!(after(&[1, 2]).leave(&truth, true).is_err(), "before the end");
        assert!(after(&[1, 2]).join(&truth).is_err(), "joined twice");
        assert!(
            read(&mut Ledger::new(0, 0, DeliveryOrder::Publication), &truth, 0).is_err(),
            "before Joined"
        );
        assert!(read(&mut Ledger { oldest: 2, ..after(&[]) }, &truth, 1).is_err(), "too old");
        let mut joined = Ledger { oldest: 2, ..after(&[]) };
        joined.reach_back(0);
        assert!(read(&mut joined, &truth, 1).is_err(), "it begins where it began");
        let mut again = after(&[1, 2]);
        again.leave(&truth, false).expect("right");
        again.join(&truth).expect("its publisher was not dead");
        assert!(read(&mut again, &truth, 4).is_err(), "lost in silence between the two");
        again.lose(&truth, 3, 1).expect("right");
        read(&mut again, &truth, 4).expect("right");
        let mut ledger = after(&[8, 9]);
        ledger.leave(&truth, true).expect("right");
        assert!(ledger.leave(&truth, true).is_err(), "left twice");
        assert!(ledger.lose(&truth, 10, 1).is_err(), "after the end");
        let mut bytes = [0; 24];
        truth.topics[0].speech.write(3, &mut bytes);
        let misnumbered = after(&[1, 2]).read_message(&truth, (4, &bytes), None);
        assert!(misnumbered.is_err(), "another message's number");
    }

    #[test]
    fn in_order_of_arrival_each_number_comes_once_and_none_is_missing() -> Verdict {
        let truth = truth(6);
        let arriving = || {
            let mut ledger = Ledger::new(0, 0, DeliveryOrder::Arrival);
            ledger.join(&truth).expect("joins");
            ledger
        };
        let mut ledger = arriving();
        for number in [2, 5, 3] {
            read(&mut ledger, &truth, number)?;
        }
        assert_eq!(ledger.overtaken(), 1);
        assert!(read(&mut ledger, &truth, 5).is_err(), "twice");
        assert!(ledger.lose(&truth, 4, 2).is_err(), "5 was read");
        assert!(ledger.check_whole(&truth).is_err(), "4 is missing");
        ledger.lose(&truth, 4, 1)?;
        ledger.leave(&truth, true)?;
        let mut ledger = arriving();
        read(&mut ledger, &truth, 1)?;
        assert!(!ledger.is_whole(&truth), "not the end");
        read(&mut ledger, &truth, 3)?;
        assert!(ledger.leave(&truth, false).is_err(), "2 is missing");
        Ok(())
    }

    #[test]
    fn short_messages_are_known_by_their_numbers_alone() -> Verdict {
        let mut truth = truth(5);
        truth.topics[0].speech = Payloads::new(1, 0, Sizes::Even(3));
        let mut bytes = [0; 3];
        truth.topics[0].speech.write(4, &mut bytes);
        let mut ledger = joined(&truth);
        ledger.read_message(&truth, (4, &bytes), None)?;
        ledger.check_whole(&truth)?;
        truth.topics[0].goes_on.push(false);
        assert!(!ledger.is_whole(&truth));
        Ok(())
    }
}
