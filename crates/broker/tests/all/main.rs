//! The integration tests of this crate, in one program.

mod desk;
mod doors;
mod durable;
mod exchanges;
mod kept;
mod kill;
#[path = "desk/papers.rs"]
mod papers;
mod parts;
mod secret;
mod sequences;
mod served;
mod shared;
mod slow;
mod strangers;
mod views;
mod websocket;
