//! One thread of an exchange: its role and its result.

use crate::interference::Interference;
use crate::names::named;
use serde::Serialize;

named! {
    /// The role of a thread in an exchange.
    pub enum Role: "role" {
        /// Sends; in a ping-pong, begins.
        Producer = "producer",
        /// Receives; in a ping-pong, answers.
        Consumer = "consumer",
    }
}

/// One thread of an exchange.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadResult {
    /// Role of the thread.
    pub role: Role,
    /// CPU it was pinned to.
    pub cpu: usize,
    /// The NUMA node of that CPU, where the system tells.
    pub node: Option<usize>,
    /// The CPU that it ran on at the end.
    pub ran_on: usize,
    /// Interference with the thread.
    pub interference: Interference,
}
