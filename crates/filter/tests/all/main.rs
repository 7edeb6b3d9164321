//! The integration tests of this crate, in one program.

mod allocations;
mod deltas;
mod json;
mod language;
mod page;
mod xml;
