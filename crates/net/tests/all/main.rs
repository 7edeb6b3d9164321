//! The integration tests of this crate, in one program.

mod carriers;
mod peers;
mod rate;
mod resolver;
mod telling;
