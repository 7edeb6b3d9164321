//! Values that are watched from their making to their end, thread by thread.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

/// The producer of a value, and its number there; `None` for one that was made by a factory, or
/// that was left where another has been taken out.
pub(crate) type Label = Option<(usize, u64)>;

thread_local! {
    static LIVE: RefCell<HashSet<u64>> = RefCell::default();
    static MADE: Cell<u64> = const { Cell::new(0) };
    static DROPPED_TWICE: Cell<u64> = const { Cell::new(0) };
}

/// A value that knows whether it lives; on the heap, so that Miri sees damage as well.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) label: Box<Label>,
    number: u64,
}

impl Value {
    pub(crate) fn new(label: Label) -> Self {
        let number = MADE.replace(MADE.get() + 1);
        LIVE.with_borrow_mut(|live| live.insert(number));
        Self { label: Box::new(label), number }
    }
}

impl Default for Value {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // Counted, because a panic might meet another one on its way.
        if !LIVE.with_borrow_mut(|live| live.remove(&self.number)) {
            DROPPED_TWICE.set(DROPPED_TWICE.get() + 1);
        }
    }
}

/// Every value that this thread made has been dropped once.
pub(crate) fn assert_all_dropped() {
    assert_eq!(DROPPED_TWICE.get(), 0, "dropped twice");
    LIVE.with_borrow(|live| assert!(live.is_empty(), "never dropped: {live:?}"));
}

/// Number of live values.
pub(crate) fn live() -> usize {
    LIVE.with_borrow(HashSet::len)
}
