//! The integration tests of this crate, in one program.

mod certificates;
mod identity;
mod sessions;
