//! The answer to a receiver's question for the streams of its topic.

use super::stream::Stream;
use crate::log::StoreLog;
use crate::outlet::StoreOutlet;
use lanecast_wire::store::{StoreAddress, StoreFrame};

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
    /// Offers the streams with these indexes.
    pub(super) fn answer(
        self,
        address: StoreAddress<'_>,
        (streams, indexes): (&mut [Stream], Vec<usize>),
        incarnation: u64,
        log: &impl StoreLog,
        out: &mut dyn StoreOutlet,
    ) {
        let Self { receiver, token, times: (since_unix_ns, until_unix_ns), heard } = self;
        let persisted = log.persisted();
        // Only what is durable may be told: the receiver asks again.
        if indexes.iter().any(|index| streams[*index].changed_at > persisted) {
            return;
        }
        let range = |index: &usize| {
            let stream = &streams[*index];
            Some((stream.since(since_unix_ns, log)?, stream.until(until_unix_ns, log)?))
        };
        let Some(ranges) = indexes.iter().map(range).collect::<Option<Vec<_>>>() else { return };
        for (index, (since, until)) in indexes.iter().zip(ranges) {
            let stream = &mut streams[*index];
            stream.receivers.hear(receiver, heard);
            let offer = stream.offer((receiver, token), (since, until), incarnation);
            let frame = StoreFrame::Offer(offer);
            out.reply(address.client, address.topic, stream.source, &frame);
        }
        let count = u32::try_from(indexes.len()).unwrap_or(u32::MAX);
        let frame = StoreFrame::Streams { incarnation, token, count };
        out.reply(address.client, address.topic, 0, &frame);
    }
}
