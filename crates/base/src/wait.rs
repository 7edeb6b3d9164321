//! What to do when there is nothing to do.

use crate::sync::spin_hint;
use core::fmt;
use core::str::FromStr;
use std::time::Duration;

/// How a publisher without room, or a subscriber without messages, spends its time.
///
/// | strategy | fastest answer | burns a CPU | when |
/// |---|---|---|---|
/// | `BusySpin` | one cache-line transfer | always | a core of one's own |
/// | `SpinYield` | the same, if the core is free | always | few others on the core |
/// | `SpinPark` | the same while busy; a wake-up after a pause | only while busy | the default |
/// | `Park` | a kernel wake-up each time | never | many readers, rare messages |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Look again at once, with a few pauses so that the other side can finish its cache line.
    BusySpin,
    /// Spin a little, then give the core to whoever is runnable.
    SpinYield,
    /// Spin at most as long as a wake-up costs, less where spinning has not helped lately, give
    /// the core away for a moment, then sleep until woken.
    #[default]
    SpinPark,
    /// Sleep until woken.
    Park,
}

impl WaitStrategy {
    /// Every strategy, in the order of their names on the command line.
    pub const ALL: [Self; 4] = [Self::BusySpin, Self::SpinYield, Self::SpinPark, Self::Park];

    /// The name that configuration files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BusySpin => "spin",
            Self::SpinYield => "yield",
            Self::SpinPark => "spin-park",
            Self::Park => "park",
        }
    }

    /// The code under which it is shown to other processes.
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

/// A word that names no [`WaitStrategy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseWaitError(String);

impl fmt::Display for ParseWaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no waiting strategy: write spin, yield, spin-park or park", self.0)
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

/// The next thing to do while waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Pause so many times, then look again.
    Spin(u32),
    /// Give the core away once, then look again.
    Yield,
    /// Sleep until woken or until a bounded time has passed.
    Park,
}

/// Pauses after an empty look. The writer needs its cache line undisturbed to fill it; polling
/// in the tightest loop takes the line away in the middle of the work.
const CAUGHT_UP_PAUSES: u32 = 4;
/// Pauses after the first empty look of a reader that keeps catching up with a writer which
/// publishes some 20 million messages a second and more: three microseconds at most, in which the
/// writer gets far enough ahead for both to work undisturbed. Without it a reader that is just a
/// little faster than the writer meets it at every line, at a fraction of the rate.
const HOLD_OFF_PAUSES_MAX: u32 = 256;
/// The most empty looks before parking: about 20 µs, the price of a wake-up, so that waiting is
/// never more than twice as dear as the best choice made in hindsight.
const SPINS_MAX: u32 = 400;
/// The fewest: where spinning never helps, because whoever is waited for needs this very core.
const SPINS_MIN: u32 = 8;
/// Before parking the core is given away so often: if another reader of the same writer waits for
/// it, that takes a microsecond where a sleep and a wake-up take many.
const YIELDS_BEFORE_PARK: u32 = 2;
/// Every so many parks, the most are tried again: times may have changed.
const PARKS_PER_TRIAL: u32 = 32;
/// Empty looks before yielding: yielding is cheap, and whoever else is runnable may be the one
/// that is waited for.
const SPINS_BEFORE_YIELD: u32 = 32;
/// The longest sleep of a waiter that nobody can wake.
const NAP: Duration = Duration::from_micros(200);

/// One side's waiting: counts empty looks and says what to do next.
///
/// ```
/// use lanecast_base::{Step, WaitStrategy, Waiter};
/// let mut waiter = Waiter::new(WaitStrategy::Park);
/// assert_eq!(waiter.next_step(), Step::Park);
/// ```
#[derive(Clone, Debug)]
pub struct Waiter {
    strategy: WaitStrategy,
    /// Empty looks since there was work.
    looks: u32,
    /// Empty looks before parking: all of them after a success, half as many after a failure.
    budget: u32,
    parks: u32,
    /// Pauses after the next first empty look.
    hold_off: u32,
    /// How often this wait has given the core away.
    yields: u32,
}

impl Waiter {
    /// A waiter that has just seen work.
    pub const fn new(strategy: WaitStrategy) -> Self {
        Self {
            strategy,
            looks: 0,
            budget: SPINS_MAX,
            parks: 0,
            hold_off: CAUGHT_UP_PAUSES,
            yields: 0,
        }
    }

    /// The strategy it follows.
    pub const fn strategy(&self) -> WaitStrategy {
        self.strategy
    }

    /// There was `work` (not 0): the next wait starts anew.
    #[inline(always)]
    pub fn found(&mut self, work: usize) {
        if self.looks != 0 {
            self.adapt(work);
            self.end_wait();
        }
    }

    /// Holds off longer while messages come by the dozen, not at all otherwise.
    #[inline]
    fn adapt(&mut self, work: usize) {
        let busy = self.looks == 1 && work >= 2 && work * 4 >= self.hold_off as usize;
        self.hold_off =
            if busy { (self.hold_off * 2).min(HOLD_OFF_PAUSES_MAX) } else { CAUGHT_UP_PAUSES };
    }

    /// Starts a new wait.
    #[inline]
    pub fn reset(&mut self) {
        if self.looks != 0 {
            self.end_wait();
        }
    }

    #[inline]
    fn end_wait(&mut self) {
        if self.looks <= self.budget {
            self.budget = SPINS_MAX; // Spinning was enough.
        } else if self.looks < u32::MAX {
            self.spun_in_vain(); // Whoever was waited for needed this very core.
        }
        self.looks = 0;
        self.yields = 0;
    }

    /// Spinning was not enough: spin less next time, but not for ever.
    fn spun_in_vain(&mut self) {
        self.parks = self.parks.wrapping_add(1);
        let trial = self.parks.is_multiple_of(PARKS_PER_TRIAL);
        self.budget = if trial { SPINS_MAX } else { (self.budget / 2).max(SPINS_MIN) };
        // This wait stays in vain, whatever the next budget is.
        self.looks = u32::MAX;
    }

    /// There was none: what to do before the next look.
    #[inline]
    pub fn next_step(&mut self) -> Step {
        self.looks = self.looks.saturating_add(1);
        let pauses = if self.looks == 1 { self.hold_off } else { CAUGHT_UP_PAUSES };
        match self.strategy {
            WaitStrategy::BusySpin => Step::Spin(pauses),
            WaitStrategy::SpinYield if self.looks <= SPINS_BEFORE_YIELD => Step::Spin(pauses),
            WaitStrategy::SpinYield => Step::Yield,
            WaitStrategy::SpinPark if self.looks <= self.budget => Step::Spin(pauses),
            WaitStrategy::SpinPark if self.yields < YIELDS_BEFORE_PARK => {
                self.yields += 1;
                Step::Yield
            }
            WaitStrategy::SpinPark => {
                if self.looks < u32::MAX {
                    self.spun_in_vain();
                }
                Step::Park
            }
            WaitStrategy::Park => Step::Park,
        }
    }

    /// Waits once, for loops over several subscribers: `work` is what the last round did.
    ///
    /// Nobody can wake this waiter, so [`Step::Park`] sleeps for 200 µs.
    /// A loop over one subscriber waits on the subscriber itself, which is woken.
    pub fn wait(&mut self, work: usize) {
        if work > 0 {
            self.found(work);
            return;
        }
        match self.next_step() {
            Step::Spin(pauses) => spin(pauses),
            Step::Yield => std::thread::yield_now(),
            Step::Park => std::thread::sleep(NAP),
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

    /// How often it spins before it parks.
    fn spins(waiter: &mut Waiter) -> u32 {
        let steps = core::iter::from_fn(|| Some(waiter.next_step()));
        let steps = steps.take_while(|step| *step != Step::Park);
        steps.filter(|step| matches!(step, Step::Spin(_))).count() as u32
    }

    #[test]
    fn spinning_in_vain_is_given_up_and_tried_again() {
        let mut waiter = Waiter::new(WaitStrategy::SpinPark);
        assert_eq!(spins(&mut waiter), SPINS_MAX);
        for expected in [200, 100, 50, 25, 12, 8, 8] {
            waiter.reset();
            assert_eq!(spins(&mut waiter), expected);
        }
        let longest = (0..PARKS_PER_TRIAL).map(|_| {
            waiter.reset();
            spins(&mut waiter)
        });
        assert_eq!(longest.max(), Some(SPINS_MAX), "tried again");
        waiter.reset();
        assert_eq!(waiter.next_step(), Step::Spin(CAUGHT_UP_PAUSES));
        waiter.reset();
        assert_eq!(spins(&mut waiter), SPINS_MAX, "one success brings spinning back");
    }

    #[test]
    fn who_comes_when_the_core_is_given_away_needs_this_core() {
        let mut waiter = Waiter::new(WaitStrategy::SpinPark);
        for expected in [SPINS_MAX, SPINS_MAX / 2, SPINS_MAX / 4] {
            let spins = core::iter::from_fn(|| Some(waiter.next_step()));
            let spins = spins.take_while(|step| *step != Step::Yield).count() as u32;
            assert_eq!(spins, expected);
            waiter.found(1);
        }
    }

    #[test]
    fn a_wait_that_parks_goes_on_parking() {
        let mut waiter = Waiter::new(WaitStrategy::SpinPark);
        spins(&mut waiter);
        assert!((0..1000).all(|_| waiter.next_step() == Step::Park));
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
