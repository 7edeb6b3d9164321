//! Contexts that find each other without multicast.

pub(crate) mod client;
mod daemon;
mod encrypted;
mod healing;
