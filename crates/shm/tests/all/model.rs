//! Publisher and subscriber against the simplest model there is: a queue.

use lanecast_shm::{Domain, DomainSettings, Publisher, Subscriber};
use lanecast_transport::{Batch, Claim, ClaimError, Event, Publish, Subscribe, TopicId, Transport};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

const WINDOW_BYTES: u64 = 64 << 10;
const LONGEST: usize = WINDOW_BYTES as usize / 8;

/// One thing to do.
#[derive(Clone, Debug)]
enum Act {
    /// Claims so many bytes; commits, or not.
    Claim(usize, bool),
    /// Copies so many bytes.
    Offer(usize),
    /// Claims, commits and claims again, if there is room for both.
    Pair(usize, usize),
    /// A batch of such lengths; publishes, or not.
    Batch(Vec<usize>, bool),
    /// Reads at most so many messages.
    Poll(usize),
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0..100usize, 1 => 0..=LONGEST, 1 => Just(LONGEST), 1 => Just(0)]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (length(), any::<bool>()).prop_map(|(length, commits)| Act::Claim(length, commits)),
        2 => length().prop_map(Act::Offer),
        1 => (length(), length()).prop_map(|(first, second)| Act::Pair(first, second)),
        2 => (vec(length(), 0..6), any::<bool>())
            .prop_map(|(all, commits)| Act::Batch(all, commits)),
        3 => (0..40usize).prop_map(Act::Poll),
    ]
}

/// Both ends, and what the model says is on the way.
struct Pair {
    publisher: Publisher,
    subscriber: Subscriber,
    on_the_way: VecDeque<Vec<u8>>,
    sent: u8,
}

impl Pair {
    fn next(&mut self, length: usize) -> Vec<u8> {
        self.sent = self.sent.wrapping_add(1);
        (0..length).map(|index| (index as u8) ^ self.sent).collect()
    }

    fn act(&mut self, act: Act) -> Result<(), TestCaseError> {
        match act {
            Act::Claim(length, commits) => self.claim(length, commits),
            Act::Offer(length) => self.try_send(length),
            Act::Pair(first, second) => self.pair(first, second),
            Act::Batch(lengths, commits) => self.batch(lengths, commits),
            Act::Poll(limit) => self.poll(limit).map(drop),
        }
    }

    /// Back-pressure is right only if something is on the way.
    fn refused(&self, error: ClaimError) -> Result<(), TestCaseError> {
        prop_assert!(matches!(error, ClaimError::BackPressured(_)), "{error}");
        let held: usize = self.on_the_way.iter().map(|bytes| bytes.len() + 24).sum();
        // The reader shows its place an eighth of a window late.
        prop_assert!(held > WINDOW_BYTES as usize / 2, "{held} bytes on the way are no reason");
        Ok(())
    }

    fn claim(&mut self, length: usize, commits: bool) -> Result<(), TestCaseError> {
        let bytes = self.next(length);
        match self.publisher.try_claim(length) {
            Err(error) => return self.refused(error),
            Ok(mut claim) => {
                claim.copy_from_slice(&bytes);
                if !commits {
                    return Ok(());
                }
                claim.commit();
            }
        }
        self.on_the_way.push_back(bytes);
        Ok(())
    }

    fn try_send(&mut self, length: usize) -> Result<(), TestCaseError> {
        let bytes = self.next(length);
        match self.publisher.try_send(&bytes) {
            Err(error) => self.refused(error),
            Ok(()) => {
                self.on_the_way.push_back(bytes);
                Ok(())
            }
        }
    }

    fn pair(&mut self, first: usize, second: usize) -> Result<(), TestCaseError> {
        // The second claim waits for space, and only this thread reads: empty the ring first.
        while self.poll(64)? > 0 {}
        let bodies = [self.next(first), self.next(second)];
        let mut claim = self.publisher.try_claim(first).expect("an empty window");
        claim.copy_from_slice(&bodies[0]);
        let mut claim = claim.commit_and_claim_next(second).expect("room");
        claim.copy_from_slice(&bodies[1]);
        claim.commit();
        self.on_the_way.extend(bodies);
        Ok(())
    }

    fn batch(&mut self, lengths: Vec<usize>, commits: bool) -> Result<(), TestCaseError> {
        let bodies: Vec<_> = lengths.iter().map(|&length| self.next(length)).collect();
        let mut batch = self.publisher.batch();
        let mut added = Vec::new();
        for body in bodies {
            match batch.try_add(TopicId::FIRST, body.len()) {
                Ok(room) => room.copy_from_slice(&body),
                Err(ClaimError::BackPressured(_)) => break,
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            }
            added.push(body);
        }
        prop_assert_eq!(batch.len(), added.len());
        if commits {
            prop_assert_eq!(batch.publish(), added.len());
            self.on_the_way.extend(added);
        }
        Ok(())
    }

    fn poll(&mut self, limit: usize) -> Result<usize, TestCaseError> {
        let mut received = Vec::new();
        let work = self.subscriber.poll(limit, |event| match event {
            Event::Message(message) => received.push(message.bytes().to_vec()),
            Event::Joined(_) => {}
            other => panic!("{other:?}"),
        });
        prop_assert!(received.len() <= limit);
        if limit > self.on_the_way.len() + 1 {
            prop_assert_eq!(received.len(), self.on_the_way.len(), "all that is there");
        }
        for bytes in received {
            prop_assert_eq!(self.on_the_way.pop_front(), Some(bytes));
        }
        Ok(work)
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn a_pair_is_a_queue(
        acts in vec(act(), 1..200),
        first_position in prop_oneof![
            Just(0u64),
            u64::MAX - 4 * WINDOW_BYTES..=u64::MAX,
            u64::from(u32::MAX) - 4 * WINDOW_BYTES..u64::from(u32::MAX),
        ],
    ) {
        let directory = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
        let domain = Domain::open(DomainSettings {
            directory: directory.path().join("domain"),
            window_bytes: WINDOW_BYTES,
            first_position,
            ..DomainSettings::default()
        });
        let domain = domain.expect("a domain");
        let mut publisher = domain.publisher("t").expect("a publisher");
        let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
        prop_assert!(publisher.wait_for_subscribers(1, Duration::from_secs(30)));
        // The conductor has joined, and is about to hand over.
        while subscriber.streams() == 0 {
            subscriber.poll(1, |_| {});
        }
        let mut pair = Pair { publisher, subscriber, on_the_way: VecDeque::new(), sent: 0 };
        for act in acts {
            pair.act(act)?;
        }
        while pair.poll(1_000)? > 0 {}
        prop_assert!(pair.on_the_way.is_empty());
        prop_assert!(pair.publisher.drain(Duration::from_secs(30)).is_complete());
    }
}
