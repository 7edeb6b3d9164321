//! The transports between hosts: what the contract says holds whatever the network does.
#![forbid(unsafe_code)]

mod addresses;
mod bypass;
mod bypass_fallbacks;
mod bypass_shares;
mod crowd;
mod deaths;
mod hostile;
mod late;
mod links;
mod loss;
mod play;
mod resume;
