//! Limits of slow consumers: the age of messages, and the memory of all send queues together. Slow
//! consumers never block a publisher.

use crate::clients::Clients;
use crate::config::server_config::ServerConfig;
use crate::ids::ClientId;
use crate::queue::slow_consumer::SlowConsumerReason;
use crate::time::Nanos;
use std::cmp::Reverse;

/// Bytes spilled to disk in a turn, so that no client waits for the disk for long.
const SPILL_BYTES: usize = 4 << 20;
/// Checks of a message's age within the longest age.
const AGE_CHECKS: Nanos = 16;
/// The shortest time between two checks: they visit all clients.
const CHECK_INTERVAL_NS: Nanos = 1_000_000;
/// The longest time that a client may take nothing of a query's result, if it cannot go offline.
const STALL_MAX_NS: Nanos = 10_000_000_000;

/// Enforces the limits, once per turn.
#[derive(Debug)]
pub(crate) struct SlowConsumers {
    /// When the next check is due, if any.
    due: Option<Nanos>,
    /// No check happens before.
    not_before: Nanos,
    queued_bytes_max: usize,
    /// The longest age of a message for an offline client; `None` if clients do not go offline.
    age_max: Option<Nanos>,
}

impl SlowConsumers {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let age_max = config.offline.as_ref();
        let age_max = age_max.map(|it| u64::try_from(it.age_max.as_nanos()).unwrap_or(Nanos::MAX));
        Self { due: None, not_before: 0, queued_bytes_max: config.queued_bytes_max, age_max }
    }

    /// When [`enforce`](Self::enforce) is due.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.due
    }

    /// The longest time that the rest of a query's result waits for its client.
    pub(crate) fn stall_max(&self) -> Nanos {
        self.age_max.unwrap_or(STALL_MAX_NS)
    }

    /// Disconnects clients with messages over the longest age, and frees memory if all send queues
    /// together have too much. Called between rounds, when queues share no frames.
    pub(crate) fn enforce(&mut self, clients: &mut Clients, now: Nanos) {
        // Walking all clients costs time: once per millisecond is enough within the limits.
        if now < self.not_before {
            self.due = Some(self.due.map_or(self.not_before, |due| due.min(self.not_before)));
            return;
        }
        let age_max = self.age_max.unwrap_or(Nanos::MAX);
        let (mut queued, mut overdue) = (0, Vec::new());
        (self.due, self.not_before) = (None, now.saturating_add(CHECK_INTERVAL_NS));
        for (id, client) in clients.iter_mut().filter(|(_, client)| !client.is_leaving) {
            // Only memory counts here; bytes on disk have a limit per client.
            queued += client.queue.memory_len();
            if let Some(offline) = client.queue.offline() {
                // Offline clients must be checked even when no socket wakes the server.
                self.due = Some(now.saturating_add(age_max / AGE_CHECKS));
                if offline.age(now, age_max / AGE_CHECKS) > age_max {
                    overdue.push(id);
                }
            }
        }
        for id in overdue {
            // After the loop, which borrows the clients.
            clients.drop_slow_consumer(id, SlowConsumerReason::MessageAge);
        }
        if queued > self.queued_bytes_max {
            self.free_memory(clients, now, queued);
        }
    }

    /// Frees memory of clients with the longest queues, until the total is within the limit or
    /// enough was spilled for a turn; then the next turn continues at once.
    fn free_memory(&mut self, clients: &mut Clients, now: Nanos, mut queued: usize) {
        let total = self.queued_bytes_max;
        let mut budget = SPILL_BYTES;
        // The longest queues first: few clients cause most of the backlog, the others notice
        // nothing.
        for (bytes, id) in longest_queues(clients) {
            let count = budget.min(queued - total).min(bytes);
            let freed = if self.age_max.is_some() {
                // Spilled rather than dropped: the client loses no message, and catches up from
                // disk.
                clients.spill(id, count);
                count
            } else {
                clients.drop_slow_consumer(id, SlowConsumerReason::TotalMemory);
                bytes
            };
            (queued, budget) = (queued - freed, budget - count);
            if queued <= total {
                return;
            }
            if budget == 0 {
                // Writing to disk blocks the server's thread: the rest waits until sockets had
                // their turn.
                (self.due, self.not_before) = (Some(now), now);
                return;
            }
        }
    }
}

/// Bytes in memory and clients, longest queue first.
fn longest_queues(clients: &mut Clients) -> Vec<(usize, ClientId)> {
    let staying = clients.iter_mut().filter(|(_, client)| !client.is_leaving);
    let queues = staying.map(|(id, client)| (client.queue.memory_len(), id));
    let mut queues: Vec<_> = queues.filter(|(bytes, _)| *bytes > 0).collect();
    queues.sort_unstable_by_key(|(bytes, _)| Reverse(*bytes));
    queues
}
