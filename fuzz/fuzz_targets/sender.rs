//! A sender among an honest receiver and a hostile one, which sends whatever the script says.
//!
//! The hostile one has an address of its own and hears what is sent there and to the group. It
//! may take its share of the sender's time and budget; it must not cost the honest one anything.
#![no_main]

use lanecast_fuzz::{Near, Script, frame};
use lanecast_protocol::fec::FecSettings;
use lanecast_protocol::receiver::{self, Delivery, Phase, Receiver};
use lanecast_protocol::sender::{Distribution, Pacing, Sender, SenderSettings};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use lanecast_wire::net::{ChallengeBody, Frame, FrameHeader, Items, Kind};
use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;

const SESSION: u64 = 42;
const FIRST: u64 = u64::MAX - 20;
const HONEST: u64 = 1;
const HONEST_LINK: u64 = 1;
const HOSTILE_LINK: u64 = 2;
const TAG: u32 = 7;
/// More frames than that at one time are an endless loop.
const AT_ONCE_MAX: usize = 20_000;
/// The honest one has everything this long after the hostile one has fallen silent.
const PATIENCE: Nanos = 20 * SECOND;

struct Stage {
    sender: Sender,
    honest: Receiver,
    now: Nanos,
    distribution: Distribution,
    /// Cookies and receivers that the hostile one knows.
    ids: Vec<u64>,
    published: u32,
    read: u32,
    /// The number of next datagrams to the honest receiver that are lost.
    losses: u8,
}

fn address(last: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], last))
}

impl Stage {
    fn new(script: &mut Script<'_>) -> Self {
        let distribution = match script.byte() % 3 {
            0 => Distribution::Multicast(SocketAddr::from(([239, 1, 1, 1], 9_000))),
            1 => Distribution::Unicast,
            _ => Distribution::Stream,
        };
        let pacing = match script.byte() % 3 {
            0 => Pacing::Slowest,
            1 => Pacing::SlowestOrEject(100 * MILLISECOND),
            _ => Pacing::Tagged(TAG),
        };
        let shape = script.byte();
        let settings = SenderSettings {
            session: SESSION,
            first_sequence: FIRST,
            distribution,
            pacing,
            window_bytes: 32 << 10,
            receivers_max: 4,
            late_join: shape.is_multiple_of(2),
            fec: (shape & 4 != 0).then_some(FecSettings { data: 4, parity: 1, delay: 50_000 }),
            data_rate: script.byte().is_multiple_of(2).then_some(10_000_000),
            cookie_key: [3, 1],
            ..SenderSettings::default()
        };
        let mut sender = Sender::new(settings, 0);
        assert_eq!((sender.add_topic("a"), sender.add_topic("b")), (Ok(0), Ok(1)));
        for link in [HONEST_LINK, HOSTILE_LINK] {
            sender.connect(0, link, address(link as u16));
        }
        let group = matches!(distribution, Distribution::Multicast(_));
        let stream = distribution == Distribution::Stream;
        let settings = receiver::ReceiverSettings {
            receiver: HONEST,
            window_datagrams: 64,
            tag: TAG,
            multicast: group,
            stream,
            ..receiver::ReceiverSettings::default()
        };
        let honest = Receiver::new(settings, SESSION, address(9), &["a"], 0);
        let ids = vec![0, HONEST, 2, 3, 4, 5, 6];
        let (published, read, losses) = (0, 0, 0);
        let mut stage = Self { sender, honest, now: 0, distribution, ids, published, read, losses };
        (0..4).for_each(|_| stage.turn());
        assert_eq!(stage.honest.phase(), Phase::Live);
        stage
    }

    /// Everything that can go out and in now does.
    fn turn(&mut self) {
        self.sender.on_time(self.now);
        let mut out = Vec::new();
        self.honest.on_time(self.now, &mut out);
        self.take(&[], out);
        self.speak();
        let mut buffer = [0; 1_472];
        for turn in 0.. {
            let Some(length) = self.honest.next_transmit(self.now, &mut buffer) else { break };
            assert!(turn < AT_ONCE_MAX, "the honest receiver never ends");
            let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
            if self.distribution == Distribution::Stream {
                self.sender.on_stream_frame(self.now, HONEST_LINK, &frame);
            } else {
                self.sender.on_frame(self.now, address(HONEST as u16), &frame);
            }
            self.speak();
        }
    }

    /// The sender sends what it can.
    fn speak(&mut self) {
        if self.distribution == Distribution::Stream {
            self.write();
        } else {
            self.send();
        }
    }

    fn send(&mut self) {
        for turn in 0.. {
            let Some(transmit) = self.sender.next_transmit(self.now) else { break };
            assert!(turn < AT_ONCE_MAX, "the sender never ends");
            assert!(transmit.bytes.len() <= 65_507 && transmit.segment > 0);
            assert!(transmit.bytes.len().div_ceil(transmit.segment) <= 64);
            let to = transmit.to;
            let datagrams: Vec<_> =
                transmit.bytes.chunks(transmit.segment).map(<[u8]>::to_vec).collect();
            self.sender.transmitted(self.now);
            let group = matches!(self.distribution, Distribution::Multicast(all) if all == to);
            for bytes in datagrams {
                if group || to == address(HONEST as u16) {
                    self.arrive(&bytes);
                } else {
                    self.overhear(&bytes);
                }
            }
        }
    }

    fn write(&mut self) {
        for link in [HONEST_LINK, HOSTILE_LINK] {
            let mut stream = Vec::new();
            for turn in 0.. {
                let bytes = self.sender.stream_bytes(self.now, link);
                if bytes.is_empty() {
                    break;
                }
                assert!(turn < AT_ONCE_MAX, "the stream never ends");
                // Now and then a part of a frame.
                let part = if turn % 3 == 1 { bytes.len().div_ceil(2) } else { bytes.len() };
                stream.extend_from_slice(&bytes[..part]);
                self.sender.stream_written(self.now, link, part);
            }
            let mut rest = stream.as_slice();
            while !rest.is_empty() {
                let (_, after) = Frame::split(rest).expect("whole frames");
                let bytes = &rest[..rest.len() - after.len()];
                if link == HONEST_LINK {
                    self.arrive(bytes)
                } else {
                    self.overhear(bytes)
                }
                rest = after;
            }
        }
    }

    /// A datagram comes to the honest receiver.
    fn arrive(&mut self, bytes: &[u8]) {
        let (frame, rest) = Frame::split(bytes).expect("the sender sends frames");
        assert!(rest.is_empty() && frame.session == SESSION);
        if self.losses > 0 && self.distribution != Distribution::Stream {
            self.losses -= 1;
            return;
        }
        let mut out = Vec::new();
        self.honest.on_frame(self.now, &frame, size_of::<FrameHeader>(), &mut out);
        self.take(bytes, out);
    }

    fn take(&mut self, bytes: &[u8], out: Vec<Delivery>) {
        for delivery in out {
            match delivery {
                Delivery::Joined { .. } => {}
                Delivery::Borrowed { start, end, .. } => {
                    self.count(&bytes[start as usize..end as usize])
                }
                Delivery::Owned { items, .. } => self.count(&items),
                Delivery::Message { bytes, .. } => self.note(&bytes),
                Delivery::Lost { .. } | Delivery::Left { .. } => panic!("{delivery:?}"),
            }
        }
        self.honest.consumed_all();
    }

    fn count(&mut self, items: &[u8]) {
        Items::new(items).for_each(|item| self.note(item.bytes));
    }

    fn note(&mut self, message: &[u8]) {
        let number = message.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        assert_eq!(number, Some(self.read), "in order, and nothing left out");
        self.read += 1;
    }

    /// A frame for the hostile one: it learns the cookies.
    fn overhear(&mut self, bytes: &[u8]) {
        let (frame, _) = Frame::split(bytes).expect("the sender sends frames");
        if frame.kind == Kind::Challenge && self.ids.len() < 200 {
            let (body, _) = ChallengeBody::split(frame.body).expect("a body");
            self.ids.push(body.cookie.get());
        }
    }

    /// Publishes on the topic that is read, or on the other; whether there was room.
    fn publish(&mut self, topic: u32, length: usize) -> bool {
        let Ok(bytes) = self.sender.stage(topic, length.max(4)) else { return false };
        if topic == 0 {
            bytes[..4].copy_from_slice(&self.published.to_le_bytes());
            self.published += 1;
        }
        self.sender.publish();
        self.sender.flush();
        true
    }

    fn hear(&mut self, script: &mut Script<'_>) {
        let near = Near {
            session: SESSION,
            sequence: FIRST.wrapping_add(self.published.into()),
            number: self.published.into(),
            ids: &self.ids,
            clocks: &[0, self.now, self.now.wrapping_add(1)],
            names: &["a", "b", "c"],
        };
        let bytes = frame(script, &near);
        let (frame, _) = Frame::split(&bytes).expect("a frame");
        if self.distribution == Distribution::Stream {
            // On a stream its number proves a receiver that comes back: the hostile one can only
            // guess it.
            if frame.body.first_chunk() == Some(&HONEST.to_le_bytes()) {
                return;
            }
            self.sender.on_stream_frame(self.now, HOSTILE_LINK, &frame);
        } else {
            self.sender.on_frame(self.now, address(2 + script.byte() as u16 % 2), &frame);
        }
    }

    /// The next deadline is in the future, so the sender need not run all the time.
    fn check_deadlines(&self) {
        let due = self.sender.next_deadline();
        assert!(due.is_none_or(|due| due > self.now), "due at {due:?}, it is {}", self.now);
    }

    /// The hostile one is silent: the honest one gets everything, and what comes then.
    fn settle(&mut self) {
        let end = self.now + PATIENCE;
        let mut more = 3;
        while more > 0 || self.read < self.published {
            assert!(self.now < end, "{} of {} messages", self.read, self.published);
            if more > 0 && self.publish(0, 100) {
                more -= 1;
            }
            self.turn();
            self.check_deadlines();
            let due = [self.sender.next_deadline(), self.honest.next_deadline()];
            let due = due.into_iter().flatten().min().expect("a time");
            self.now = due.max(self.now + 1_000);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let script = &mut Script::new(bytes);
    let mut stage = Stage::new(script);
    while let Some(act) = script.act() {
        match act % 8 {
            0 => _ = stage.publish(0, script.short().into()),
            1 => _ = stage.publish(1, script.byte().into()),
            2 => {
                // Never so long that the honest one is silent.
                stage.now += Nanos::from(script.short()) * 1_000;
                stage.turn();
            }
            3 => stage.turn(),
            4 => stage.losses = script.byte() % 8,
            _ => stage.hear(script),
        }
    }
    stage.losses = 0;
    stage.settle();
});
