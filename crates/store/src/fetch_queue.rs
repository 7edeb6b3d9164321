//! Requests for messages and for streams that wait for a later turn of the store.

use lanecast_wire::store::{StoreAddress, StoreFrame};
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

    /// Adds a request, unless it waits already; returns whether there was room. A later question of
    /// a receiver for the streams of a topic takes the place of the one before, whose answer would
    /// be of no use.
    pub(crate) fn push(
        &mut self,
        address: StoreAddress<'_>,
        frame: &StoreFrame<'_>,
        bytes: &[u8],
    ) -> bool {
        let question = |frame: &StoreFrame<'_>| match frame {
            StoreFrame::Attach { receiver, .. } => Some(*receiver),
            _ => None,
        };
        let asks_again = |it: &[u8]| {
            question(frame).is_some()
                && StoreFrame::read(it)
                    .is_ok_and(|(of, it)| of == address && question(&it) == question(frame))
        };
        self.push_or_replace(address.client, bytes, asks_again)
    }

    fn push_or_replace(
        &mut self,
        client: u64,
        frame: &[u8],
        asks_again: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let waiting = self.by_client.get_mut(&client);
        if let Some(same) = waiting.and_then(|it| it.iter_mut().find(|it| asks_again(it))) {
            frame.clone_into(same);
            return true;
        }
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
            let frame = format!("{client} {number}");
            let pushed = queue.push_or_replace(client, frame.as_bytes(), |_| false);
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

    #[test]
    fn a_receiver_has_one_question_for_each_topic() {
        let mut queue = FetchQueue::default();
        let mut push = |topic: &str, receiver: u64, token: u64| {
            let address = StoreAddress { client: 1, source: 0, topic };
            let frame = StoreFrame::Attach { receiver, token, since_unix_ns: 0, until_unix_ns: 0 };
            let mut bytes = Vec::new();
            frame.write(address, &mut bytes);
            assert!(queue.push(address, &frame, &bytes));
            queue.count
        };
        let counts = [("a", 7, 1), ("a", 7, 2), ("b", 7, 3), ("a", 8, 4), ("a", 7, 5)]
            .map(|(topic, receiver, token)| push(topic, receiver, token));
        assert_eq!(counts, [1, 1, 2, 3, 3]);
        let first = queue.pop().expect("a request");
        let (_, frame) = StoreFrame::read(&first).expect("a frame");
        assert!(matches!(frame, StoreFrame::Attach { receiver: 7, token: 5, .. }), "{frame:?}");
    }
}
