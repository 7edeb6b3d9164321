//! The byte ring against a model that is too simple to be wrong, and between threads.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use lanecast_base::WaitStrategy;
use lanecast_ring::bytes::{self, BuildError, ByteConsumer, ByteProducer, ClaimError};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(60);

/// A message of `len` bytes that tells its number.
fn message(number: u64, len: usize) -> Vec<u8> {
    (0..len).map(|index| (number as usize * 31 + index * 7) as u8).collect()
}

/// Length of the frame of a message of `len` bytes.
fn frame(len: usize) -> usize {
    8 + len.next_multiple_of(8)
}

#[derive(Clone, Debug)]
enum Act {
    Offer(usize),
    Abort(usize),
    Batch(Vec<usize>, bool),
    Flush,
    Poll(usize, usize),
}

fn act() -> impl Strategy<Value = Act> {
    let len = || prop_oneof![4 => 0..40_usize, 1 => 110..124_usize];
    prop_oneof![
        8 => len().prop_map(Act::Offer),
        1 => len().prop_map(Act::Abort),
        2 => (prop::collection::vec(len(), 0..5), any::<bool>())
            .prop_map(|(lens, publish)| Act::Batch(lens, publish)),
        1 => Just(Act::Flush),
        8 => (0..3_usize, 0..6_usize).prop_map(|(who, limit)| Act::Poll(who, limit)),
    ]
}

const CAPACITY: usize = 256;
const LONGEST: usize = CAPACITY / 2 - 8;

/// Two consumers side by side and one behind both; what each has still to read.
struct Rig {
    producer: ByteProducer,
    consumers: [ByteConsumer; 3],
    expected: [VecDeque<Vec<u8>>; 3],
    number: u64,
}

impl Rig {
    fn new(stride: u32, delay: Duration) -> Self {
        let mut build = bytes::single_producer(CAPACITY).unwrap().stride(stride, delay);
        let (first, second) = (build.consumer(), build.consumer());
        let third = build.after(&[&first, &second]).unwrap();
        Self {
            producer: build.producer().unwrap(),
            consumers: [first, second, third],
            expected: Default::default(),
            number: 0,
        }
    }

    fn written(&mut self, message: &[u8]) {
        self.expected.iter_mut().for_each(|queue| queue.push_back(message.to_vec()));
        self.number += 1;
    }

    /// The most bytes that the slowest has still to read: its frames, and padding, which is
    /// shorter than the frame behind it.
    fn unread(&self) -> usize {
        let bytes = |queue: &VecDeque<Vec<u8>>| {
            let frames = queue.iter().map(|message| frame(message.len()));
            frames.clone().sum::<usize>() + frames.max().unwrap_or(0)
        };
        self.expected.iter().map(bytes).max().unwrap_or(0)
    }

    fn check_refusal(&mut self, len: usize, error: ClaimError) {
        match error {
            ClaimError::TooLong { longest } => assert!(longest == LONGEST && len > LONGEST),
            ClaimError::Full => {
                let needed = 2 * frame(len);
                assert!(self.unread() + needed > CAPACITY, "there is room for {len}");
            }
            other => panic!("{other}"),
        }
    }

    fn try_send(&mut self, len: usize) {
        let message = message(self.number, len);
        match self.producer.try_send(&message) {
            Ok(()) => self.written(&message),
            Err(error) => self.check_refusal(len, error),
        }
    }

    fn abort(&mut self, len: usize) {
        match self.producer.try_claim(len) {
            Ok(mut claim) => claim.fill(0xAA),
            Err(error) => self.check_refusal(len, error),
        }
    }

    fn batch(&mut self, lens: &[usize], publish: bool) {
        let first = self.number;
        let mut batch = self.producer.batch();
        let mut added = Vec::new();
        for &len in lens {
            let Ok(room) = batch.try_add(len) else { continue };
            let message = message(first + added.len() as u64, len);
            room.copy_from_slice(&message);
            added.push(message);
        }
        assert_eq!(batch.len(), added.len());
        if publish && !added.is_empty() {
            assert_eq!(batch.publish(), added.len());
            added.iter().for_each(|message| self.written(message));
        }
    }

    fn poll(&mut self, who: usize, limit: usize) {
        let queue = &mut self.expected[who];
        let before = queue.len();
        let work = self.consumers[who].poll(limit, |message| {
            assert_eq!(Some(message), queue.pop_front().as_deref());
        });
        assert!(work <= limit && work == before - queue.len());
    }

    fn run(&mut self, act: Act) {
        match act {
            Act::Offer(len) => self.try_send(len),
            Act::Abort(len) => self.abort(len),
            Act::Batch(lens, publish) => self.batch(&lens, publish),
            Act::Flush => self.producer.flush(),
            Act::Poll(who, limit) => self.poll(who, limit),
        }
        let behind = self.expected[2].len();
        assert!(self.expected[..2].iter().all(|queue| queue.len() <= behind), "it overtook");
    }

    /// Reads all that is left; closing publishes what was held back.
    fn finish(mut self) {
        drop(self.producer);
        for who in 0..3 {
            let (consumer, queue) = (&mut self.consumers[who], &mut self.expected[who]);
            while !consumer.is_closed() {
                let work = consumer.poll(3, |message| {
                    assert_eq!(Some(message), queue.pop_front().as_deref());
                });
                assert!(work > 0 || consumer.is_closed(), "stuck before the end");
            }
            assert!(queue.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn each_consumer_reads_the_bytes_as_a_queue(
        acts in prop::collection::vec(act(), 0..120),
        stride in 0..6_u32,
        pulls in any::<bool>(),
    ) {
        let mut rig = Rig::new(stride, if pulls { Duration::ZERO } else { DEADLINE });
        for act in acts {
            rig.run(act);
        }
        rig.finish();
    }
}

#[test]
fn every_length_arrives_from_every_offset() {
    for start in (0..CAPACITY).step_by(8) {
        for len in 0..=LONGEST {
            let mut build = bytes::single_producer(CAPACITY).unwrap();
            let mut consumer = build.consumer();
            let mut producer = build.producer().unwrap();
            for _ in 0..start / 8 {
                producer.try_send(&[]).unwrap();
                assert_eq!(consumer.poll(1, |message| assert!(message.is_empty())), 1);
            }
            let sent = message(len as u64, len);
            producer.try_send(&sent).unwrap();
            assert_eq!(consumer.poll(2, |message| assert_eq!(message, sent)), 1);
        }
    }
}

#[test]
fn hostile_lengths_and_capacities_are_refused_in_words() {
    for capacity in [0, 1, 32, 63, 65, 100, 1 << 33, usize::MAX] {
        let error = bytes::single_producer(capacity).unwrap_err();
        assert_eq!(error, BuildError::Bytes { asked: capacity });
        assert!(error.to_string().contains("power of two"));
    }
    assert_eq!(bytes::multi_producer(0, 64).unwrap_err(), BuildError::NoProducer);

    let mut build = bytes::single_producer(64).unwrap();
    let mut consumer = build.consumer();
    let mut producer = build.producer().unwrap();
    for len in [25, 1000, usize::MAX - 7, usize::MAX] {
        let too_long = ClaimError::TooLong { longest: 24 };
        assert_eq!(producer.try_claim(len).unwrap_err(), too_long);
        assert_eq!(producer.claim(len).unwrap_err(), too_long);
        assert_eq!(producer.batch().try_add(len).unwrap_err(), too_long);
    }
    for len in [0, 24] {
        producer.try_send(&vec![7; len]).unwrap();
        assert_eq!(consumer.poll(9, |message| assert_eq!(message, vec![7; len])), 1);
    }
}

#[test]
fn delayed_bytes_arrive_without_a_flush() {
    for (delay, is_late) in [(Duration::ZERO, false), (DEADLINE, true)] {
        let mut build = bytes::single_producer(4096).unwrap().stride(1000, delay);
        let mut consumer = build.consumer();
        let mut behind = build.after(&[&consumer]).unwrap();
        let mut producer = build.producer().unwrap();
        producer.try_send(b"soon").unwrap();
        let pulled = consumer.poll(9, |_| ());
        assert_eq!(pulled == 0, is_late);
        producer.flush();
        assert_eq!(pulled + consumer.poll(9, |_| ()), 1);
        assert_eq!(behind.poll(9, |_| ()), 1);
        assert_eq!(behind.poll(9, |_| ()) + consumer.poll(9, |_| ()), 0);
    }
}

#[test]
fn a_consumer_that_leaves_gates_no_producer() {
    let mut build = bytes::single_producer(64).unwrap();
    let first = build.consumer();
    let mut behind = build.after(&[&first]).unwrap();
    let stays = build.consumer();
    let mut producer = build.producer().unwrap();
    producer.try_send(b"a").unwrap();
    assert_eq!(behind.poll(9, |_| ()), 0);
    drop(first);
    assert_eq!(behind.poll(9, |_| ()), 1);
    for _ in 0..3 {
        producer.try_send(b"b").unwrap();
    }
    assert_eq!(producer.try_send(b"c"), Err(ClaimError::Full), "one has read nothing yet");
    drop(stays);
    producer.try_send(b"d").unwrap();
    drop(behind);
    while producer.try_send(b"e").is_ok() {}
    assert_eq!(producer.try_send(b"e"), Err(ClaimError::Closed));
    assert_eq!(producer.send(b"e"), Err(ClaimError::Closed));
}

#[test]
fn a_panic_of_the_handler_has_consumed_its_message() {
    let mut build = bytes::single_producer(64).unwrap();
    let mut consumer = build.consumer();
    let mut producer = build.producer().unwrap();
    producer.try_send(b"bad").unwrap();
    drop(producer);
    let poll = AssertUnwindSafe(|| consumer.poll(9, |_| panic!("of the test")));
    catch_unwind(poll).unwrap_err();
    assert_eq!(consumer.poll(9, |_| ()), 0);
    assert!(consumer.is_closed());
}

#[test]
fn a_ring_without_consumers_of_its_own_is_refused() {
    let mut other = bytes::single_producer(64).unwrap();
    let stranger = other.consumer();
    let mut build = bytes::single_producer(64).unwrap();
    assert_eq!(build.after(&[&stranger]).unwrap_err(), BuildError::ForeignConsumer);
    assert_eq!(build.producer().unwrap_err(), BuildError::NoConsumer);
}

/// Reads numbered messages of `producers` until all have left; returns how many came.
fn read_numbers(mut consumer: ByteConsumer, producers: usize) -> u64 {
    let mut next = vec![0_u64; producers];
    let start = Instant::now();
    while !consumer.is_closed() {
        let work = consumer.poll(100, |message| {
            let number = u64::from_le_bytes(message[..8].try_into().unwrap());
            let producer = usize::from(message[8]);
            assert_eq!(number, next[producer], "order of producer {producer}");
            assert!(message[9..].iter().all(|&byte| byte == number as u8));
            next[producer] += 1;
        });
        consumer.wait(work);
        assert!(start.elapsed() < DEADLINE, "stuck after {next:?}");
    }
    next.iter().sum()
}

fn write_numbers(mut producer: ByteProducer, who: u8, count: u64) {
    for number in 0..count {
        let mut claim = producer.claim(9 + number as usize % 90).unwrap();
        claim[9..].fill(number as u8);
        claim[..8].copy_from_slice(&number.to_le_bytes());
        claim[8] = who;
        claim.commit();
    }
}

#[test]
fn more_threads_than_cores_lose_nothing_under_any_strategy() {
    let count = if std::env::var_os("LONG_TESTS").is_some() { 1_000_000 } else { 20_000 };
    for strategy in [WaitStrategy::SpinYield, WaitStrategy::SpinPark, WaitStrategy::Park] {
        let mut build = bytes::multi_producer(3, 1024).unwrap().wait(strategy);
        build = build.stride(7, Duration::from_micros(50));
        let first = build.consumer();
        let second = build.consumer();
        let behind = build.after(&[&first, &second]).unwrap();
        let last = build.after(&[&behind]).unwrap();
        let writers: Vec<_> = build
            .producers()
            .unwrap()
            .into_iter()
            .zip(0..)
            .map(|(producer, who)| thread::spawn(move || write_numbers(producer, who, count)))
            .collect();
        let readers =
            [first, second, behind, last].map(|c| thread::spawn(move || read_numbers(c, 3)));
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 3 * count, "{strategy}");
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    }
}

#[test]
fn one_busy_producer_starves_no_other() {
    let mut build = bytes::multi_producer(2, 4096).unwrap();
    let mut consumer = build.consumer();
    let mut producers = build.producers().unwrap();
    for _ in 0..100 {
        producers[0].try_send(b"busy").unwrap();
    }
    producers[1].try_send(b"rare").unwrap();
    let mut rare = false;
    for _ in 0..2 {
        consumer.poll(10, |message| rare |= message == b"rare");
    }
    assert!(rare);
}

/// Messages of a stride that is not full would stay unread when the one that pulled them has left.
#[test]
fn a_follower_pulls_once_its_upstream_has_left() {
    let mut build = bytes::single_producer(CAPACITY).unwrap().stride(4, Duration::ZERO);
    let first = build.consumer();
    let mut last = build.after(&[&first]).unwrap();
    let mut producer = build.producer().unwrap();
    producer.try_send(b"held back").unwrap();
    assert_eq!(last.poll(8, |_| {}), 0, "the other one has not read");
    drop(first);
    let mut messages = Vec::new();
    last.poll(8, |message| messages.push(message.to_vec()));
    assert_eq!(messages, [b"held back"]);
}

/// The last of a chain of three must not read what the first one has still to read.
#[test]
fn a_consumer_waits_for_all_before_one_that_leaves() {
    let mut build = bytes::multi_producer(2, CAPACITY).unwrap();
    let mut first = build.consumer();
    let mut beside = build.consumer();
    let middle = build.after(&[&first]).unwrap();
    let mut last = build.after(&[&middle, &beside]).unwrap();
    let mut producers = build.producers().unwrap();
    producers.iter_mut().for_each(|producer| producer.try_send(b"message").unwrap());
    assert_eq!(beside.poll(8, |_| {}), 2);
    drop(middle);
    assert_eq!(last.poll(8, |_| {}), 0, "the first one has not read");
    assert_eq!(first.poll(1, |_| {}), 1);
    assert_eq!(last.poll(8, |_| {}), 1);
    drop(first);
    assert_eq!(last.poll(8, |_| {}), 1);
}
