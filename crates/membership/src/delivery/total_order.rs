//! Total order: the sequencer's lists say which sender's message has the next turn.
//!
//! A list is made of runs: so many messages of the member with that rank. A turn is granted to a
//! message with its first fragment; nothing else gets one before its last fragment is delivered.
//! Lists travel in the sequencer's own stream, so that a change of the view agrees on them like on
//! any message.

use super::acks::Acks;
use super::lane::{Complete, Lane, Stop};
use lanecast_wire::group::OrderRun;
use std::collections::VecDeque;

/// Messages of a list, at most: its sender does not wait for more.
pub(crate) const LONGEST_LIST: usize = 64;
/// Runs that may wait, at most; a list beyond them is received later.
const MOST_RUNS: usize = 1 << 18;

/// Turns that are granted, and, at the sequencer, messages that wait for a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct TotalOrder {
    /// Ranks and counts of turns, the next one first.
    turns: VecDeque<OrderRun>,
    /// The front turn's message is under way.
    under_way: bool,
    /// Messages without a place, in the order of their arrival at the sequencer.
    unordered: Vec<OrderRun>,
    unordered_messages: usize,
}

impl TotalOrder {
    /// Begins a view.
    pub(crate) fn reset(&mut self) {
        self.turns.clear();
        self.unordered.clear();
        (self.under_way, self.unordered_messages) = (false, 0);
    }

    /// Whether a received list can be taken now.
    pub(crate) fn has_room(&self) -> bool {
        self.turns.len() < MOST_RUNS
    }

    /// Takes a list.
    pub(crate) fn on_list(&mut self, runs: impl Iterator<Item = OrderRun>) {
        self.turns.extend(runs.filter(|run| run.count > 0));
    }

    /// At the sequencer: a message arrived.
    pub(crate) fn on_message(&mut self, rank: usize) {
        self.unordered_messages += 1;
        match self.unordered.last_mut() {
            Some(run) if usize::from(run.rank) == rank && run.count < u16::MAX => run.count += 1,
            _ => self.unordered.push(OrderRun { rank: rank as u16, count: 1 }),
        }
    }

    /// Messages without a place.
    pub(crate) const fn unordered_messages(&self) -> usize {
        self.unordered_messages
    }

    /// The messages without a place, for the next list.
    pub(crate) fn unordered(&self) -> &[OrderRun] {
        &self.unordered
    }

    /// A list of the first `runs` is on its way.
    pub(crate) fn on_list_sent(&mut self, runs: usize) {
        let sent = self.unordered.drain(..runs);
        let messages: usize = sent.map(|run| usize::from(run.count)).sum();
        self.unordered_messages -= messages;
    }

    /// Whether any turn waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Delivers by turns as far as the messages are here.
    pub(crate) fn deliver(
        &mut self,
        lanes: &mut [Lane],
        longest: usize,
        acks: &Acks,
        mut take: impl FnMut(usize, Complete<'_>),
    ) {
        while let Some(turn) = self.turns.front_mut() {
            let rank = usize::from(turn.rank);
            let Some(lane) = lanes.get_mut(rank) else {
                // No such member: the list is not a sequencer's. It has no other effect.
                self.turns.pop_front();
                continue;
            };
            let before = lane.delivered;
            let stop = lane.deliver(!self.under_way, longest, |message| take(rank, message));
            match stop {
                Stop::Granted => {
                    self.under_way = false;
                    turn.count -= 1;
                    if turn.count == 0 {
                        self.turns.pop_front();
                    }
                    // Messages behind it that need no turn.
                    lane.deliver(false, longest, |message| take(rank, message));
                    lane.free(acks.others(rank));
                }
                _ => {
                    self.under_way |= lane.is_granted();
                    debug_assert!(stop == Stop::End, "{before}: a turn was not taken");
                    return;
                }
            }
        }
    }

    /// At the end of a view: turns first, except those of messages that no member has, then the
    /// rest by rank.
    pub(crate) fn finish(
        &mut self,
        lanes: &mut [Lane],
        longest: usize,
        acks: &Acks,
        mut take: impl FnMut(usize, Complete<'_>),
    ) {
        loop {
            self.deliver(lanes, longest, acks, &mut take);
            let Some(run) = self.turns.pop_front() else { break };
            if let Some(lane) = lanes.get_mut(usize::from(run.rank)) {
                lane.abort_message();
            }
            self.under_way = false;
        }
        for (rank, lane) in lanes.iter_mut().enumerate() {
            while lane.deliver(true, longest, |message| take(rank, message)) == Stop::Granted {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_wire::group::DataFlags;

    #[test]
    fn the_end_of_a_view_follows_known_lists_past_a_message_that_is_lost() {
        let mut acks = Acks::default();
        acks.reset(0, &[0; 3]);
        let mut lanes = vec![Lane::new(), Lane::new(), Lane::new()];
        let whole = DataFlags(DataFlags::FIRST | DataFlags::LAST | DataFlags::AGREED);
        for lane in &mut lanes {
            lane.reset(0, 1 << 10);
        }
        for rank in [0, 2] {
            assert!(lanes[rank].keep(0, (0, whole, b"message")));
            lanes[rank].accept(0, |_, _| true);
        }
        let mut order = TotalOrder::default();
        // The message of rank 1 died with it: the lists place it before all others.
        order.on_list([1, 2, 0].into_iter().map(|rank| OrderRun { rank, count: 1 }));
        let mut delivered = Vec::new();
        order.deliver(&mut lanes, 100, &acks, |rank, _| delivered.push(rank));
        assert_eq!(delivered, []);
        order.finish(&mut lanes, 100, &acks, |rank, _| delivered.push(rank));
        assert_eq!(delivered, [2, 0], "by the lists, not by rank");
    }
}
