//! The integration tests of this crate, in one program.

mod failover_seeds;
mod groups;
mod messages;
mod presets;
mod room;
mod tokio_loop;
mod topics;
mod ways;
