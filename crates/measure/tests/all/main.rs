//! The integration tests of this crate, in one program.

mod experiment;
mod no_run;
mod simulated;
