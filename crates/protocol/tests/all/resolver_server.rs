//! Resolvers and daemons that talk to each other, and frames made by hand.

mod answers;
mod cluster;
mod finding;
mod hostile;
mod seeds;
