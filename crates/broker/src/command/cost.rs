//! What the commands of a client may cost in a turn, so that others get theirs.

use crate::client::ClientId;
use crate::engine::Engine;

/// What a client's commands may cost in a turn, in patterns that a topic's name is tried with: a
/// microsecond each or so.
const COST_MAX: usize = 4_096;
/// So many steps of compiling a pattern cost as much as one.
const STEPS: usize = 4;

impl Engine {
    /// Counts the patterns that a client's message has had tried.
    #[inline]
    pub(crate) fn note_tried(&mut self, id: ClientId) {
        let tried = self.patterns.take_tried();
        if tried > 0 {
            self.tire(id, tried);
        }
    }

    /// Counts the steps of compiling patterns for a client.
    pub(crate) fn note_compiled(&mut self, id: ClientId, steps: usize) {
        if steps > 0 {
            self.tire(id, steps.div_ceil(STEPS));
        }
    }

    /// Counts what a client's command has cost: beyond a measure, the next ones wait for the next
    /// turn.
    #[cold]
    fn tire(&mut self, id: ClientId, cost: usize) {
        let Some(client) = self.client(id) else { return };
        client.cost += cost;
        client.is_tired |= client.cost > COST_MAX;
        if client.cost == cost {
            self.tired.push(id);
        }
    }

    /// A new turn; whether somebody was waiting for it.
    pub(crate) fn rest(&mut self) -> bool {
        let mut has_waited = false;
        for id in std::mem::take(&mut self.tired) {
            let Some(client) = self.client(id) else { continue };
            client.cost = 0;
            has_waited |= std::mem::take(&mut client.is_tired);
        }
        has_waited
    }
}
