//! The integration tests of this crate, in one program.

mod access;
mod batches;
mod hostile;
mod local_join;
mod model;
mod patterns;
mod pipes;
mod refusals;
mod rejoin;
mod topic_count;
