//! A receiver under test, and the contract that its deliveries must keep.

use super::super::*;
use super::source::{RECEIVER, SESSION, Source, identify};
use lanecast_wire::net::Items;

/// Checks order, at most once, and that losses are told before anything later.
pub(super) struct Subscriber {
    pub(super) receiver: Receiver,
    /// Per slot: the next message, the messages reported as lost, and the reason of the end.
    pub(super) next: Vec<u64>,
    pub(super) lost: Vec<Vec<u64>>,
    /// Per slot: the sender's number of the source's message 0.
    pub(super) bases: Vec<Option<u64>>,
    pub(super) joined: Vec<u32>,
    pub(super) left: Vec<Option<CloseReason>>,
    pub(super) out: Vec<Delivery>,
    /// Until when time has passed.
    passed: Nanos,
}

pub(super) fn settings() -> ReceiverSettings {
    ReceiverSettings { receiver: RECEIVER, window_datagrams: 1_024, ..ReceiverSettings::default() }
}

pub(super) fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9))
}

impl Subscriber {
    /// Begins to join.
    pub(super) fn new(settings: ReceiverSettings, names: &[String]) -> Self {
        let wanted: Vec<_> = names.iter().map(String::as_str).collect();
        Self {
            receiver: Receiver::new(settings, SESSION, address(), &wanted, 0),
            next: vec![0; names.len()],
            lost: vec![Vec::new(); names.len()],
            bases: vec![None; names.len()],
            joined: vec![0; names.len()],
            left: vec![None; names.len()],
            out: Vec::new(),
            passed: 0,
        }
    }

    /// Has joined `source`.
    pub(super) fn joined(settings: ReceiverSettings, source: &Source) -> Self {
        let mut subscriber = Self::new(settings, &source.names);
        let join = subscriber.transmit(1).expect("a Join");
        subscriber.hear(2, &source.welcome(&join));
        assert_eq!(subscriber.receiver.phase(), Phase::Live);
        assert!(subscriber.joined.iter().all(|times| *times == 1));
        subscriber
    }

    pub(super) fn transmit(&mut self, now: Nanos) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 1_400];
        let length = self.receiver.next_transmit(now, &mut buffer)?;
        buffer.truncate(length);
        Some(buffer)
    }

    pub(super) fn hear(&mut self, now: Nanos, bytes: &[u8]) {
        let (frame, _) = Frame::split(bytes).expect("a frame");
        self.receiver.on_frame(now, &frame, size_of::<FrameHeader>(), &mut self.out);
        self.check(bytes);
    }

    /// Time passes, and is looked at often.
    pub(super) fn pass(&mut self, now: Nanos) {
        let often = (settings().liveness / 4) as usize;
        for at in (self.passed..now).step_by(often) {
            self.leap(at);
        }
        self.leap(now);
    }

    /// Time passes, and is looked at only now.
    pub(super) fn leap(&mut self, now: Nanos) {
        self.passed = now;
        self.receiver.on_time(now, &mut self.out);
        self.check(&[]);
    }

    fn check(&mut self, buffer: &[u8]) {
        for delivery in std::mem::take(&mut self.out) {
            match delivery {
                Delivery::Joined { slot } => self.joined[slot as usize] += 1,
                Delivery::Borrowed { slot, first, start, end } => {
                    self.take_items(slot, first, &buffer[start as usize..end as usize]);
                }
                Delivery::Owned { slot, first, items } => self.take_items(slot, first, &items),
                Delivery::Message { slot, number, bytes } => self.take(slot, number, &bytes),
                Delivery::Lost { slot, first, count, .. } => self.lose(slot, first, count),
                Delivery::Left { slot, why } => {
                    assert_eq!(self.left[slot as usize].replace(why), None, "left twice");
                }
            }
        }
    }

    fn take_items(&mut self, slot: u32, first: u64, items: &[u8]) {
        let mut count = 0;
        for item in Items::new(items) {
            assert!(item.flags.is_whole());
            self.take(slot, first.wrapping_add(count), item.bytes);
            count += 1;
        }
        assert!(count > 0, "an empty run");
    }

    fn take(&mut self, slot: u32, told: u64, bytes: &[u8]) {
        let (topic, number) = identify(bytes);
        self.check_base(slot, told, number);
        let name = self.receiver.topic(slot).name();
        assert_eq!(name, format!("topic {topic}"));
        assert_eq!(self.left[slot as usize], None, "a message after the end");
        assert_eq!(number, self.next[slot as usize], "on {name}");
        self.next[slot as usize] += 1;
    }

    fn lose(&mut self, slot: u32, first: u64, count: u64) {
        assert_eq!(self.left[slot as usize], None, "a loss after the end");
        let told = first;
        let first = self.next[slot as usize];
        self.check_base(slot, told, first);
        assert!((1..1 << 30).contains(&count));
        self.lost[slot as usize].extend(first..first + count);
        self.next[slot as usize] = first + count;
    }

    /// Checks that message `number` of the source has the sender's number `told`.
    fn check_base(&mut self, slot: u32, told: u64, number: u64) {
        let base = told.wrapping_sub(number);
        let known = *self.bases[slot as usize].get_or_insert(base);
        assert_eq!(base, known, "message {number} is numbered as another");
    }

    pub(super) fn lost_any(&self) -> bool {
        self.lost.iter().any(|lost| !lost.is_empty())
    }
}
