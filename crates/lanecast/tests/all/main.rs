//! The integration tests of this crate, in one program.

mod groups;
mod messages;
mod presets;
mod tokio_loop;
mod ways;
