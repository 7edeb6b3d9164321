//! Wait strategy of an end between two attempts that found nothing.

use std::hint;
use std::thread;

use rivals_kit::Wait;

use crate::load::Load;

/// Attempts after which an end that yields gives its CPU away.
const SPINS_BEFORE_YIELD: u32 = 32;

/// Pauses, or yields where threads share CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    wait: Wait,
    empty: u32,
}

impl Idle {
    /// The waiting that fits a load.
    pub fn new(load: &Load) -> Self {
        Self { wait: load.wait(), empty: 0 }
    }

    /// No waiting here: the library does it inside the attempt.
    pub fn inside() -> Self {
        Self { wait: Wait::Block, empty: 0 }
    }

    /// There was nothing.
    #[inline(always)]
    pub fn again(&mut self) {
        self.empty += 1;
        match self.wait {
            Wait::Yield if self.empty > SPINS_BEFORE_YIELD => thread::yield_now(),
            Wait::Spin | Wait::Yield => hint::spin_loop(),
            Wait::Block => (),
        }
    }

    /// There was something.
    #[inline(always)]
    pub fn busy(&mut self) {
        self.empty = 0;
    }

    /// Tries until something is done.
    #[inline(always)]
    pub fn until<T>(&mut self, mut attempt: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(done) = attempt() {
                self.busy();
                return done;
            }
            self.again();
        }
    }
}
