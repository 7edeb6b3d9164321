//! Random operations, beside a queue that is too simple to be wrong.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
enum Act {
    Write(usize),
    WriteParts(usize),
    Unwrite(usize),
    Flush,
    WriteAndFlush(usize),
    Read(usize),
    Check,
    Drain(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (1..20_usize).prop_map(Act::Write),
        2 => (1..20_usize).prop_map(Act::WriteParts),
        2 => (1..30_usize).prop_map(Act::Unwrite),
        3 => Just(Act::Flush),
        3 => (1..20_usize).prop_map(Act::WriteAndFlush),
        3 => (1..30_usize).prop_map(Act::Read),
        1 => Just(Act::Check),
        2 => (0..100_usize).prop_map(Act::Drain),
    ];
    proptest::collection::vec(act, 0..80)
}

/// A written value: its number, and whether it ends a message.
type Written = (u64, bool);

/// The pipe under test and what must be in it.
struct Pair<T> {
    writer: Writer<T, Bounded>,
    reader: Reader<T>,
    hidden: Vec<Written>,
    visible: VecDeque<u64>,
    next: u64,
    asleep: bool,
    make: fn(u64) -> T,
}

impl<T: PartialEq + core::fmt::Debug> Pair<T> {
    fn act(&mut self, act: &Act) {
        match *act {
            Act::Write(count) => (0..count).for_each(|_| self.write(true)),
            Act::WriteParts(count) => (0..count).for_each(|_| self.write(false)),
            Act::Unwrite(count) => (0..count).for_each(|_| {
                let expected = self.hidden.pop().map(|(number, _)| (self.make)(number));
                assert_eq!(self.writer.unwrite(), expected);
            }),
            Act::Flush => self.flush(),
            Act::WriteAndFlush(count) => (0..count).for_each(|_| self.write_and_flush()),
            Act::Read(count) => (0..count).for_each(|_| {
                let expected = self.visible.pop_front().map(self.make);
                assert_eq!(self.reader.try_read(), expected);
            }),
            Act::Check => {
                let is_there = self.reader.check();
                assert_eq!(is_there, !self.visible.is_empty());
                self.asleep |= !is_there;
            }
            Act::Drain(limit) => {
                let (visible, make) = (&mut self.visible, self.make);
                let expected = visible.len().min(limit);
                let count = self.reader.drain(limit, |value| {
                    assert_eq!(Some(value), visible.pop_front().map(make));
                });
                assert_eq!(count, expected);
            }
        }
    }

    fn write(&mut self, is_end: bool) {
        let value = (self.make)(self.next);
        let written =
            if is_end { self.writer.try_write(value) } else { self.writer.try_write_part(value) };
        self.note_written(written.is_ok(), is_end);
    }

    fn note_written(&mut self, is_written: bool, is_end: bool) {
        let held = self.hidden.len() + self.visible.len();
        if is_written {
            self.hidden.push((self.next, is_end));
        } else {
            assert!(self.writer.capacity().is_some_and(|most| held >= most));
        }
        self.next += 1;
    }

    fn flush(&mut self) {
        let peer = self.writer.flush();
        self.note_flushed(peer);
    }

    fn write_and_flush(&mut self) {
        let written = self.writer.try_write_and_flush((self.make)(self.next));
        self.note_written(written.is_ok(), true);
        if let Ok(peer) = written {
            self.note_flushed(peer);
        }
    }

    fn note_flushed(&mut self, peer: Peer) {
        let complete = self.hidden.iter().rposition(|(_, is_end)| *is_end).map_or(0, |at| at + 1);
        self.visible.extend(self.hidden.drain(..complete).map(|(number, _)| number));
        let owed = complete > 0 && core::mem::take(&mut self.asleep);
        let expected = if owed { Peer::Asleep } else { Peer::Awake };
        // A reader that found something by itself may have taken its mark back.
        assert!(peer == expected || (owed && peer == Peer::Awake), "{peer:?}");
    }
}

fn run<T: PartialEq + core::fmt::Debug>(
    (writer, reader): (Writer<T, Bounded>, Reader<T>),
    acts: &[Act],
    make: fn(u64) -> T,
) {
    let (hidden, visible) = (Vec::new(), VecDeque::new());
    let mut pair = Pair { writer, reader, hidden, visible, next: 1, asleep: false, make };
    acts.iter().for_each(|act| pair.act(act));
    let Pair { writer, mut reader, hidden, mut visible, .. } = pair;
    let complete = hidden.iter().rposition(|(_, is_end)| *is_end).map_or(0, |at| at + 1);
    visible.extend(hidden[..complete].iter().map(|(number, _)| *number));
    drop(writer);
    let left = visible.len() / 2;
    visible.drain(left..);
    for number in visible {
        assert_eq!(reader.try_read(), Some(make(number)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { ProptestConfig::default().cases },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn pipes_are_queues(acts in acts(), capacity in 1..60_usize) {
        run(chain(), &acts, |number| number);
        run(chain(), &acts, |number| number.to_string());
        run(chain(), &acts, |number| [number; 20]);
        run(bounded(capacity).unwrap(), &acts, |number| number);
        run(bounded(capacity).unwrap(), &acts, |number| number.to_string());
        run(bounded(capacity).unwrap(), &acts, |number| [number as u8; 3]);
        run(bounded(capacity).unwrap(), &acts, |_| ());
    }
}
