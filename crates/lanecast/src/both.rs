//! Sessions over shared memory and the network at once.

pub(crate) mod publisher;
pub(crate) mod subscriber;
mod wakeup;
