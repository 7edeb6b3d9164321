//! Hot failover over simulated networks: two sources send one stream to a subscriber, both networks
//! lose datagrams, and one source dies while it sends.
//!
//! Each source has a network of its own, with the real sender and receiver. Their deliveries go
//! through the real merge in the order of simulated time.

use lanecast::failover::{Failover, FailoverCounters, FailoverSettings};
use lanecast::prelude::*;
use lanecast_protocol::receiver::ReceiverSettings;
use lanecast_protocol::sender::{Distribution, SenderSettings};
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use lanecast_sim::checked_receiver::Logged;
use lanecast_sim::fault::Fault;
use lanecast_sim::link::{LinkConditions, Loss};
use lanecast_sim::payload::Sizes;
use lanecast_sim::rng::SimRng;
use lanecast_sim::scenario::{Ending, Focus, Load, Plan, Scenario};
use lanecast_sim::world::World;
use lanecast_transport::{CloseReason, Gap, LossReason, Run, SessionId, Stream, TopicId};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

const MESSAGES: u64 = 400;

/// A source with 10 % of loss, whose subscriber gives up after this time, or not at all, and that
/// dies after a number of milliseconds, if that is given.
fn source(seed: u64, give_up_after: Option<Nanos>, dies: Option<Nanos>) -> Scenario {
    let conditions = LinkConditions {
        delay: 50 * MICROSECOND,
        jitter: 200 * MICROSECOND,
        loss: Loss::Random(100_000),
        ..LinkConditions::CALM
    };
    let sender = SenderSettings {
        // Equal for both: bytes of messages depend on it.
        session: 7,
        distribution: Distribution::Unicast,
        late_join: true,
        cookie_key: [seed, 1],
        ..SenderSettings::default()
    };
    let plan = Plan {
        starts: 0,
        receiver: ReceiverSettings {
            late_join: true,
            give_up_after,
            ..ReceiverSettings::default()
        },
        topics: vec![0],
        pace: 0,
        reads_inline: true,
        socket_bytes: 1 << 20,
        stays: true,
        logs: true,
    };
    let crash = dies.map(|after| (after * MILLISECOND, Fault::CrashPublisher));
    let (pause, burst, batch) = (MILLISECOND, 4, 2);
    Scenario {
        seed,
        focus: Focus::Anything,
        topics: vec![(Sizes::Mixed(3_000), 0)],
        load: Load { messages: MESSAGES, pause, burst, batch, batches: 30, flushes: 50 },
        subscribers: vec![plan],
        conditions,
        back: conditions,
        egress: None,
        faults: std::iter::once((0, Fault::Start(0))).chain(crash).collect(),
        healed: SECOND,
        ending: Ending::Close,
        is_gentle: false,
        sender,
    }
}

/// Deliveries of a source until its stream has ended.
fn deliveries(scenario: Scenario) -> Vec<(Nanos, Logged)> {
    let mut world = World::new(scenario);
    let (mut is_closed, limit) = (false, world.fabric.now + 120 * SECOND);
    while world.subscribers[0].past.is_empty() {
        let now = world.fabric.now;
        assert!(now < limit, "{}", world.state());
        world.run_until(now + MILLISECOND).expect("no violation");
        let World { publisher, fabric, truths, subscribers, .. } = &mut world;
        let is_whole = subscribers[0].checked(0).is_some_and(|it| it.is_whole(&truths[0]));
        if !is_closed && publisher.has_said_all() && is_whole {
            is_closed = true;
            truths[0].is_closed = true;
            if let Some(sender) = &mut publisher.sender {
                sender.close(now);
            }
            publisher.poll(fabric).expect("no violation");
        }
    }
    world.subscribers[0].past.remove(0).log.expect("it was kept")
}

/// A subscriber that delivers what was kept, one event a poll.
struct Replay {
    streams: [Stream; 2],
    events: VecDeque<(usize, Logged)>,
}

struct NoRun;

impl Run for NoRun {
    type Events<'r> = std::iter::Empty<Event<'r>>;

    fn iter(&self) -> Self::Events<'_> {
        std::iter::empty()
    }
}

impl Subscribe for Replay {
    type Run<'a> = NoRun;

    fn take(&mut self, _: usize) -> NoRun {
        NoRun
    }

    fn poll<F: FnMut(Event<'_>)>(&mut self, _: usize, mut handler: F) -> usize {
        let Some((source, event)) = self.events.pop_front() else { return 0 };
        let stream = &self.streams[source];
        match event {
            Logged::Joined => handler(Event::Joined(stream)),
            Logged::Message(number, bytes) => {
                let lease = lanecast_transport::Lease::FOR_GOOD;
                handler(Event::Message(Message::new(&bytes, stream, number, lease)));
            }
            Logged::Lost(first, count) => {
                handler(Event::Lost(Gap { stream, first, count, why: LossReason::GaveUp }));
            }
            Logged::Left(why) => handler(Event::Left(stream, why)),
        }
        1
    }

    fn wait_at_most(&mut self, _work: usize, _limit: Duration) {}

    fn wakeup(&mut self) -> std::io::Result<std::os::fd::BorrowedFd<'_>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn longest_wait(&self) -> Duration {
        Duration::ZERO
    }

    fn streams(&self) -> usize {
        self.streams.len()
    }
}

/// The first number of the merged stream: that of the message that comes first, or of the first one
/// that its source has lost before it.
fn start(all: &[(Nanos, usize, Logged)]) -> u64 {
    let mut lost = [None; 2];
    for (_, source, event) in all {
        match event {
            Logged::Message(number, _) => return lost[*source].unwrap_or(*number),
            Logged::Lost(first, _) => lost[*source] = lost[*source].or(Some(*first)),
            _ => {}
        }
    }
    panic!("no message");
}

/// Merges the deliveries of two sources, and checks the merged stream after each of them. Returns
/// the counts, and the number of messages that only the second source brought.
fn merge(sources: [Vec<(Nanos, Logged)>; 2]) -> (FailoverCounters, usize) {
    let brought = sources.each_ref().map(|events| {
        let number = |(_, event): &(Nanos, Logged)| match event {
            Logged::Message(number, _) => Some(*number),
            _ => None,
        };
        events.iter().filter_map(number).collect::<BTreeSet<u64>>()
    });
    let union: BTreeSet<u64> = &brought[0] | &brought[1];
    let mut all: Vec<(Nanos, usize, Logged)> = Vec::new();
    for (source, events) in sources.into_iter().enumerate() {
        // Both are there before the first message: a source that joins later than the other has
        // passed a number may bring what was told as lost.
        let at = |(at, event): &(Nanos, Logged)| if *event == Logged::Joined { 0 } else { *at };
        all.extend(events.into_iter().map(|it| (at(&it), source, it.1)));
    }
    // Stable: the order within a source stays.
    all.sort_by_key(|(at, _, _)| *at);
    let (count, end) = (all.len(), all.last().map(|(_, _, event)| event.clone()));
    let last = if let Some(Logged::Left(why)) = end { Some(why) } else { None };
    // A source that closes has sent all.
    let is_closed = all.iter().any(|it| it.2 == Logged::Left(CloseReason::Closed));
    let end = if is_closed { Some(CloseReason::Closed) } else { last };
    let start = start(&all);
    let stream = |number: u64| Stream {
        session: SessionId(number),
        topic: "orders".to_owned(),
        topic_id: TopicId::FIRST,
        pid: 0,
        source: "sim".to_owned(),
    };
    let events = all.into_iter().map(|(_, source, event)| (source, event)).collect();
    let replay = Replay { streams: [stream(1), stream(2)], events };
    // By the clock nothing is given up: simulated time is another one.
    let patience = Duration::from_secs(24 * 3_600);
    let settings = FailoverSettings {
        patience,
        held_messages: 1 << 20,
        held_bytes: 1 << 30,
        ..FailoverSettings::default()
    };
    let mut feed = Failover::new(replay, settings, |message| message.number());
    let (mut next, mut ends, mut joins) = (start, Vec::new(), 0);
    for _ in 0..2 * count {
        while feed.poll(1, |event| match event {
            Event::Message(message) => {
                assert_eq!(message.number(), next, "in order, once, and with no gap untold");
                assert!(union.contains(&next));
                next += 1;
            }
            Event::Lost(gap) => {
                assert_eq!(gap.first, next);
                next += gap.count;
                let came = union.range(gap.first..next).next();
                assert_eq!(came, None, "told as lost, but a source has brought it");
            }
            Event::Joined(_) => joins += 1,
            Event::Left(_, why) => ends.push(why),
            other => panic!("{other:?}"),
        }) > 0
        {}
    }
    assert_eq!((next, joins, ends.len()), (MESSAGES, 1, 1), "{:?}", feed.counters());
    assert_eq!(ends, end.into_iter().collect::<Vec<_>>(), "closed, or as the one that left last");
    let counters = feed.counters();
    let delivered = union.range(start..).count() as u64;
    assert_eq!((counters.messages, counters.lost), (delivered, MESSAGES - start - delivered));
    let copies = brought.iter().map(BTreeSet::len).sum::<usize>() as u64;
    assert_eq!(counters.duplicates, copies - delivered);
    (counters, brought[1].difference(&brought[0]).count())
}

#[test]
fn the_death_of_one_source_costs_nothing() {
    for seed in 0..20 {
        let dies = SimRng::new(seed).within(20..=50);
        let first = deliveries(source(2 * seed + 1, None, Some(dies)));
        let has_died = first.iter().any(|it| it.1 == Logged::Left(CloseReason::Died));
        assert!(has_died, "seed {seed}: {} deliveries", first.len());
        let (counters, rescued) = merge([first, deliveries(source(2 * seed + 2, None, None))]);
        assert_eq!((counters.messages, counters.lost), (MESSAGES, 0), "seed {seed}");
        assert!(rescued > 0 && counters.duplicates > 0, "seed {seed}: {counters:?}");
    }
}

#[test]
fn losses_of_one_source_are_made_up_for_by_the_other() {
    let (mut lost, mut rescued) = ([0; 2], 0);
    for seed in 0..20 {
        let give_up_after = Some(300 * MICROSECOND);
        let sources =
            [1, 2].map(|own| deliveries(source(100 + 2 * seed + own, give_up_after, None)));
        lost[0] += sources
            .iter()
            .flatten()
            .map(|(_, event)| if let Logged::Lost(_, count) = event { *count } else { 0 })
            .sum::<u64>();
        let (counters, by_second) = merge(sources);
        lost[1] += counters.lost;
        rescued += by_second;
    }
    assert!(lost[0] > 100 && rescued > 50, "{lost:?}, {rescued}");
    assert!(lost[1] * 4 < lost[0], "{lost:?}");
}
