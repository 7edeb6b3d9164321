//! The ring-buffer table of the AMPS slides: messages a second between threads, through rings of
//! different shapes.
//!
//! The slides measure on an Intel Core i7-3770K, beside the LMAX Disruptor, without message and
//! batch sizes. Here messages have 8 bytes by default and are published one by one and in batches.

mod exchange;
mod layout;
mod reference;
mod row;
mod run;
mod series;
mod shared;
mod single;

pub use exchange::{Case, SIZES};
pub use layout::{Layout, LayoutError, Seats};
pub use reference::Reference;
pub use row::Row;
pub use run::{RingsResult, Settings, run};
pub use series::{BATCHES, Series, Turn};

#[cfg(test)]
mod tests;
