//! The answer to a receiver's question for the streams of its topic.

use super::stream::Stream;
use crate::log::StoreLog;
use crate::outlet::StoreOutlet;
use lanecast_wire::store::{StoreAddress, StoreFrame, StoreOffer};

/// A receiver's question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offering {
    pub(super) receiver: u64,
    pub(super) token: u64,
    /// Times from which on and up to which messages are wanted, in nanoseconds since 1970; 0 for
    /// none.
    pub(super) times: (u64, u64),
    /// Time at which the receiver is heard of.
    pub(super) heard: u64,
}

impl Offering {
    /// Offers the streams with these indexes. One whose state cannot be told is named all the same:
    /// the receiver waits for it, and for no other.
    pub(super) fn answer(
        self,
        address: StoreAddress<'_>,
        (streams, indexes): (&mut [Stream], Vec<usize>),
        incarnation: u64,
        log: &impl StoreLog,
        out: &mut dyn StoreOutlet,
    ) {
        let Self { receiver, token, heard, .. } = self;
        for index in &indexes {
            let stream = &mut streams[*index];
            stream.receivers.hear(receiver, heard);
            let frame = match self.range(stream, log) {
                Some(range) => StoreFrame::Offer(self.offer(stream, range, incarnation)),
                None => StoreFrame::Unsettled { token, runs: stream.runs.clone() },
            };
            out.reply(address.client, address.topic, stream.source, &frame);
        }
        let count = u32::try_from(indexes.len()).unwrap_or(u32::MAX);
        let frame = StoreFrame::Streams { incarnation, token, count };
        out.reply(address.client, address.topic, 0, &frame);
    }

    /// The range of a stream that the times name; `None` if its state cannot be told now. Only what
    /// is durable may be told, and the receiver asks again.
    fn range(&self, stream: &Stream, log: &impl StoreLog) -> Option<(u64, u64)> {
        let (since_unix_ns, until_unix_ns) = self.times;
        let is_durable = stream.changed_at <= log.persisted();
        let since = is_durable.then(|| stream.since(since_unix_ns, log))??;
        Some((since, stream.until(until_unix_ns, log)?))
    }

    /// A stream, with the wanted range of its sequences.
    fn offer(self, stream: &Stream, (since, until): (u64, u64), incarnation: u64) -> StoreOffer {
        let Self { receiver, token, .. } = self;
        StoreOffer {
            token,
            is_live: stream.is_live,
            // Messages that came before its end may not be on disk yet, or wait for room.
            has_left: stream.has_left && stream.durable.is_settled() && !stream.waits_for_room(),
            consumption: stream.receivers.consumption(receiver),
            is_expired: stream.receivers.is_expired(receiver),
            life: life(stream, receiver),
            number: stream.first_number,
            since,
            until,
            state: stream.state(incarnation),
        }
    }
}

/// The receiver's life; if it is not registered, one that its next life has to be after: reports of
/// lives that have ended are ignored.
fn life(stream: &Stream, receiver: u64) -> u64 {
    let life = stream.receivers.life(receiver);
    let is_known = stream.receivers.is_known(receiver);
    if is_known { life } else { life.max(stream.departures.life(receiver)) }
}
