//! The packetizer against a naive model: what the wire's readers find is what was published.

use super::*;
use lanecast_wire::net::{Blocks, Frame};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SESSION: u64 = 7;
const TOPICS: u32 = 3;

/// A message as it comes out: its topic, its bytes and whether its batch goes on.
type Message = (u32, Vec<u8>, bool);

/// Reads datagrams as a receiver would that misses none, and checks every number.
#[derive(Default)]
struct Reader {
    next: u64,
    topics: BTreeMap<u32, Position>,
    partial: BTreeMap<u32, (usize, Vec<u8>)>,
    messages: Vec<Message>,
}

impl Reader {
    fn read(&mut self, datagram: &[u8]) {
        assert_eq!(datagram.len() % ALIGN, 0);
        let (frame, rest) = Frame::split(datagram).expect("a frame");
        assert!(rest.is_empty());
        assert_eq!((frame.kind, frame.session, frame.sequence), (Kind::Data, SESSION, self.next));
        self.next = self.next.wrapping_add(1);
        let (_, blocks) = frame.data().expect("a data header");
        for (block, items) in Blocks::new(blocks) {
            let topic = block.topic.get();
            let numbers = self.topics.entry(topic).or_default();
            assert_eq!(block.fragment.get(), numbers.fragment);
            assert_eq!(block.message.get(), numbers.message);
            let mut count = 0;
            for item in items {
                count += 1;
                numbers.fragment += 1;
                let mut bytes = item.bytes;
                if item.flags.begins() && !item.flags.is_whole() {
                    let (total, rest) = bytes.split_at(TOTAL_BYTES);
                    let total = u32::from_le_bytes(total.try_into().expect("four bytes"));
                    assert!(self.partial.insert(topic, (total as usize, Vec::new())).is_none());
                    bytes = rest;
                }
                let whole = match self.partial.get_mut(&topic) {
                    Some((_, so_far)) => {
                        so_far.extend_from_slice(bytes);
                        Vec::new()
                    }
                    None => bytes.to_vec(),
                };
                if item.flags.ends() {
                    numbers.message += 1;
                    let bytes = match self.partial.remove(&topic) {
                        Some((total, bytes)) => {
                            assert_eq!(total, bytes.len());
                            bytes
                        }
                        None => whole,
                    };
                    self.messages.push((topic, bytes, item.flags.goes_on()));
                }
            }
            assert_eq!(count, block.count.get());
        }
    }
}

fn packetizer(first: u64, window: usize, limit: usize, longest: usize) -> Packetizer {
    let mut packetizer = Packetizer::new(Window::new(window, first), SESSION, limit, longest);
    (0..TOPICS).for_each(|_| packetizer.add_topic(true));
    packetizer
}

#[derive(Clone, Debug)]
enum Step {
    Stage(u32, usize),
    Publish,
    Unstage,
    Flush,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![6 => 0usize..64, 2 => 400usize..500, 1 => 0usize..4_000];
    let step = prop_oneof![
        8 => (0..TOPICS, len).prop_map(|(topic, len)| Step::Stage(topic, len)),
        4 => Just(Step::Publish),
        1 => Just(Step::Unstage),
        1 => Just(Step::Flush),
    ];
    proptest::collection::vec(step, 1..200)
}

/// The lengths of the messages of a batch.
fn lens() -> impl Strategy<Value = Vec<usize>> {
    let len = prop_oneof![0usize..64, 200usize..500, 0usize..4_000];
    proptest::collection::vec(len, 1..9)
}

/// The batch as it must come out: all but the last of each topic go on.
fn publish(staged: &mut Vec<(u32, Vec<u8>)>, expected: &mut Vec<Message>) {
    let last = |topic| staged.iter().rposition(|(other, _)| *other == topic);
    for (at, (topic, bytes)) in staged.iter().enumerate() {
        expected.push((*topic, bytes.clone(), last(*topic) != Some(at)));
    }
    staged.clear();
}

/// The messages of each topic, in their order.
fn by_topic(messages: &[Message]) -> BTreeMap<u32, Vec<(&[u8], bool)>> {
    let mut topics = BTreeMap::<_, Vec<_>>::new();
    for (topic, bytes, more) in messages {
        topics.entry(*topic).or_default().push((bytes.as_slice(), *more));
    }
    topics
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn messages_read_are_the_messages_published(
        steps in steps(),
        before_the_wrap in 0u64..40,
        keeps in 0u64..8,
    ) {
        let first = 0u64.wrapping_sub(before_the_wrap);
        let mut packetizer = packetizer(first, 16 << 10, 512, 4 << 10);
        let mut reader = Reader { next: first, ..Reader::default() };
        let (mut staged, mut expected) = (Vec::new(), Vec::new());
        let mut fill = 0u8;
        for step in steps {
            match step {
                Step::Stage(topic, len) => {
                    // Nothing that is still to be read may be overwritten, nor a little before.
                    let floor = reader.next.wrapping_sub(keeps);
                    let Ok(()) = packetizer.stage(topic, len, Some(floor)) else { continue };
                    fill = fill.wrapping_add(1);
                    packetizer.staged().fill(fill);
                    prop_assert_eq!(packetizer.staged().len(), len);
                    staged.push((topic, vec![fill; len]));
                }
                Step::Publish => {
                    prop_assert_eq!(packetizer.publish(), staged.len());
                    publish(&mut staged, &mut expected);
                }
                Step::Unstage => {
                    packetizer.unstage();
                    staged.clear();
                }
                Step::Flush => {
                    packetizer.flush();
                }
            }
            while reader.next != packetizer.visible() {
                reader.read(packetizer.window.datagram(reader.next));
            }
        }
        packetizer.unstage();
        packetizer.flush();
        while reader.next != packetizer.visible() {
            reader.read(packetizer.window.datagram(reader.next));
        }
        prop_assert_eq!(by_topic(&reader.messages), by_topic(&expected));
        for (topic, numbers) in &reader.topics {
            prop_assert_eq!(packetizer.position(*topic), *numbers);
        }
    }

    #[test]
    fn reserved_room_stays_when_the_open_datagram_is_closed(
        steps in steps(),
        lens in lens(),
        spare in 0usize..200,
        flush: bool,
    ) {
        let mut packetizer = packetizer(0, 32 << 10, 512, 4_000);
        for step in steps {
            match step {
                // Nothing is read: the window fills up.
                Step::Stage(topic, len) => drop(packetizer.stage(topic, len, Some(0))),
                Step::Publish => drop(packetizer.publish()),
                Step::Unstage => packetizer.unstage(),
                Step::Flush => drop(packetizer.flush()),
            }
        }
        packetizer.publish();
        let bytes = lens.iter().sum::<usize>() + spare;
        // As little as is enough may be overwritten.
        let mut floors = (0..=packetizer.visible()).map(Some);
        let floor =
            floors.find(|floor| packetizer.has_room_for(0, (lens.len(), bytes), *floor).is_ok());
        let Some(floor) = floor else { return Ok(()) };
        if flush {
            packetizer.flush();
        }
        for len in &lens {
            prop_assert_eq!(packetizer.stage(0, *len, floor), Ok(()), "{} of {:?}", len, lens);
        }
    }
}

#[test]
fn uncommitted_messages_are_invisible() {
    let mut packetizer = packetizer(5, 16 << 10, 512, 4 << 10);
    assert_eq!(packetizer.stage(0, 10, None), Ok(()));
    assert!(packetizer.flush(), "nothing published is open");
    assert_eq!(packetizer.visible(), 5);
    assert_eq!((packetizer.publish(), packetizer.take_unsubscribed()), (1, 0));
    assert_eq!(packetizer.stage(0, 10, None), Ok(()));
    assert!(!packetizer.flush(), "waits for what is staged behind it");
    assert_eq!(packetizer.visible(), 5);
    packetizer.unstage();
    assert_eq!((packetizer.visible(), packetizer.has_open()), (6, false));
}

#[test]
fn no_topic_begins_amid_a_batch_that_passes_it_over() {
    let mut packetizer = packetizer(0, 16 << 10, 512, 4 << 10);
    packetizer.set_subscribed(1, false);
    packetizer.stage(1, 8, None).expect("room");
    assert!(!packetizer.flush(), "what is staged would be missed");
    packetizer.publish();
    assert!(packetizer.flush());
    packetizer.stage(1, 8, None).expect("room");
    packetizer.unstage();
    assert!(packetizer.flush());
    assert_eq!(packetizer.position(1).message, 1);
}

#[test]
fn refusals_change_nothing() {
    let mut packetizer = packetizer(5, 4 << 10, 512, 1 << 10);
    assert_eq!(packetizer.stage(9, 1, None), Err(StageError::NoSuchTopic));
    assert_eq!(
        packetizer.stage(0, usize::MAX, None),
        Err(StageError::TooLong { longest: 1 << 10 })
    );
    while packetizer.stage(0, 400, Some(5)).is_ok() {
        packetizer.publish();
    }
    let (visible, numbers) = (packetizer.visible(), packetizer.position(0));
    assert_eq!(packetizer.stage(1, 1_000, Some(5)), Err(StageError::WindowFull));
    assert_eq!(packetizer.stage(1, 400, Some(5)), Err(StageError::WindowFull));
    assert_eq!((packetizer.visible(), packetizer.position(0)), (visible, numbers));
    assert_eq!(packetizer.position(1), Position::default());
    assert_eq!(packetizer.stage(1, 400, None), Ok(()), "overwrites datagrams that may be");
}

#[test]
fn full_datagrams_of_like_messages_make_one_run() {
    let mut packetizer = packetizer(0, 1 << 20, 1_472, 4 << 10);
    for _ in 0..5_000 {
        packetizer.stage(0, 24, None).expect("room");
        packetizer.publish();
    }
    packetizer.flush();
    let run = packetizer.window.run(0, packetizer.visible(), |_| true);
    assert_eq!((run.segment, run.bytes.len()), (1_472, 44 * 1_472), "as much as a packet holds");
}

#[test]
fn a_message_that_nobody_wants_takes_a_number_but_no_room() {
    let mut packetizer = packetizer(0, 16 << 10, 512, 4 << 10);
    for topic in [0, 1] {
        packetizer.stage(topic, 8, None).expect("room");
    }
    packetizer.publish();
    packetizer.set_subscribed(1, false);
    for topic in [1, 0] {
        packetizer.stage(topic, 8, None).expect("room");
    }
    packetizer.unstage();
    for topic in [1, 1, 0] {
        packetizer.stage(topic, 8, None).expect("room");
        packetizer.staged().fill(1);
    }
    assert_eq!((packetizer.publish(), packetizer.take_unsubscribed()), (3, 2));
    packetizer.set_subscribed(1, true);
    packetizer.stage(1, 8, None).expect("room");
    packetizer.publish();
    assert!(packetizer.flush());
    let block = |(header, _): (&BlockHeader, _)| {
        (header.topic.get(), header.count.get(), header.fragment.get(), header.message.get())
    };
    let blocks: Vec<_> = packetizer.window.blocks(0).map(block).collect();
    assert_eq!(blocks, [(0, 1, 0, 0), (1, 1, 0, 0), (0, 1, 1, 1), (1, 1, 3, 3)]);
}
