//! Groups over every transport, in one process.

mod crowd;
mod names;
mod processes;
mod transports;
