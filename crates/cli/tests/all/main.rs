//! The binary as people and scripts use it: arguments, pipes, signals, exit statuses.
#![forbid(unsafe_code)]

mod causes;
mod config;
mod demo;
mod doctor;
mod domain;
mod durable;
mod failover;
mod fanout;
mod filters;
mod floor;
mod forms;
mod group;
mod group_members;
mod hosts;
mod journal;
mod kept;
mod killed;
mod lat;
#[cfg(feature = "top")]
mod live;
mod perf;
mod persist_report;
mod persisted;
mod pipes;
mod placement;
mod read_only;
mod recorded;
mod resolve;
mod round_trip;
mod run;
mod sealed;
mod secret;
mod served;
mod signals;
mod smx;
mod soak;
mod statuses;
mod store_admin;
mod store_disks;
mod stored;
mod tap;
mod threads;
mod watched;
mod watching;
