//! A day, step by step.

use crate::act::Act;
use crate::book::Book;
use crate::fix;
use crate::numbers::Numbers;
use crate::symbols::symbols;

/// Half past nine, in microseconds since midnight.
const OPENING_US: u64 = 34_200_000_000;
/// For how long there is trade: six and a half hours.
const TRADE_US: u64 = 23_400_000_000;
const SEED: u64 = 20_080_418;

/// A day of so many messages.
#[derive(Clone, Debug)]
pub struct Day {
    symbols: Vec<Box<str>>,
    book: Book,
    numbers: Numbers,
    count: u64,
    done: u64,
    message: Vec<u8>,
}

/// What happens, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Counted from 0 in the day. Tag 34 is one more.
    pub number: u64,
    /// Since midnight. Tag 52.
    pub time_us: u64,
    /// What happens.
    pub act: Act,
}

impl Day {
    /// A day of `messages` messages, always the same one.
    pub fn new(messages: u64) -> Self {
        Self::with_seed(SEED, messages)
    }

    /// Another day for each seed.
    pub fn with_seed(seed: u64, messages: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let symbols = symbols(&mut numbers);
        let book = Book::new(Numbers::new(numbers.below(u64::MAX)));
        Self { symbols, book, numbers, count: messages, done: 0, message: Vec::new() }
    }

    /// What happens next; none when the day is over.
    pub fn advance(&mut self) -> Option<Step> {
        if self.done == self.count {
            return None;
        }
        // Somewhere within the time that this step has for itself.
        let share = u128::from(TRADE_US);
        let at = |number: u64| (share * u128::from(number) / u128::from(self.count)) as u64;
        let (from, until) = (at(self.done), at(self.done + 1));
        let time_us = OPENING_US + from + self.numbers.below((until - from).max(1));
        let step = Step { number: self.done, time_us, act: self.book.act() };
        self.done += 1;
        fix::write(&mut self.message, &step, &self.symbols);
        Some(step)
    }

    /// The message about the last step.
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

    /// How many symbols there are.
    pub const fn symbols(&self) -> usize {
        self.symbols.len()
    }
}
