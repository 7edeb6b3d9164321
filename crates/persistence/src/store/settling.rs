//! Replies on what of a stream has become durable.

use super::stream::Stream;
use crate::outlet::StoreOutlet;
use lanecast_wire::store::{DeregisterOutcome, StoreFrame};

/// Replies to all who wait for records of the stream up to `persisted`.
pub(super) fn tell_durable(
    stream: &mut Stream,
    persisted: u64,
    incarnation: u64,
    out: &mut dyn StoreOutlet,
) {
    let has_advanced = stream.durable.advance(persisted);
    let is_current = stream.changed_at <= persisted;
    let (topic, source) = (&stream.topic, stream.source);
    stream.receivers.advance(persisted, |client, receiver, consumption| {
        let frame = StoreFrame::Acknowledged { receiver, consumption };
        out.reply(client, topic, source, &frame);
    });
    stream.departures.advance(persisted, |client, receiver, life| {
        let frame = StoreFrame::Detached { receiver, life };
        out.reply(client, topic, source, &frame);
    });
    let consumed = stream.reported();
    let is_news = has_advanced || consumed != stream.told_consumed;
    if is_news && is_current && stream.takes(stream.log) {
        stream.told_consumed = consumed;
        let next = stream.durable.next();
        let frame = StoreFrame::Stable { ballot: stream.log, next, consumed };
        out.reply(stream.log.session, &stream.topic, stream.source, &frame);
    }
    if is_current && let Some(client) = stream.owes_state_to.take() {
        let frame = StoreFrame::State(stream.state(incarnation));
        out.reply(client, &stream.topic, stream.source, &frame);
    }
    if stream.ended_at <= persisted
        && let Some((client, token)) = stream.owes_deregistered_to.take()
    {
        let frame = StoreFrame::Deregistered { token, outcome: DeregisterOutcome::Done };
        out.reply(client, &stream.topic, stream.source, &frame);
    }
}
