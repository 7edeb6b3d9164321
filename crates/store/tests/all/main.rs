//! Stores, publishers and receivers over real transports and disks.

mod killed;
mod recovery;
mod some_stores;
mod stores;
mod subscribers;
