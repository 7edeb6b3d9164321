//! Groups between hosts: members keep together, and part, as the network and their processes do.
#![forbid(unsafe_code)]

mod deaths;
mod links;
mod loss;
mod scene;
