//! A receiver of a session whose source sends whatever the script says, true or not.
#![no_main]

use lanecast_fuzz::{Near, Script, frame};
use lanecast_protocol::Nanos;
use lanecast_protocol::receiver::{Delivery, Phase, Receiver, ReceiverSettings};
use lanecast_wire::net::{
    BlockHeader, Frame, FrameHeader, FrameWriter, ItemFlags, ItemHeader, Items, Kind, TopicEntry,
    WelcomeBody,
};
use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;

const SESSION: u64 = 42;
const RECEIVER: u64 = 7;
const START: u64 = u64::MAX - 20;
const NUMBER: u64 = u64::MAX - 40;
const LONGEST: usize = 10_000;
const AT_ONCE_MAX: usize = 20_000;
const NAMES: [&str; 3] = ["a", "b", "c"];

struct Stage {
    receiver: Receiver,
    now: Nanos,
    joined: [bool; NAMES.len()],
    left: [bool; NAMES.len()],
    /// The next datagram of a source that tells the truth.
    sequence: u64,
    number: u64,
}

impl Stage {
    fn new(script: &mut Script<'_>) -> Self {
        let (shape, now) = (script.byte(), 1_000);
        let has_parity = shape & 0x40 != 0;
        let settings = ReceiverSettings {
            receiver: RECEIVER,
            window_datagrams: 64,
            reorder_bytes_max: 20_000,
            longest_message_max: LONGEST,
            stream: shape & 1 != 0,
            multicast: shape & 2 != 0,
            late_join: shape & 4 != 0,
            reorder: Nanos::from(shape & 8) * 10_000,
            ..ReceiverSettings::default()
        };
        let source = SocketAddr::from(([127, 0, 0, 1], 9));
        let receiver = Receiver::new(settings, SESSION, source, &NAMES, now);
        let [joined, left] = [[false; NAMES.len()]; 2];
        let mut stage = Self { receiver, now, joined, left, sequence: START, number: NUMBER };
        stage.turn();
        if shape & 0x80 == 0 {
            stage.welcome(has_parity);
            assert_eq!(stage.receiver.phase(), Phase::Live);
        }
        stage
    }

    fn welcome(&mut self, has_parity: bool) {
        let mut bytes = vec![0; 1_472];
        let mut writer = FrameWriter::new(&mut bytes, Kind::Welcome, 0, SESSION, START);
        let body = WelcomeBody {
            receiver: RECEIVER.into(),
            echo: self.now.into(),
            longest: (LONGEST as u32).into(),
            window: 64.into(),
            receivers: 1.into(),
            pid: 0.into(),
            liveness_ms: 0.into(),
            fec_data: if has_parity { 4 } else { 0 },
            fec_parity: 1,
            fec_delay_us: 50.into(),
        };
        assert!(writer.add(&body));
        for (topic, name) in (0u32..).zip(&NAMES[..2]) {
            let entry = TopicEntry {
                topic: topic.into(),
                name: 0.into(),
                reserved: 0.into(),
                fragment: NUMBER.into(),
                message: NUMBER.into(),
            };
            assert!(writer.add_topic(entry, name));
        }
        let length = writer.finish();
        self.hear(&bytes[..length]);
    }

    /// The next datagram of an honest source: one message on the first topic.
    fn honest(&mut self) {
        let mut bytes = [0; 100];
        let mut writer = FrameWriter::new(&mut bytes, Kind::Data, 0, SESSION, self.sequence);
        let block = BlockHeader {
            topic: 0.into(),
            length: 8.into(),
            count: 1.into(),
            fragment: self.number.into(),
            message: self.number.into(),
        };
        let item = ItemHeader { length: 4.into(), flags: ItemFlags::WHOLE.into() };
        assert!(writer.add_data_header(0, 10) && writer.add(&block) && writer.add(&item));
        assert!(writer.add(b"text"));
        let length = writer.finish();
        self.hear(&bytes[..length]);
        self.sequence = self.sequence.wrapping_add(1);
        self.number = self.number.wrapping_add(1);
    }

    fn lie(&mut self, script: &mut Script<'_>) {
        let near = Near {
            session: SESSION,
            sequence: self.sequence,
            number: self.number,
            ids: &[RECEIVER, 0, 1],
            clocks: &[self.now, 0, 1_000],
            names: &NAMES,
        };
        let bytes = frame(script, &near);
        self.hear(&bytes);
    }

    fn hear(&mut self, bytes: &[u8]) {
        let (frame, _) = Frame::split(bytes).expect("a frame");
        let mut out = Vec::new();
        self.receiver.on_frame(self.now, &frame, size_of::<FrameHeader>(), &mut out);
        self.take(bytes, out);
    }

    fn take(&mut self, bytes: &[u8], out: Vec<Delivery>) {
        for delivery in out {
            let slot = *match &delivery {
                Delivery::Joined { slot } => {
                    let known = std::mem::replace(&mut self.joined[*slot as usize], true);
                    assert!(!known, "a topic is joined once");
                    slot
                }
                Delivery::Borrowed { slot, start, end, .. } => {
                    check(&bytes[*start as usize..*end as usize]);
                    slot
                }
                Delivery::Owned { slot, items, .. } => {
                    check(items);
                    slot
                }
                Delivery::Message { slot, bytes, .. } => {
                    assert!(bytes.len() <= LONGEST);
                    slot
                }
                Delivery::Lost { slot, count, .. } => {
                    assert_ne!(*count, 0);
                    slot
                }
                Delivery::Left { slot, .. } => slot,
            };
            assert!(self.joined[slot as usize] && !self.left[slot as usize]);
            self.left[slot as usize] = matches!(delivery, Delivery::Left { .. });
            assert!(!self.receiver.topic(slot).name().is_empty());
        }
    }

    /// Does what is due; then nothing is, for a while.
    fn turn(&mut self) {
        let mut out = Vec::new();
        self.receiver.on_time(self.now, &mut out);
        // As its owner does.
        if self.receiver.stream_timeout_at().is_some_and(|at| at <= self.now) {
            self.receiver.disconnected();
        }
        self.take(&[], out);
        self.receiver.consumed_all();
        let mut buffer = [0; 600];
        for turn in 0.. {
            let Some(length) = self.receiver.next_transmit(self.now, &mut buffer) else { break };
            assert!(turn < AT_ONCE_MAX, "it never ends");
            let (frame, rest) = Frame::split(&buffer[..length]).expect("a frame");
            assert!(rest.is_empty() && frame.session == SESSION);
        }
        let due = self.receiver.next_deadline();
        assert!(due.is_none_or(|due| due > self.now), "due at {due:?}, it is {}", self.now);
        while self.receiver.next_gap_record().is_some() {}
    }
}

/// Items of whole messages.
fn check(items: &[u8]) {
    assert!(!items.is_empty());
    assert!(Items::new(items).all(|item| item.flags.is_whole()));
}

fuzz_target!(|bytes: &[u8]| {
    let script = &mut Script::new(bytes);
    let mut stage = Stage::new(script);
    while let Some(act) = script.act() {
        match act % 8 {
            0 => stage.turn(),
            1 => {
                stage.now += Nanos::from(script.short()) * 1_000;
                stage.turn();
            }
            2 => stage.honest(),
            3 => stage.sequence = stage.sequence.wrapping_add(u64::from(script.byte() % 4)),
            4 if script.byte() == 0 => {
                stage.receiver.disconnected();
                stage.turn();
                stage.receiver.reconnected(stage.now);
            }
            _ => stage.lie(script),
        }
    }
    stage.turn();
    // Silence ends every session, that of a stream when there was time for other connections. Time
    // that is not looked at is no silence, so it is looked at as often as a sign of life is due.
    for _ in 0..100_000 {
        if stage.receiver.phase() == Phase::Closed {
            break;
        }
        stage.now += (stage.receiver.liveness() / 2).clamp(1, 1_000_000_000);
        stage.turn();
    }
    assert_eq!(stage.receiver.phase(), Phase::Closed);
});
