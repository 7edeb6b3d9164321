//! Clock and message of a market day, step by step.

use crate::book::Book;
use crate::event::Step;
use crate::fix;
use crate::rng::Rng;
use crate::symbols::symbols;

/// Opening at 09:30, in microseconds since midnight.
const OPENING_US: u64 = 34_200_000_000;
/// Trading time: six and a half hours.
const TRADE_US: u64 = 23_400_000_000;
const SEED: u64 = 20_080_418;

/// A reproducible day with a fixed number of messages.
#[derive(Clone, Debug)]
pub struct Day {
    symbols: Vec<Box<str>>,
    book: Book,
    rng: Rng,
    count: u64,
    done: u64,
    message: Vec<u8>,
}

impl Day {
    /// The default day with `messages` messages.
    pub fn new(messages: u64) -> Self {
        Self::with_seed(SEED, messages)
    }

    /// A different day for each seed.
    pub fn with_seed(seed: u64, messages: u64) -> Self {
        let mut rng = Rng::new(seed);
        let symbols = symbols(&mut rng);
        let book = Book::new(Rng::new(rng.below(u64::MAX)));
        Self { symbols, book, rng, count: messages, done: 0, message: Vec::new() }
    }

    /// The next step; `None` at the end of the day.
    pub fn advance(&mut self) -> Option<Step> {
        if self.done == self.count {
            return None;
        }
        // Each step takes a random time within its share of the day, so times never decrease.
        let share = u128::from(TRADE_US);
        let at = |number: u64| (share * u128::from(number) / u128::from(self.count)) as u64;
        let (from, until) = (at(self.done), at(self.done + 1));
        let time_us = OPENING_US + from + self.rng.below((until - from).max(1));
        let step = Step { number: self.done, time_us, event: self.book.next_event() };
        self.done += 1;
        fix::write(&mut self.message, &step, &self.symbols);
        Some(step)
    }

    /// FIX message of the last step.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Tag 55 of a symbol's number: 0 is traded most.
    ///
    /// # Panics
    ///
    /// If there are not as many symbols.
    pub fn symbol(&self, number: u16) -> &str {
        &self.symbols[usize::from(number)]
    }

    /// Number of symbols.
    pub const fn symbols(&self) -> usize {
        self.symbols.len()
    }
}
