//! From a message to the send queues of its subscribers.

pub(crate) mod fanout;
pub(crate) mod frame_arena;
pub(crate) mod matcher;
pub(crate) mod message;
pub(crate) mod patterns;
pub(crate) mod subscriptions;
