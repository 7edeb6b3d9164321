//! Waiting: spin, yield or park while a publisher has no space or a subscriber no messages.
//!
//! The type that waits (a ring's producer, a subscriber, a socket's reader) owns a [`Waiter`] and
//! asks it after every empty poll for the next [`WaitStep`].

use crate::sync::spin_hint;
use core::fmt;
use core::str::FromStr;
use std::time::Duration;

/// Behaviour of a publisher without space, or of a subscriber without messages.
///
/// | strategy | reaction time | burns a CPU | use |
/// |---|---|---|---|
/// | `BusySpin` | one cache-line transfer | always | a dedicated core |
/// | `SpinYield` | the same, if the core is free | always | few other threads on the core |
/// | `SpinPark` | the same while busy; a wake-up after a pause | only while busy | the default |
/// | `Park` | a kernel wake-up each time | never | many readers, rare messages |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Poll again after a few pauses: fewer over a fast line between the CPUs, more where messages
    /// come fast, so that the other side can finish its cache line.
    BusySpin,
    /// Spin a little, then yield the core to other runnable threads.
    SpinYield,
    /// Spin at most as long as a wake-up costs, less where spinning has not helped lately, then
    /// yield twice, then sleep until woken.
    #[default]
    SpinPark,
    /// Sleep until woken.
    Park,
}

impl WaitStrategy {
    /// Every strategy, in the order of their names on the command line.
    pub const ALL: [Self; 4] = [Self::BusySpin, Self::SpinYield, Self::SpinPark, Self::Park];

    /// Name in configuration files and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BusySpin => "spin",
            Self::SpinYield => "yield",
            Self::SpinPark => "spin-park",
            Self::Park => "park",
        }
    }

    /// Code in the shared memory that other processes inspect.
    pub const fn code(self) -> u32 {
        match self {
            Self::BusySpin => 1,
            Self::SpinYield => 2,
            Self::SpinPark => 3,
            Self::Park => 4,
        }
    }

    /// The strategy with this [`code`](Self::code).
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.code() == code)
    }
}

impl fmt::Display for WaitStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Text that is not the name of a [`WaitStrategy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseWaitError(String);

impl fmt::Display for ParseWaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a wait strategy: write spin, yield, spin-park or park", self.0)
    }
}

impl std::error::Error for ParseWaitError {}

impl FromStr for WaitStrategy {
    type Err = ParseWaitError;
    fn from_str(text: &str) -> Result<Self, ParseWaitError> {
        Self::ALL
            .into_iter()
            .find(|strategy| strategy.name() == text)
            .ok_or_else(|| ParseWaitError(text.to_owned()))
    }
}

/// Next step of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitStep {
    /// Pause this often, then poll again.
    Spin(u32),
    /// Yield the core once, then poll again.
    Yield,
    /// Sleep until woken or until a bounded time has passed.
    Park,
}

/// Pauses after an empty poll. A writer needs its cache line undisturbed to fill it; polling
/// without a pause takes the line away in the middle of the work.
const CAUGHT_UP_PAUSES: u32 = 4;
/// Empty polls after which a spinning waiter polls as for single messages: its writer is not in
/// the middle of one, and a long pause would only delay the next one.
const IDLE_POLLS: u32 = 8;
/// Waits in a row that ended with one message each: the writer sends single messages.
const SINGLE_MESSAGES: u32 = 16;
/// Most pauses between two polls for single messages, and at first.
///
/// A processor that polls without a pause has begun further reads when the cache line changes, and
/// discards them first; polls also take the line away from a writer in the middle of its work. A
/// long pause delays the message. Of round trips over a slow line (280 to 355 ns) four pauses took
/// a fifth off, over a fast line (170 ns) they add a half to those with one.
const SINGLE_PAUSES_MAX: u32 = CAUGHT_UP_PAUSES;
const SINGLE_PAUSES_START: u32 = 2;
/// Length of a poll, in pauses: about, on processors of both makers.
const POLL_PAUSES: u32 = 3;
/// Lengths of waits, in pauses, that are those of round trips over a slow line. Shorter ones come
/// from a fast line. Longer ones are not for the line, since the writer had nothing to send: its
/// next message would wait for the pause that it falls into. At a million messages a second (45)
/// one pause between two polls instead of four takes 30 to 60 ns off, over both lines.
const SLOW_LINE: core::ops::RangeInclusive<u32> = 18..=36;
/// Empty polls for a message over a slow line up to which there are pauses enough.
const SLOW_LINE_POLLS: u32 = 3;
/// Most pauses after the first empty poll of a reader that keeps catching up with a fast writer
/// (some 20 million messages a second and more): three microseconds, in which the writer gets far
/// enough ahead for both to work undisturbed. Without them a reader slightly faster than the
/// writer contends with it for every cache line, at a fraction of the rate.
const THROTTLE_PAUSES_MAX: u32 = 256;
/// Longest spinning before parking, in pauses: about 20 µs, the cost of a wake-up, so that waiting
/// never costs more than twice the best choice in hindsight.
const SPINNING_MAX: u32 = 400 * (CAUGHT_UP_PAUSES + POLL_PAUSES);
/// Shortest spinning before parking: the case that the other side needs this very core, where
/// spinning never helps.
const SPINNING_MIN: u32 = 8 * (CAUGHT_UP_PAUSES + POLL_PAUSES);
/// Yields before parking: another reader of the same writer that waits for the core gets it within
/// a microsecond, where a sleep and a wake-up take many.
const YIELDS_BEFORE_PARK: u32 = 2;
/// Parks until the full spin budget is tried again, since the load may have changed.
const PARKS_PER_TRIAL: u32 = 32;
/// Spinning before yielding, in pauses: yielding is cheap, and the next runnable thread may be the
/// one that this one waits for.
const SPINNING_BEFORE_YIELD: u32 = 32 * (CAUGHT_UP_PAUSES + POLL_PAUSES);
/// Sleep of a [`Waiter::wait`], which no other thread can end early.
const PARK_TIME: Duration = Duration::from_micros(200);

/// State of one side's waits: counts empty polls and decides the next step.
///
/// ```
/// use lanecast_base::{WaitStep, WaitStrategy, Waiter};
/// let mut waiter = Waiter::new(WaitStrategy::Park);
/// assert_eq!(waiter.next_step(), WaitStep::Park);
/// ```
#[derive(Clone, Debug)]
pub struct Waiter {
    strategy: WaitStrategy,
    /// Empty polls since the last work.
    empty_polls: u32,
    /// Length of this wait, in pauses; `u32::MAX` once spinning was in vain.
    spun: u32,
    /// Spinning before parking, in pauses: [`SPINNING_MAX`] after a success, half as long after a
    /// failure.
    spin_budget: u32,
    parks: u32,
    /// Pauses after the first empty poll of the next wait.
    throttle: u32,
    /// Yields in this wait.
    yields: u32,
    /// Waits in a row that ended with one message each.
    singles: u32,
    /// Pauses between two polls for single messages.
    single_pauses: u32,
}

impl Waiter {
    /// A waiter that saw work last.
    pub const fn new(strategy: WaitStrategy) -> Self {
        Self {
            strategy,
            empty_polls: 0,
            spun: 0,
            spin_budget: SPINNING_MAX,
            parks: 0,
            throttle: CAUGHT_UP_PAUSES,
            yields: 0,
            singles: 0,
            single_pauses: SINGLE_PAUSES_START,
        }
    }

    /// The wait strategy.
    pub const fn strategy(&self) -> WaitStrategy {
        self.strategy
    }

    /// Ends a wait after `work` (not 0) messages were found.
    #[inline(always)]
    pub fn found(&mut self, work: usize) {
        if self.empty_polls != 0 {
            self.adapt(work);
            self.end_wait();
        }
    }

    /// Doubles the throttle while one empty poll yields many messages, and otherwise resets it;
    /// while single messages come, fits the pauses between two polls to the speed of the line, or
    /// to a writer that is seldom waited for.
    #[inline]
    fn adapt(&mut self, work: usize) {
        let throttle = self.throttle;
        let is_busy = self.empty_polls == 1 && work >= 2 && work * 4 >= throttle as usize;
        self.throttle =
            if is_busy { (throttle * 2).min(THROTTLE_PAUSES_MAX) } else { CAUGHT_UP_PAUSES };
        if self.is_single() {
            self.fit_single_pauses();
        }
        self.singles = if work == 1 { self.singles.saturating_add(1) } else { 0 };
    }

    // Not inlined: the way of busy streams through `found` stays short.
    #[inline(never)]
    fn fit_single_pauses(&mut self) {
        let (polls, pauses) = (self.empty_polls, self.single_pauses);
        self.single_pauses = if !SLOW_LINE.contains(&self.spun) {
            pauses.saturating_sub(1).max(1)
        } else if polls > SLOW_LINE_POLLS {
            (pauses + 1).min(SINGLE_PAUSES_MAX)
        } else {
            pauses
        };
    }

    /// Whether messages come one by one.
    #[inline]
    const fn is_single(&self) -> bool {
        self.singles >= SINGLE_MESSAGES
    }

    /// Whether the next message is awaited as a single one: the writer is not in the middle of
    /// many, and a look at the lines that it will write does not hold it up.
    #[inline]
    pub const fn expects_single(&self) -> bool {
        self.is_single() || self.empty_polls > IDLE_POLLS
    }

    /// Ends a wait, with the throttle unchanged.
    #[inline]
    pub fn reset(&mut self) {
        if self.empty_polls != 0 {
            self.end_wait();
        }
    }

    #[inline]
    fn end_wait(&mut self) {
        if self.spun <= self.spin_budget {
            self.spin_budget = SPINNING_MAX; // Spinning was enough.
        } else if self.spun < u32::MAX {
            self.shrink_spin_budget(); // Yielding helped: the other side needed this very core.
        }
        self.empty_polls = 0;
        self.spun = 0;
        self.yields = 0;
    }

    /// Halves the spin budget of the next wait, except for one trial of the full budget in 32.
    fn shrink_spin_budget(&mut self) {
        self.parks = self.parks.wrapping_add(1);
        let trial = self.parks.is_multiple_of(PARKS_PER_TRIAL);
        let half = (self.spin_budget / 2).max(SPINNING_MIN);
        self.spin_budget = if trial { SPINNING_MAX } else { half };
        // Marks this wait as counted, whatever the next budget is.
        self.spun = u32::MAX;
    }

    /// Next step after an empty poll.
    #[inline]
    pub fn next_step(&mut self) -> WaitStep {
        self.empty_polls = self.empty_polls.saturating_add(1);
        let is_busy_spin = matches!(self.strategy, WaitStrategy::BusySpin);
        let pauses = match self.empty_polls {
            _ if self.is_single() => self.single_pauses,
            idle if idle > IDLE_POLLS && is_busy_spin => self.single_pauses,
            1 => self.throttle,
            _ => CAUGHT_UP_PAUSES,
        };
        self.spun = self.spun.saturating_add(pauses + POLL_PAUSES);
        match self.strategy {
            WaitStrategy::BusySpin => WaitStep::Spin(pauses),
            WaitStrategy::SpinYield if self.spun <= SPINNING_BEFORE_YIELD => WaitStep::Spin(pauses),
            WaitStrategy::SpinYield => WaitStep::Yield,
            WaitStrategy::SpinPark if self.spun <= self.spin_budget => WaitStep::Spin(pauses),
            WaitStrategy::SpinPark if self.yields < YIELDS_BEFORE_PARK => {
                self.yields += 1;
                WaitStep::Yield
            }
            WaitStrategy::SpinPark => {
                if self.spun < u32::MAX {
                    self.shrink_spin_budget();
                }
                WaitStep::Park
            }
            WaitStrategy::Park => WaitStep::Park,
        }
    }

    /// Waits once, in loops over several subscribers; `work` is the number of messages found by the
    /// last round.
    ///
    /// No other thread can wake this waiter, so [`WaitStep::Park`] sleeps for 200 µs.
    /// A loop over one subscriber waits on the subscriber itself, which publishers wake.
    pub fn wait(&mut self, work: usize) {
        if work > 0 {
            self.found(work);
            return;
        }
        match self.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => std::thread::sleep(PARK_TIME),
        }
    }
}

/// Pauses `pauses` times.
#[inline(always)]
pub fn spin(pauses: u32) {
    for _ in 0..pauses {
        spin_hint();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Length of the spinning before `end`, in pauses.
    fn spinning(waiter: &mut Waiter, end: WaitStep) -> u32 {
        let steps = core::iter::from_fn(|| Some(waiter.next_step()));
        let steps = steps.take_while(|step| *step != end);
        let length =
            |step| if let WaitStep::Spin(pauses) = step { pauses + POLL_PAUSES } else { 0 };
        steps.map(length).sum()
    }

    #[test]
    fn spinning_in_vain_is_given_up_and_tried_again() {
        let mut waiter = Waiter::new(WaitStrategy::SpinPark);
        assert_eq!(spinning(&mut waiter, WaitStep::Park), SPINNING_MAX);
        let poll = CAUGHT_UP_PAUSES + POLL_PAUSES;
        for polls in [200, 100, 50, 25, 12, 8, 8] {
            waiter.reset();
            assert_eq!(spinning(&mut waiter, WaitStep::Park), polls * poll);
        }
        let longest = (0..PARKS_PER_TRIAL).map(|_| {
            waiter.reset();
            spinning(&mut waiter, WaitStep::Park)
        });
        assert_eq!(longest.max(), Some(SPINNING_MAX), "tried again");
        waiter.reset();
        assert_eq!(waiter.next_step(), WaitStep::Spin(CAUGHT_UP_PAUSES));
        waiter.reset();
        let spun = spinning(&mut waiter, WaitStep::Park);
        assert_eq!(spun, SPINNING_MAX, "one success brings spinning back");
    }

    #[test]
    fn spinning_for_single_messages_is_as_long_with_fewer_pauses() {
        let mut waiter = Waiter::new(WaitStrategy::SpinPark);
        for _ in 0..SINGLE_MESSAGES + SINGLE_PAUSES_MAX {
            waiter.next_step();
            waiter.found(1);
        }
        assert_eq!(waiter.next_step(), WaitStep::Spin(1));
        waiter.reset();
        let spun = spinning(&mut waiter, WaitStep::Park);
        assert_eq!(spun, SPINNING_MAX);
    }

    #[test]
    fn work_found_after_a_yield_shrinks_the_spin_budget() {
        let mut waiter = Waiter::new(WaitStrategy::SpinPark);
        for expected in [SPINNING_MAX, SPINNING_MAX / 2, SPINNING_MAX / 4] {
            assert_eq!(spinning(&mut waiter, WaitStep::Yield), expected);
            waiter.found(1);
        }
    }

    /// Pauses of a spinning waiter before each of so many polls.
    fn pauses(waiter: &mut Waiter, polls: u32) -> Vec<u32> {
        let step = |_| match waiter.next_step() {
            WaitStep::Spin(pauses) => pauses,
            other => panic!("{other:?}"),
        };
        (0..polls).map(step).collect()
    }

    /// A waiter that knows its writer as one of single messages.
    fn single() -> Waiter {
        let mut waiter = Waiter::new(WaitStrategy::BusySpin);
        for _ in 0..SINGLE_MESSAGES {
            pauses(&mut waiter, IDLE_POLLS + 1);
            waiter.found(1);
        }
        waiter
    }

    #[test]
    fn single_messages_are_polled_for_with_few_pauses() {
        let mut waiter = Waiter::new(WaitStrategy::BusySpin);
        let first = pauses(&mut waiter, IDLE_POLLS + 2);
        assert_eq!(first, [4, 4, 4, 4, 4, 4, 4, 4, 2, 2], "idle after some polls");
        let mut waiter = single();
        assert_eq!(pauses(&mut waiter, 100), [2; 100], "from the first poll on");
        waiter.found(1);
        assert_eq!(pauses(&mut waiter, 2), [1, 1], "the next message may come into a pause");
        waiter.found(2);
        assert_eq!(pauses(&mut waiter, 1), [CAUGHT_UP_PAUSES], "the writer may be busy");
    }

    /// Waits of a length, each until a single message: the pauses between their polls.
    fn waits(waiter: &mut Waiter, length: u32) -> [u32; 5] {
        core::array::from_fn(|_| {
            let pauses_now = waiter.single_pauses;
            let polls = length.div_ceil(pauses_now + POLL_PAUSES);
            assert_eq!(pauses(waiter, polls), vec![pauses_now; polls as usize]);
            waiter.found(1);
            pauses_now
        })
    }

    #[test]
    fn pauses_between_polls_for_single_messages_follow_the_line() {
        let mut waiter = single();
        assert_eq!(waits(&mut waiter, 20), [2, 3, 4, 4, 4], "a slow one");
        assert_eq!(waits(&mut waiter, 7), [4, 3, 2, 1, 1], "a fast one");
        assert_eq!(waits(&mut waiter, 25), [1, 2, 3, 4, 4]);
        assert_eq!(waits(&mut waiter, 45), [4, 3, 2, 1, 1], "a writer with nothing to send");
    }

    #[test]
    fn a_waiter_that_keeps_catching_up_pauses_longer_and_longer() {
        let mut waiter = Waiter::new(WaitStrategy::BusySpin);
        for expected in [4, 8, 16, 32, 64, 128, 256, 256] {
            assert_eq!(pauses(&mut waiter, 1), [expected]);
            waiter.found(1000);
        }
        assert_eq!(pauses(&mut waiter, 1), [THROTTLE_PAUSES_MAX]);
        waiter.found(2);
        assert_eq!(pauses(&mut waiter, 1), [CAUGHT_UP_PAUSES], "few messages end it");
        waiter.found(1);
        // After an idle time, many messages at once: the writer is busy again.
        pauses(&mut waiter, 50);
        waiter.found(1);
        pauses(&mut waiter, 50);
        waiter.found(2);
        assert_eq!(pauses(&mut waiter, 1), [CAUGHT_UP_PAUSES]);
    }

    #[test]
    fn a_wait_that_parks_goes_on_parking() {
        let mut waiter = Waiter::new(WaitStrategy::SpinPark);
        spinning(&mut waiter, WaitStep::Park);
        assert!((0..1000).all(|_| waiter.next_step() == WaitStep::Park));
    }

    #[test]
    fn each_strategy_keeps_its_name_and_code() {
        for strategy in WaitStrategy::ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
            assert_eq!(WaitStrategy::from_code(strategy.code()), Some(strategy));
        }
        assert!("sleepy".parse::<WaitStrategy>().unwrap_err().to_string().contains("spin-park"));
        assert_eq!(WaitStrategy::from_code(0), None);
    }
}
