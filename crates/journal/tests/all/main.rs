//! The integration tests of this crate, in one program.

mod behaviour;
mod crash;
mod damage;
mod golden;
mod kill;
mod long_batches;
mod model;
mod names;
mod reader;
mod recycled;
mod replay;
mod seek;
