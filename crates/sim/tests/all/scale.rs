//! Many receivers of one source: start-up storm, mass reconnect, and one that loses almost
//! everything and asks for it again. Traffic is bounded by counts of frames, for each receiver.
//!
//! With 100 receivers; with `LONG_TESTS=1`, 1,000.

use lanecast_protocol::sender::{Distribution, Pacing, SenderSettings};
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos, SECOND, receiver};
use lanecast_sim::fault::Fault;
use lanecast_sim::ledger::Ledger;
use lanecast_sim::link::{LinkConditions, Loss};
use lanecast_sim::network::group_address;
use lanecast_sim::payload::Sizes;
use lanecast_sim::scenario::{Ending, Focus, Load, PUBLISHER, Plan, Scenario, host};
use lanecast_sim::traffic::Traffic;
use lanecast_sim::world::World;
use lanecast_wire::net::Kind;

/// Messages of 24 bytes, five in a datagram, a datagram each millisecond.
const MESSAGES: u64 = 1_000;
const DATAGRAMS: u64 = MESSAGES / 5;

/// Number of receivers, each on a host of its own.
fn crowd_size() -> usize {
    if std::env::var_os("LONG_TESTS").is_some() { 1_000 } else { 100 }
}

/// A scenario without faults in which all receivers start at once.
fn crowd(is_group: bool) -> Scenario {
    let count = crowd_size();
    let distribution =
        if is_group { Distribution::Multicast(group_address(1)) } else { Distribution::Unicast };
    let sender = SenderSettings {
        session: 7,
        distribution,
        pacing: Pacing::Slowest,
        receivers_max: count,
        cookie_key: [7, 1],
        ..SenderSettings::default()
    };
    let plan = Plan {
        starts: 0,
        receiver: receiver::ReceiverSettings {
            multicast: is_group,
            ..receiver::ReceiverSettings::default()
        },
        topics: vec![0],
        pace: 0,
        reads_inline: true,
        socket_bytes: 1 << 20,
        stays: true,
        logs: false,
    };
    // After the storm: what it costs is seen alone.
    let pause = MILLISECOND;
    Scenario {
        seed: 1,
        focus: Focus::Anything,
        topics: vec![(Sizes::Even(24), 0)],
        load: Load { messages: MESSAGES, pause, burst: 5, batch: 2, batches: 0, flushes: 0 },
        subscribers: vec![plan; count],
        conditions: LinkConditions { delay: 50 * MICROSECOND, ..LinkConditions::CALM },
        back: LinkConditions { delay: 50 * MICROSECOND, ..LinkConditions::CALM },
        egress: None,
        faults: (0..count).map(|number| (0, Fault::Start(number))).collect(),
        healed: SECOND,
        ending: Ending::Close,
        is_gentle: true,
        sender,
    }
}

/// Runs until the condition holds; returns the time that took.
fn wait(world: &mut World, what: &str, holds: impl Fn(&World) -> bool) -> Nanos {
    let began = world.fabric.now;
    while !holds(world) {
        let now = world.fabric.now;
        assert!(now < began + 60 * SECOND, "not {what}: {} receivers", receivers(world));
        world.run_until(now + MILLISECOND).expect("no violation");
    }
    world.fabric.now - began
}

fn receivers(world: &World) -> usize {
    world.publisher.sender.as_ref().map_or(0, |sender| sender.joined())
}

fn all_joined(world: &World) -> bool {
    let truth = &world.truths[0];
    receivers(world) == world.subscribers.len()
        && world.subscribers.iter().all(|subscriber| {
            subscriber.checked(0).is_some_and(|checked| checked.has_joined(truth))
        })
}

/// All have read all messages from the one on with which they joined, and lost nothing.
fn all_whole(world: &World) -> bool {
    let truth = &world.truths[0];
    world.subscribers.iter().all(|subscriber| {
        subscriber.checked(0).is_some_and(|checked| {
            let lost: u64 = checked.ledgers.iter().map(Ledger::lost).sum();
            assert_eq!(lost, 0, "{}", checked.state());
            checked.is_whole(truth)
        })
    })
}

/// Frames so far.
#[derive(Clone, Copy, Debug)]
struct Frames {
    /// Data of the publisher, repairs included.
    data: u64,
    repairs: u64,
    /// Other frames of the publisher.
    control: u64,
    /// Frames of all receivers, and the NAKs among them.
    receivers: u64,
    naks: u64,
}

impl Frames {
    fn of(world: &World) -> Self {
        let all = |traffic: &Traffic| traffic.since(&Traffic::default());
        let (publisher, subscribers) = (&world.publisher.traffic, world.subscribers.iter());
        let data = publisher.frames(Kind::Data);
        Self {
            data,
            repairs: publisher.repairs(),
            control: all(publisher) - data,
            receivers: subscribers.clone().map(|it| all(&it.traffic)).sum(),
            naks: subscribers.map(|it| it.traffic.frames(Kind::Nak)).sum(),
        }
    }

    /// Frames since then, printed under this name.
    fn since(self, then: &Self, what: &str, took: Nanos) -> Self {
        let since = Self {
            data: self.data - then.data,
            repairs: self.repairs - then.repairs,
            control: self.control - then.control,
            receivers: self.receivers - then.receivers,
            naks: self.naks - then.naks,
        };
        println!("{what} after {} ms: {since:?}", took / MILLISECOND);
        since
    }
}

/// Waits, and returns the frames that were sent meanwhile.
fn phase(world: &mut World, what: &str, holds: impl Fn(&World) -> bool) -> Frames {
    let then = Frames::of(world);
    let took = wait(world, what, holds);
    Frames::of(world).since(&then, what, took)
}

#[test]
fn a_storm_of_joins_and_reconnects_costs_frames_in_proportion() {
    for is_group in [false, true] {
        let mut world = World::new(crowd(is_group));
        let count = world.subscribers.len() as u64;
        // Two Joins each, with a cookie between them, and a Status.
        let joined = phase(&mut world, "joined", all_joined);
        assert!(joined.receivers <= 4 * count && joined.control <= 4 * count, "{joined:?}");
        let read =
            phase(&mut world, "read", |world| world.publisher.has_said_all() && all_whole(world));
        let copies = if is_group { 1 } else { count };
        assert!(read.data <= DATAGRAMS * copies && read.repairs == 0, "{read:?}");
        // The end of each datagram's silence is told twice, to a group once for all.
        assert!(read.control <= 2 * DATAGRAMS * copies + 4 * count, "{read:?}");
        assert!(read.receivers <= 4 * count && read.naks == 0, "{read:?}");
        // The cables of all hosts are cut at once, for longer than the liveness, and mended.
        for number in 0..world.subscribers.len() {
            world.fabric.network.cut(PUBLISHER, host(number));
            world.fabric.network.cut(host(number), PUBLISHER);
        }
        let alone = phase(&mut world, "given up", |world| receivers(world) == 0);
        // A Status each tenth of the liveness.
        assert!(alone.receivers <= 12 * count && alone.data == 0, "{alone:?}");
        assert!(alone.control <= 20 * copies + 20, "{alone:?}");
        for number in 0..world.subscribers.len() {
            world.fabric.network.heal(PUBLISHER, host(number));
            world.fabric.network.heal(host(number), PUBLISHER);
        }
        let back = phase(&mut world, "joined again", all_joined);
        assert!(back.receivers <= 5 * count && back.control <= 5 * count, "{back:?}");
        assert_eq!((back.data, back.naks), (0, 0), "nothing was missed");
    }
}

#[test]
fn one_receiver_that_asks_for_everything_again_disturbs_no_other() {
    for is_group in [false, true] {
        let mut world = World::new(crowd(is_group));
        let lossy = LinkConditions { loss: Loss::Random(900_000), ..world.scenario.conditions };
        phase(&mut world, "joined", all_joined);
        world.fabric.network.set_path(PUBLISHER, host(0), lossy);
        let began = world.fabric.now;
        let told = phase(&mut world, "published", |world| world.publisher.has_said_all());
        // The load alone takes as long: the others are not held up.
        assert!(world.fabric.now - began <= 2 * DATAGRAMS * MILLISECOND, "{told:?}");
        let read = phase(&mut world, "read", all_whole);
        let repairs = told.repairs + read.repairs;
        // A tenth of the repairs comes through.
        assert!(repairs > 2 * DATAGRAMS && repairs <= 20 * DATAGRAMS, "{repairs}");
        let asking = world.subscribers[0].traffic.frames(Kind::Nak);
        assert_eq!(told.naks + read.naks, asking, "others asked too");
        assert!(asking <= 4 * DATAGRAMS, "{asking} NAKs");
    }
}

/// Frames that keep the way warm do not grow with the number of receivers, and disturb none.
#[test]
fn frames_that_keep_the_way_warm_are_as_many_for_a_crowd_as_for_one() {
    const SILENCE: Nanos = SECOND / 2;
    const INTERVAL: Nanos = MILLISECOND;
    for is_group in [false, true] {
        let mut scenario = crowd(is_group);
        scenario.sender.keep_warm = Some(INTERVAL);
        let mut world = World::new(scenario);
        let count = world.subscribers.len() as u64;
        let whole = |world: &World| world.publisher.has_said_all() && all_whole(world);
        let read = phase(&mut world, "read", whole);
        assert!(read.repairs == 0 && read.naks == 0, "{read:?}");
        let until = world.fabric.now + SILENCE;
        let idle = phase(&mut world, "idle", |world| world.fabric.now >= until);
        // Heartbeats at growing intervals, to a group once for all; and answers to Status.
        let usual = 16 * if is_group { 1 } else { count } + 12 * count;
        let warming = SILENCE / INTERVAL;
        assert!(idle.control > warming * 9 / 10, "{idle:?}");
        assert!(idle.control <= warming + usual && idle.data + idle.naks == 0, "{idle:?}");
    }
}
