//! A small source: lays messages out in datagrams, and answers what a receiver asks.

use super::super::*;
use crate::fec::add_symbol;
use crate::rng::Rng;
use lanecast_wire::net::{
    BlockHeader, DATA_OFFSET, FrameWriter, ItemFlags, ItemHeader, JoinBody, ParityBody,
    SYMBOL_LENGTH_BYTES, SessionBody, TopicEntry, TopicHead, WelcomeBody, flag, item_bytes, names,
};
use zerocopy::IntoBytes;

pub(super) const SESSION: u64 = 77;
pub(super) const RECEIVER: u64 = 5;
/// The room for blocks in a datagram.
const ROOM: usize = 200;

/// A message's bytes tell which one it is.
pub(super) fn message(topic: u32, number: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![topic as u8; length.max(12)];
    bytes[..4].copy_from_slice(&topic.to_le_bytes());
    bytes[4..12].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Which message these bytes are: topic, number.
pub(super) fn identify(bytes: &[u8]) -> (u32, u64) {
    let topic = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
    let number = u64::from_le_bytes(bytes[4..12].try_into().expect("eight bytes"));
    assert!(bytes[12..].iter().all(|byte| *byte == topic as u8), "torn");
    (topic, number)
}

/// Messages: topic and number.
type Inside = Vec<(u32, u64)>;

struct OpenBlock {
    header: BlockHeader,
    items: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct TopicState {
    pub(super) fragment: u64,
    pub(super) message: u64,
}

/// One session's source.
pub(super) struct Source {
    first: u64,
    pub(super) topics: Vec<TopicState>,
    pub(super) names: Vec<String>,
    /// The frames sent so far, and the messages (topic, number) with a fragment in each.
    pub(super) datagrams: Vec<(Vec<u8>, Inside)>,
    open: Vec<OpenBlock>,
    used: usize,
    inside: Inside,
    bases: Vec<u64>,
    /// Parity as its Welcomes announce it: data, parity, delay.
    pub(super) fec: (u8, u8, u16),
}

impl Source {
    pub(super) fn new(first: u64, topics: u32, base: u64) -> Self {
        let state = TopicState { fragment: base.wrapping_mul(3), message: base };
        Self {
            first,
            topics: vec![state; topics as usize],
            names: (0..topics).map(|topic| format!("topic {topic}")).collect(),
            datagrams: Vec::new(),
            open: Vec::new(),
            used: 0,
            inside: Vec::new(),
            bases: vec![base; topics as usize],
            fec: (0, 0, 0),
        }
    }

    pub(super) fn sequence(&self, index: usize) -> u64 {
        self.first.wrapping_add(index as u64)
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.sequence(self.datagrams.len())
    }

    pub(super) fn count(&self, topic: u32) -> u64 {
        self.topics[topic as usize].message.wrapping_sub(self.bases[topic as usize])
    }

    /// Publishes a message of about `length` bytes.
    pub(super) fn publish(&mut self, topic: u32, length: usize, more: bool) {
        let number = self.count(topic);
        let bytes = message(topic, number, length);
        let more = if more { ItemFlags::MORE } else { 0 };
        if item_bytes(bytes.len()) + size_of::<BlockHeader>() <= ROOM {
            self.add(topic, &bytes, ItemFlags::WHOLE | more, number);
        } else {
            let mut whole = (bytes.len() as u32).to_le_bytes().to_vec();
            whole.extend(bytes);
            let fragments: Vec<_> = whole.chunks(150).collect();
            for (at, fragment) in fragments.iter().enumerate() {
                let begin = if at == 0 { ItemFlags::BEGIN } else { 0 };
                let end = if at + 1 == fragments.len() { ItemFlags::END } else { 0 };
                self.add(topic, fragment, begin | end | more, number);
            }
        }
        let state = &mut self.topics[topic as usize];
        state.message = state.message.wrapping_add(1);
    }

    fn add(&mut self, topic: u32, bytes: &[u8], flags: u16, number: u64) {
        let same = |block: &OpenBlock| block.header.topic.get() == topic;
        let new = !self.open.last().is_some_and(same);
        let header = if new { size_of::<BlockHeader>() } else { 0 };
        if self.used + header + item_bytes(bytes.len()) > ROOM {
            self.close();
            return self.add(topic, bytes, flags, number);
        }
        let state = &mut self.topics[topic as usize];
        if new {
            let header = BlockHeader {
                topic: topic.into(),
                length: 0.into(),
                count: 0.into(),
                fragment: state.fragment.into(),
                message: state.message.into(),
            };
            self.open.push(OpenBlock { header, items: Vec::new() });
        }
        state.fragment = state.fragment.wrapping_add(1);
        let block = self.open.last_mut().expect("a block");
        let item = ItemHeader { length: (bytes.len() as u16).into(), flags: flags.into() };
        block.items.extend(item.as_bytes());
        block.items.extend(bytes);
        block.items.resize(block.items.len().next_multiple_of(4), 0);
        block.header.count += 1;
        block.header.length = (block.items.len() as u16).into();
        self.used += header + item_bytes(bytes.len());
        self.inside.push((topic, number));
    }

    /// Ends the open datagram.
    pub(super) fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let sequence = self.next_sequence();
        let mut buffer = [0; 512];
        let mut writer = FrameWriter::new(&mut buffer, Kind::Data, 0, SESSION, sequence);
        assert!(writer.add_data_header(0, 1 << 20));
        for block in self.open.drain(..) {
            assert!(writer.add(&block.header) && writer.add(&block.items[..]));
        }
        let length = writer.finish();
        self.used = 0;
        self.datagrams.push((buffer[..length].to_vec(), std::mem::take(&mut self.inside)));
    }

    /// Publishes `count` messages at random, and ends the datagram.
    pub(super) fn publish_some(&mut self, count: u64, rng: &mut Rng) {
        let topics = self.topics.len() as u64;
        for _ in 0..count {
            let topic = rng.below(topics) as u32;
            let length = if rng.below(6) == 0 { 700 } else { 90 };
            let batch = if rng.below(8) == 0 { rng.below(5) } else { 0 };
            for left in (0..=batch).rev() {
                self.publish(topic, rng.below(length) as usize, left > 0);
                if rng.below(3) == 0 {
                    self.close();
                }
            }
        }
        self.close();
    }

    /// A session frame of how far it has come.
    pub(super) fn session_frame(&self, flags: u16) -> Vec<u8> {
        let mut buffer = [0; 1_024];
        let sequence = self.next_sequence();
        let mut writer = FrameWriter::new(&mut buffer, Kind::Session, flags, SESSION, sequence);
        let body = SessionBody { receivers: 1.into(), reserved: 0.into() };
        assert!(writer.add_data_header(0, 1 << 20) && writer.add(&body));
        for (topic, state) in self.topics.iter().enumerate() {
            let head = TopicHead {
                topic: (topic as u32).into(),
                reserved: 0.into(),
                fragment: state.fragment.into(),
                message: state.message.into(),
            };
            assert!(writer.add(&head));
        }
        let length = writer.finish();
        buffer[..length].to_vec()
    }

    /// The answer to a Join: the receiver gets what follows.
    pub(super) fn welcome(&self, join: &[u8]) -> Vec<u8> {
        let (frame, _) = Frame::split(join).expect("a frame");
        assert_eq!(frame.kind, Kind::Join);
        let (body, wanted) = JoinBody::split(frame.body).expect("a body");
        let mut buffer = [0; 2_048];
        let start = self.next_sequence();
        let mut writer = FrameWriter::new(&mut buffer, Kind::Welcome, 0, SESSION, start);
        let welcome = WelcomeBody {
            receiver: body.receiver,
            echo: body.echo,
            longest: 10_000.into(),
            window: 1_024.into(),
            receivers: 1.into(),
            pid: 1.into(),
            liveness_ms: 0.into(),
            fec_data: self.fec.0,
            fec_parity: self.fec.1,
            fec_delay_us: self.fec.2.into(),
        };
        assert!(writer.add(&welcome));
        for name in names(wanted) {
            let Some(topic) = self.names.iter().position(|known| known == name) else { continue };
            let state = self.topics[topic];
            let entry = TopicEntry {
                topic: (topic as u32).into(),
                name: 0.into(),
                reserved: 0.into(),
                fragment: state.fragment.into(),
                message: state.message.into(),
            };
            assert!(writer.add_topic(entry, name));
        }
        let length = writer.finish();
        buffer[..length].to_vec()
    }

    /// Parity of the block of `count` datagrams from `from` on.
    pub(super) fn parity(&self, from: usize, count: usize, (row, proactive): (u8, u8)) -> Vec<u8> {
        let blocks = |index: usize| &self.datagrams[index].0[DATA_OFFSET..];
        let longest = (from..from + count).map(|index| blocks(index).len()).max().expect("some");
        let mut symbol = vec![0; longest + SYMBOL_LENGTH_BYTES];
        let places = (from..from + count).enumerate();
        places.for_each(|(at, index)| add_symbol(row, at, blocks(index), &mut symbol));
        let members = (0..count).fold(0u64, |members, at| members | 1 << at);
        self.parity_of(self.sequence(from), members, (row, proactive), &symbol)
    }

    /// A parity frame with any content.
    pub(super) fn parity_of(
        &self,
        first: u64,
        members: u64,
        (row, proactive): (u8, u8),
        symbol: &[u8],
    ) -> Vec<u8> {
        let mut buffer = [0; 512];
        let mut writer = FrameWriter::new(&mut buffer, Kind::Parity, 0, SESSION, first);
        let body = ParityBody { members: members.into(), row, proactive, reserved: 0.into() };
        assert!(writer.add_data_header(0, 1 << 20) && writer.add(&body) && writer.add(symbol));
        let length = writer.finish();
        buffer[..length].to_vec()
    }

    /// The frame of an Eject.
    pub(super) fn eject(&self) -> Vec<u8> {
        self.refusal(flag::STALLED)
    }

    /// The same, to a receiver that is not known.
    pub(super) fn forgets(&self) -> Vec<u8> {
        self.refusal(flag::STRANGER)
    }

    fn refusal(&self, why: u16) -> Vec<u8> {
        let mut buffer = [0; 64];
        let mut writer = FrameWriter::new(&mut buffer, Kind::Eject, why, SESSION, 0);
        let body = lanecast_wire::net::EjectBody { receiver: RECEIVER.into() };
        assert!(writer.add(&body));
        let length = writer.finish();
        buffer[..length].to_vec()
    }
}
