//! Requests for messages that wait for a later turn of the store.

use std::collections::{BTreeMap, VecDeque};

/// Most requests that wait, of one client and of all; others are dropped, and repeated by their
/// clients.
const CLIENT_MAX: usize = 1_024;
const ALL_MAX: usize = 8_192;

/// Frames of requests, which the clients take turns with.
#[derive(Debug, Default)]
pub(crate) struct FetchQueue {
    by_client: BTreeMap<u64, VecDeque<Vec<u8>>>,
    /// Clients with requests; the next one is first.
    turns: VecDeque<u64>,
    count: usize,
}

impl FetchQueue {
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a request, unless it waits already; returns whether there was room.
    pub(crate) fn push(&mut self, client: u64, frame: &[u8]) -> bool {
        if self.count >= ALL_MAX {
            return false;
        }
        let waiting = self.by_client.entry(client).or_default();
        if waiting.iter().any(|it| it == frame) {
            return true;
        }
        if waiting.len() >= CLIENT_MAX {
            return false;
        }
        if waiting.is_empty() {
            self.turns.push_back(client);
        }
        waiting.push_back(frame.to_vec());
        self.count += 1;
        true
    }

    /// The next request; its client is last then.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        let client = self.turns.pop_front()?;
        let waiting = self.by_client.get_mut(&client)?;
        let frame = waiting.pop_front()?;
        self.count -= 1;
        if waiting.is_empty() {
            self.by_client.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns_and_what_waits_is_bounded() {
        let mut queue = FetchQueue::default();
        let push = |queue: &mut FetchQueue, client: u64, number: usize| {
            let pushed = queue.push(client, format!("{client} {number}").as_bytes());
            (pushed, queue.count)
        };
        for number in 0..CLIENT_MAX {
            assert_eq!(push(&mut queue, 1, number), (true, number + 1));
        }
        assert_eq!(push(&mut queue, 1, CLIENT_MAX), (false, CLIENT_MAX), "its share");
        assert_eq!(push(&mut queue, 1, 5), (true, CLIENT_MAX), "it waits already");
        push(&mut queue, 2, 0);
        push(&mut queue, 3, 0);
        push(&mut queue, 2, 1);
        let next: Vec<_> = (0..6).filter_map(|_| queue.pop()).collect();
        assert_eq!(next, ["1 0", "2 0", "3 0", "1 1", "2 1", "1 2"].map(|it| it.as_bytes()));
        while queue.pop().is_some() {}
        assert!(queue.is_empty() && queue.by_client.is_empty() && queue.turns.is_empty());
        for client in 0..ALL_MAX as u64 {
            assert!(push(&mut queue, client, 0).0);
        }
        assert_eq!(push(&mut queue, u64::MAX, 0), (false, ALL_MAX));
    }
}
