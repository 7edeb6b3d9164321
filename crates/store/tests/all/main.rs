//! Stores, publishers and receivers over real transports and disks.

mod stores;
