//! The whole experiment on tape: first the publisher's side, then the subscriber's.

use super::tape::{Tape, clock};
use lanecast_base::{Size, WaitStrategy};
use lanecast_measure::{
    Flags, PinChoice, Pinning, PriorityChange, PublisherResult, Setup, SubscriberResult, Touch,
    publisher, subscriber,
};
use std::time::Duration;

/// Messages a second: one each microsecond.
const RATE: u64 = 1_000_000;
/// Messages before those that are measured.
pub(crate) const WARM_UP: usize = 100;

const PLACE: Pinning = Pinning { cpu: None, choice: PinChoice::None };

fn setup() -> Setup {
    Setup {
        wait: WaitStrategy::BusySpin,
        window: Size(4096),
        io: None,
        raise: PriorityChange::NotAsked,
        clock: clock(),
    }
}

/// Publishes so many stamped messages, in bursts of `burst`; `bits` are further flags.
pub(crate) fn record(tape: &Tape, messages: usize, burst: u64, bits: u8) -> PublisherResult {
    let settings = publisher::Settings {
        topics: vec!["t".into()],
        size: 32,
        messages: messages as u64,
        rate: RATE,
        time: None,
        burst,
        warmup: WARM_UP as u64,
        warmup_rate: RATE,
        flags: Flags::from_bits(1 | bits).unwrap(),
        touch: Touch::Header,
        place: PLACE,
        arrival: publisher::Arrival::Subscribers(1),
        linger: Duration::ZERO,
        calls: None,
        setup: setup(),
    };
    let hooks =
        publisher::Hooks { stop: &|| false, back_pressured: &|_| None, announce: &mut |_| {} };
    publisher::run(tape, &settings, hooks).unwrap()
}

/// Reads what was published.
pub(crate) fn play(tape: &Tape) -> SubscriberResult {
    let settings = subscriber::Settings {
        topics: vec!["t".into()],
        place: PLACE,
        fast: false,
        linear: Some("100,1000".parse().unwrap()),
        spin: 0,
        touch: Touch::Header,
        unordered: false,
        once: true,
        setup: setup(),
    };
    subscriber::run(tape, &settings, |_| None, &|| false, &mut |_| {}).unwrap()
}
