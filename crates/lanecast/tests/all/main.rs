//! The integration tests of this crate, in one program.

mod presets;
mod ways;
