//! The integration tests of this crate, in one program.

mod bytes;
mod crowded;
mod handlers;
mod rings_model;
