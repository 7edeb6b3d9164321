//! The integration tests of this crate, in one program.

mod group_oracle;
mod group_scopes;
mod groups;
mod latency;
mod parity;
mod patterns;
mod programs;
mod scale;
mod scale_topics;
mod seeds;
mod store_scopes;
mod stores;
