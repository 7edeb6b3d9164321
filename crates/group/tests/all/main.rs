//! Groups over every transport, in one process.

mod crowd;
mod descriptor;
mod eight;
mod names;
mod own_messages;
mod processes;
mod transports;
mod versions;
