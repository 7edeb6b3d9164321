//! The integration tests of this crate, in one program.

mod processes;
mod shm;
mod thread;
