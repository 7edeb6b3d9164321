//! Clients that do not keep up: what waits for them is bounded, and nobody waits for them.

use crate::Nanos;
use crate::client::ClientId;
use crate::delivery::fanout::SendQueues;
use crate::engine::Engine;
use crate::queue::send_queue::SendError;
use std::io::{self, IoSlice};

/// What is moved from memory to disk in a round at most, so that nobody waits for it.
const SHED_BYTES: usize = 4 << 20;
/// How often it is looked how long something waits, in the time that it may.
const LOOKS: Nanos = 16;
/// All clients are looked at so often at most: a round is not to cost more the more of them there
/// are.
const LOOK_EVERY: Nanos = 1_000_000;
/// For how long a client that is asked to read on may read nothing of an answer, where it could not
/// go offline either.
const STILL_MAX: Nanos = 10_000_000_000;
/// So many words about clients are remembered until somebody asks.
const WORDS_MAX: usize = 100;

/// Why a client cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SlowConsumerReason {
    #[error("it reads too slowly: {0} bytes wait for it, which is more than may")]
    SendQueue(usize),
    #[error("it reads too slowly: what is the oldest for it has waited for longer than may be")]
    Age,
    #[error("it reads too slowly: too much waits for all clients together, most of it for this")]
    Total,
    #[error("it reads too slowly: too much was published before its query was answered")]
    Answer,
    #[error(
        "the answer that its subscription begins with cannot be sorted: that takes more than {0} \
         bytes"
    )]
    Sorting(usize),
    #[error("it reads too slowly: nothing of its query's answer was taken for long")]
    Still,
    #[error("it reads too slowly, and what waits for it cannot be on disk: {0}")]
    DurableStore(io::Error),
}

/// Whether something is told that happens for the `count`th time: a flood of it fills no log.
pub(crate) fn is_told(count: u64) -> bool {
    count > 0 && 10_u64.pow(count.ilog10()) == count
}

impl SendQueues<'_> {
    /// Whether so much waits for the client that no more is to be made for it that can be made
    /// later. That leaves room for what cannot.
    pub(crate) fn has_enough(&mut self, id: ClientId) -> bool {
        let enough = self.memory_max / 2;
        self.client(id).is_some_and(|client| client.outbox.len() > enough)
    }

    /// The client cannot go on.
    pub(crate) fn give_up(&mut self, id: ClientId, why: SlowConsumerReason) {
        if let Some(client) = self.client(id) {
            client.is_leaving = true;
            self.slow.push((id, why));
        }
    }
}

impl Engine {
    /// Has `write` take what waits for a client; whether nothing is left.
    ///
    /// # Errors
    /// If its connection has ended.
    pub(crate) fn send(
        &mut self,
        id: ClientId,
        write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<bool> {
        let Some(Some(client)) = self.clients.get_mut(id.0 as usize) else { return Ok(true) };
        let enough = self.overflow.memory_max / 2;
        let had_enough = client.outbox.len() > enough;
        match client.outbox.send(&self.fanout.sheets, &mut self.overflow, write) {
            Ok(is_empty) => {
                self.has_room_again |= had_enough && client.outbox.len() <= enough;
                Ok(is_empty)
            }
            Err(SendError::Ended(error)) => Err(error),
            Err(SendError::DurableStore(error)) => {
                self.mail().give_up(id, SlowConsumerReason::DurableStore(error));
                Ok(false)
            }
        }
    }

    /// Sees to it that nothing waits too long, nor too much for all together. Between two rounds:
    /// outboxes share nothing then.
    pub(crate) fn look_after_slow(&mut self, now: Nanos) {
        if now < self.slow_next {
            self.slow_due =
                Some(self.slow_due.map_or(self.slow_next, |due| due.min(self.slow_next)));
            return;
        }
        let age_max = self.age_max();
        let (mut held, mut overdue) = (0, Vec::new());
        (self.slow_due, self.slow_next) = (None, now.saturating_add(LOOK_EVERY));
        for (at, client) in self.clients.iter_mut().enumerate() {
            let Some(client) = client.as_mut().filter(|client| !client.is_leaving) else {
                continue;
            };
            held += client.outbox.held();
            if let Some(backlog) = client.outbox.backlog() {
                self.slow_due = Some(now.saturating_add(age_max / LOOKS));
                if backlog.age(now, age_max / LOOKS) > age_max {
                    overdue.push(ClientId(at as u32));
                }
            }
        }
        for id in overdue {
            self.mail().give_up(id, SlowConsumerReason::Age);
        }
        if held > self.settings.queued_bytes_max {
            self.relieve_most(now, held);
        }
    }

    /// Frees memory of those for whom most waits, until all have no more than they may, or enough
    /// has been done for a round: then there is to be another one at once.
    fn relieve_most(&mut self, now: Nanos, mut held: usize) {
        let total = self.settings.queued_bytes_max;
        let mut room = SHED_BYTES;
        // Nobody's turn comes twice: whoever has something left was the last one.
        for (most, id) in self.holders() {
            let count = room.min(held - total).min(most);
            let relieved = if self.overflow.spooling.is_some() { count } else { most };
            self.relieve(id, relieved);
            (held, room) = (held - relieved, room - count);
            if held <= total {
                return;
            }
            if room == 0 {
                (self.slow_due, self.slow_next) = (Some(now), now);
                return;
            }
        }
    }

    /// For how long the rest of an answer waits for a client that reads nothing.
    pub(crate) fn still_max(&self) -> Nanos {
        if self.overflow.spooling.is_some() { self.age_max() } else { STILL_MAX }
    }

    /// How long something may wait.
    fn age_max(&self) -> Nanos {
        let spooling = self.overflow.spooling.as_ref();
        let age_max = spooling.and_then(|spooling| u64::try_from(spooling.age_max.as_nanos()).ok());
        age_max.unwrap_or(Nanos::MAX)
    }

    /// How much waits in memory for whom, the most first.
    fn holders(&self) -> Vec<(usize, ClientId)> {
        let clients = self.clients.iter().enumerate();
        let staying = clients.filter_map(|(at, client)| {
            let client = client.as_ref().filter(|client| !client.is_leaving)?;
            Some((client.outbox.held(), ClientId(at as u32)))
        });
        let mut holders: Vec<_> = staying.filter(|(held, _)| *held > 0).collect();
        holders.sort_unstable_by_key(|(held, _)| std::cmp::Reverse(*held));
        holders
    }

    /// Frees so many bytes of memory that a client has.
    fn relieve(&mut self, id: ClientId, count: usize) {
        if self.overflow.spooling.is_none() {
            return self.mail().give_up(id, SlowConsumerReason::Total);
        }
        let Some(Some(client)) = self.clients.get_mut(id.0 as usize) else { return };
        if let Err(error) = client.outbox.shed(count, &mut self.overflow) {
            self.mail().give_up(id, SlowConsumerReason::DurableStore(error));
        }
    }

    /// How many clients have fallen behind, so that something waits on disk for them.
    pub(crate) fn behind(&self) -> usize {
        self.clients.iter().flatten().filter(|client| client.outbox.is_behind()).count()
    }

    /// Remembers why a client is disconnected.
    pub(crate) fn note_word(&mut self, id: ClientId, why: &SlowConsumerReason) {
        let name = self.client(id).and_then(|client| client.name.clone()).unwrap_or_default();
        let named = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        self.say(format!("client {}{named} is disconnected: {why}", id.0));
    }

    /// Has the one who runs the server told, unless there is too much that is not told yet.
    pub(crate) fn say(&mut self, word: String) {
        if self.words.len() < WORDS_MAX {
            self.words.push_back(word);
        }
    }
}
