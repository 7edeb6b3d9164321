//! Several members wired to each other by hand, over a network that loses, doubles and reorders.

mod agreement;
mod closed_ways;
mod direct;
mod flow;
mod network;
mod state;
mod warm;
