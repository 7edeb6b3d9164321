//! Stores, publishers and receivers over real transports and disks.

mod administration;
mod evictions;
mod fetches;
mod golden;
mod keep_warm;
mod killed;
mod lists;
mod recovery;
mod refusals;
mod retention;
mod some_stores;
mod stores;
mod subscribers;
mod versions;
mod waits;
