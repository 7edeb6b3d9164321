//! The integration tests of this crate, in one program.

mod group_oracle;
mod latency;
mod seeds;
