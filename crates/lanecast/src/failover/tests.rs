//! Tests of the merged stream, over subscribers that deliver what a test lists.

use super::*;
use lanecast_base::sync::{AtomicUsize, Ordering};
use lanecast_transport::Run;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// An event of a source, or of the merged stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happening {
    Joined,
    Message(u64),
    Lost(u64, u64),
    Left(CloseReason),
    /// The poll ends before its limit.
    Nothing,
}

use Happening::{Joined, Left, Lost, Message as Sent, Nothing};

const CLOSED: Happening = Left(CloseReason::Closed);

/// A subscriber that delivers listed events of its sources.
struct Listed {
    sources: [Stream; 2],
    events: VecDeque<(usize, Happening)>,
    /// Messages delivered to the merge.
    messages: Arc<AtomicUsize>,
}

struct NoRun;

impl Run for NoRun {
    type Events<'r> = std::iter::Empty<Event<'r>>;

    fn iter(&self) -> Self::Events<'_> {
        std::iter::empty()
    }
}

impl Subscribe for Listed {
    type Run<'a> = NoRun;

    fn take(&mut self, _: usize) -> NoRun {
        NoRun
    }

    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        let Self { sources, events, messages } = self;
        let mut work = 0;
        while work < limit
            && let Some((source, happening)) = events.pop_front()
        {
            if happening == Nothing {
                break;
            }
            work += 1;
            let stream = &sources[source];
            handler(match happening {
                Joined => Event::Joined(stream),
                Sent(number) => {
                    messages.fetch_add(1, Ordering::Relaxed);
                    Event::Message(Message::new(&[0; 10], stream, number, Lease::FOR_GOOD))
                }
                Lost(first, count) => {
                    Event::Lost(Gap { stream, first, count, why: LossReason::Evicted })
                }
                Left(why) => Event::Left(stream, why),
                Nothing => unreachable!("the poll has ended"),
            });
        }
        work
    }

    fn wait_at_most(&mut self, _work: usize, _limit: Duration) {}

    fn longest_wait(&self) -> Duration {
        Duration::ZERO
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn streams(&self) -> usize {
        self.sources.len()
    }
}

fn listed(events: impl IntoIterator<Item = (usize, Happening)>) -> Listed {
    let stream = |session: u64| Stream {
        session: SessionId(session),
        topic: "orders".to_owned(),
        topic_id: TopicId::FIRST,
        pid: 0,
        source: "test".to_owned(),
    };
    let events = events.into_iter().collect();
    Listed { sources: [stream(1), stream(2)], events, messages: Arc::default() }
}

fn happening(event: &Event<'_>) -> Happening {
    match event {
        Event::Joined(_) => Joined,
        Event::Message(message) => Sent(message.number()),
        Event::Lost(gap) => Lost(gap.first, gap.count),
        Event::Left(_, why) => Left(*why),
        other => panic!("{other:?}"),
    }
}

/// The merged stream of `events`, whose messages have their numbers plus `shifts` of the source,
/// read with this limit.
fn merged(events: &[(usize, Happening)], shifts: [u64; 2], limit: usize) -> Vec<Happening> {
    let patience = Duration::from_secs(3_600);
    merged_with(FailoverSettings { patience, ..Default::default() }, events, shifts, limit)
}

/// The same with other settings.
fn merged_with(
    settings: FailoverSettings,
    events: &[(usize, Happening)],
    shifts: [u64; 2],
    limit: usize,
) -> Vec<Happening> {
    let number = |message: &Message<'_>| {
        message.number() + shifts[if message.stream().session == SessionId(1) { 0 } else { 1 }]
    };
    let mut feed = Failover::new(listed(events.iter().copied()), settings, number);
    let mut read = Vec::new();
    for _ in 0..2 * events.len() {
        feed.poll(limit, |event| read.push(happening(&event)));
    }
    let lost = read.iter().map(|it| if let Lost(_, count) = it { *count } else { 0 }).sum();
    assert_eq!(feed.counters().lost, lost);
    read
}

#[test]
fn the_next_stream_begins_with_numbers_of_its_own() {
    let events = [
        (0, Joined),
        (0, Sent(0)),
        (0, Sent(1)),
        (0, Sent(2)),
        // Held until the last source has left.
        (1, Joined),
        (0, Sent(4)),
        (0, CLOSED),
        (1, CLOSED),
        (1, Nothing),
        (1, Joined),
        (1, Sent(0)),
        (1, Sent(1)),
        (1, CLOSED),
    ];
    let first = [Joined, Sent(0), Sent(1), Sent(2), Lost(3, 1), Sent(4), CLOSED];
    let read = [&first[..], &[Joined, Sent(0), Sent(1), CLOSED][..]].concat();
    for limit in [1, 2, 3, 100] {
        assert_eq!(merged(&events, [0; 2], limit), read, "limit {limit}");
    }
}

#[test]
fn a_source_that_a_poll_comes_to_after_the_others_end_brings_nothing_twice() {
    let events = [
        (0, Joined),
        (0, Sent(0)),
        (0, Sent(1)),
        (0, CLOSED),
        (1, Joined),
        (1, Sent(0)),
        (1, Sent(1)),
        (1, Sent(2)),
        (1, CLOSED),
    ];
    for limit in [1, 2, 3, 4, 100] {
        let read = merged(&events, [0; 2], limit);
        assert_eq!(read, [Joined, Sent(0), Sent(1), Sent(2), CLOSED], "limit {limit}");
    }
}

#[test]
fn a_publisher_that_restarts_beside_another_begins_a_stream_where_the_settings_say_so() {
    // The restarted one and another publisher, found by the poll that finds the end.
    let events = [
        (0, Joined),
        (0, Sent(0)),
        (0, Sent(1)),
        // Held until the last source has left.
        (0, Sent(3)),
        (0, CLOSED),
        (0, Joined),
        (1, Joined),
        (0, Sent(0)),
        (1, Sent(0)),
        (1, Sent(1)),
        (0, CLOSED),
        (1, CLOSED),
    ];
    let first = [Joined, Sent(0), Sent(1), Lost(2, 1), Sent(3), CLOSED];
    let read = [&first[..], &[Joined, Sent(0), Sent(1), CLOSED][..]].concat();
    let settings =
        FailoverSettings { joins_at_end: JoinsAtEnd::NewStream, ..FailoverSettings::default() };
    for limit in [1, 2, 3, 100] {
        assert_eq!(merged_with(settings, &events, [0; 2], limit), read, "limit {limit}");
    }
    assert_eq!(merged(&events, [0; 2], 100), first, "as copies");
}

#[test]
fn a_handler_that_panics_in_the_end_leaves_the_next_stream_whole() {
    let first = [(0, Joined), (0, Sent(0)), (0, Sent(1)), (0, CLOSED), (0, Nothing)];
    let next = [(1, Joined), (1, Sent(0)), (1, Sent(1)), (1, CLOSED)];
    let source = listed(first.into_iter().chain(next));
    let mut feed = Failover::new(source, FailoverSettings::default(), |it| it.number());
    let mut read = Vec::new();
    for _ in 0..4 {
        let poll = std::panic::AssertUnwindSafe(|| {
            feed.poll(100, |event| {
                read.push(happening(&event));
                assert!(!matches!(event, Event::Left(..)), "the test's own");
            });
        });
        let _ = std::panic::catch_unwind(poll);
    }
    let stream = [Joined, Sent(0), Sent(1), CLOSED];
    assert_eq!(read, [stream, stream].concat());
}

#[test]
fn a_source_that_lagged_brings_nothing_twice_to_a_replacement() {
    let events = [
        (0, Joined),
        (1, Joined),
        (0, Sent(0)),
        (0, Sent(1)),
        (0, CLOSED),
        (0, Joined),
        (1, Sent(0)),
        (0, Sent(0)),
        (1, Sent(1)),
        (1, Sent(2)),
        (1, CLOSED),
        (0, CLOSED),
    ];
    // The replacement numbers its messages anew; the numbers in them go on.
    let read = merged(&events, [0, 0], 100);
    assert_eq!(read, [Joined, Sent(0), Sent(1), Sent(2), CLOSED]);
}

#[test]
fn losses_at_the_end_are_told_before_the_end() {
    let evicted = Left(CloseReason::Evicted);
    let both = [(0, Joined), (1, Joined), (0, Sent(0)), (1, Sent(0))];
    let tail = [(0, Lost(1, 5)), (1, Lost(1, 3)), (1, evicted), (0, evicted)];
    for limit in [1, 100] {
        let read = merged(&[both, tail].concat(), [0; 2], limit);
        let lost = read.iter().map(|it| if let Lost(_, count) = it { *count } else { 0 });
        assert_eq!((lost.sum::<u64>(), read.last()), (5, Some(&evicted)), "{read:?}");
    }
    // One source has brought them: nothing is missing.
    let tail = [(0, Lost(1, 2)), (1, Sent(1)), (1, Sent(2)), (1, CLOSED), (0, CLOSED)];
    let read = merged(&[&both[..], &tail[..]].concat(), [0; 2], 100);
    assert_eq!(read, [Joined, Sent(0), Sent(1), Sent(2), CLOSED]);
    // Without any message, and before the first one.
    let read = merged(&[(0, Joined), (0, Lost(0, 4)), (0, evicted)], [0; 2], 100);
    assert_eq!(read, [Joined, Lost(0, 4), evicted]);
    let read = merged(&[(0, Joined), (0, Lost(2, 4)), (0, Sent(6)), (0, CLOSED)], [0; 2], 100);
    assert_eq!(read, [Joined, Lost(2, 4), Sent(6), CLOSED]);
}

#[test]
fn a_stream_that_one_source_has_sent_whole_and_closed_is_closed() {
    let died = Left(CloseReason::Died);
    let both = [(0, Joined), (1, Joined), (0, Sent(0)), (1, Sent(0)), (0, Sent(1))];
    for (tail, end) in [
        // The death of the one is noticed before or after the other closes.
        ([(0, died), (1, Sent(1)), (1, Sent(2)), (1, CLOSED)], CLOSED),
        ([(1, Sent(1)), (1, Sent(2)), (1, CLOSED), (0, died)], CLOSED),
        ([(1, Sent(1)), (1, Lost(2, 1)), (1, CLOSED), (0, died)], CLOSED),
        // The one that closed had not sent all that came.
        ([(1, CLOSED), (0, Sent(2)), (0, Nothing), (0, died)], died),
        ([(1, died), (0, Sent(2)), (0, Nothing), (0, died)], died),
    ] {
        for limit in [1, 100] {
            let read = merged(&[&both[..], &tail[..]].concat(), [0; 2], limit);
            assert_eq!(read.last(), Some(&end), "{read:?}");
        }
    }
}

#[test]
fn losses_have_the_numbers_found_in_messages() {
    let events = [
        (0, Joined),
        (1, Joined),
        (0, Sent(1_000)),
        (1, Sent(10)),
        (1, Lost(11, 4)),
        (0, Sent(1_001)),
        (1, CLOSED),
        (0, Lost(1_002, 1)),
        (0, CLOSED),
    ];
    let read = merged(&events, [4_000, 4_990], 1);
    let lost = read.iter().map(|it| if let Lost(_, count) = it { *count } else { 0 });
    assert_eq!(lost.sum::<u64>(), 3, "{read:?}");
    assert_eq!(read[..4], [Joined, Sent(1_000), Sent(1_001), Lost(5_002, 1)].map(shifted));
}

/// A message of the first source, with the number found in it.
fn shifted(happening: Happening) -> Happening {
    if let Sent(number) = happening { Sent(number + 4_000) } else { happening }
}

#[test]
fn a_poll_holds_no_more_than_the_settings_allow() {
    let ahead = (2..200).map(|number| (0, Sent(number)));
    let all = [(0, Joined), (1, Joined), (0, Sent(0))].into_iter().chain(ahead);
    let patience = Duration::from_secs(3_600);
    for (held_messages, held_bytes) in [(3, 1_000), (1_000, 30)] {
        let source = listed(all.clone());
        let brought = Arc::clone(&source.messages);
        let settings =
            FailoverSettings { patience, held_messages, held_bytes, ..FailoverSettings::default() };
        let mut feed = Failover::new(source, settings, |message| message.number());
        let (mut read, mut messages) = (Vec::new(), 0);
        feed.poll(10_000, |event| {
            // One more is there: the one that makes others go.
            assert!(brought.load(Ordering::Relaxed) - messages <= 4, "{read:?}");
            messages += usize::from(matches!(event, Event::Message(_)));
            read.push(happening(&event));
        });
        let end: Vec<_> = (2..200).map(Sent).collect();
        assert_eq!(read, [&[Joined, Sent(0), Lost(1, 1)][..], &end[..]].concat());
    }
}
