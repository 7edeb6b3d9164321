//! Writes the events of a SOW topic's feed as frames: query results, updates, deltas, and records
//! that left a subscription's filter.

use crate::command::error::CommandError;
use crate::delivery::fanout::{MessageSender, OutboundMessage, Payload};
use crate::delivery::subscriptions::SubscriptionIds;
use crate::ids::FeedId;
use crate::queue::slow_consumer::SlowConsumerReason;
use crate::topic::feed_subscriptions::FeedSubscriptions;
use lanecast_filter::message_type::Format;
use lanecast_sow::{Event, OutOfFocusReason, QueryStats, Record};
use lanecast_wire::command::{Ack, Acks, Command, Field, HeaderWriter};

/// Borrows what is needed to write a topic's events.
#[derive(Debug)]
pub(crate) struct SowEventWriter<'a, 'b> {
    pub(crate) topic: &'a str,
    pub(crate) format: Format,
    pub(crate) ids: &'a mut FeedSubscriptions,
    pub(crate) sender: &'a mut MessageSender<'b>,
}

impl SowEventWriter<'_, '_> {
    /// Writes an event for the subscriptions and queries with these feed ids.
    pub(crate) fn write(&mut self, feed_ids: &[u32], event: Event<'_>) {
        let each = feed_ids.iter().copied().map(FeedId);
        match event {
            // Written when the query advances first: after the command's acknowledgement.
            Event::Begin => {}
            Event::Records(records) => each.for_each(|id| self.write_records(id, records)),
            Event::End(answer) => each.for_each(|id| self.write_end(id, answer)),
            Event::Update { record, .. } => {
                self.send(feed_ids, Command::Publish, None, Payload::Record(record));
            }
            Event::Delta { record, base, changes, bytes } => {
                let payload = Payload::Delta { record, base, changes, bytes };
                self.send(feed_ids, Command::Publish, None, payload);
            }
            Event::OutOfFocus { record, reason, .. } => {
                let reason = match reason {
                    OutOfFocusReason::Match => "match",
                    OutOfFocusReason::Deleted => "deleted",
                    OutOfFocusReason::Expired => "expired",
                };
                self.send(feed_ids, Command::Oof, Some(reason), Payload::Record(record));
            }
            Event::SortMemoryExceeded(limit) => each.for_each(|id| self.fail_sorting(id, limit)),
            Event::Overrun => each.for_each(|id| self.fail_overrun(id)),
        }
    }

    fn send(
        &mut self,
        feed_ids: &[u32],
        command: Command,
        reason: Option<&str>,
        payload: Payload<'_>,
    ) {
        let ids = &self.ids;
        let subscriptions = feed_ids.iter().filter_map(|id| ids.subscription(FeedId(*id)));
        // The feed knows subscribers by its own ids.
        let mut subscriptions: SubscriptionIds = subscriptions.collect();
        let format = self.format;
        let message = OutboundMessage { command, topic: self.topic, format, reason, payload };
        self.sender.send(&message, &mut subscriptions);
    }

    /// Writes a batch of a query's result.
    fn write_records(&mut self, id: FeedId, records: &[Record]) {
        let Some(query) = self.ids.queries.get(&id) else { return };
        self.sender.write(query.client, |out| {
            let header = HeaderWriter::command(out, Command::Sow).text(Field::Topic, self.topic);
            let header = header.text(Field::QueryId, query.reply_to.effective_query_id());
            header.number(Field::BatchSize, records.len() as u64).end();
            // AMPS packs a batch into one frame: each record has its own header and length.
            let mut buffer = Vec::new();
            for record in records {
                let payload = query.fields.select(self.format, record.bytes(), &mut buffer);
                let header = HeaderWriter::record(out).number(Field::SowKey, record.key().0);
                header.number(Field::Length, payload.len() as u64).end();
                out.extend_from_slice(payload);
            }
        });
    }

    /// Writes the end of a query's result, and its last acknowledgements.
    fn write_end(&mut self, id: FeedId, answer: QueryStats) {
        let Some(query) = self.ids.queries.remove(&id) else { return };
        let reply_to = &query.reply_to;
        self.sender.write(query.client, |out| {
            let header = HeaderWriter::command(out, Command::GroupEnd);
            header.text(Field::QueryId, reply_to.effective_query_id()).end();
        });
        // AMPS sends both after group_end, in this order.
        for ack in [Ack::Completed, Ack::Stats] {
            if !reply_to.acks.has(ack) {
                continue;
            }
            self.sender.write(query.client, |out| {
                let header = HeaderWriter::command(out, Command::Ack).acks(Acks::NONE.with(ack));
                let header = header.text(Field::Status, "success");
                let header = header.text_if(Field::CommandId, reply_to.command_id.as_deref());
                let header = header.text(Field::QueryId, reply_to.effective_query_id());
                if ack == Ack::Completed {
                    return header.end();
                }
                let header = header.number(Field::Matches, answer.matches as u64);
                // The true total would reveal records that the filter of the user hides.
                let records = if query.is_restricted { answer.matches } else { answer.records };
                let header = header.number(Field::TopicMatches, records as u64);
                header.number(Field::RecordsReturned, answer.returned as u64).end();
            });
        }
    }

    /// Fails a query whose result takes too much memory to sort.
    fn fail_sorting(&mut self, id: FeedId, limit: usize) {
        let has_subscription = self.ids.remove_feed_id(id);
        let Some(query) = self.ids.queries.remove(&id) else { return };
        let reason = CommandError::Sorting(limit).to_string();
        let reply_to = &query.reply_to;
        self.sender.write(query.client, |out| {
            let header =
                HeaderWriter::command(out, Command::Ack).acks(Acks::NONE.with(Ack::Completed));
            let header = header.text(Field::Status, "failure");
            let header = header.text_if(Field::CommandId, reply_to.command_id.as_deref());
            let header = header.text(Field::QueryId, reply_to.effective_query_id());
            header.text(Field::Reason, &reason).end();
        });
        if has_subscription {
            // Updates without the records they begin with would leave the client with a wrong
            // state.
            let reason = SlowConsumerReason::SortMemory(limit);
            self.sender.clients.drop_slow_consumer(query.client, reason);
        }
    }

    /// Fails a query during which more was published than may wait for its end.
    fn fail_overrun(&mut self, id: FeedId) {
        // An updated subscription with a gap is worse than none: the client must start anew.
        self.ids.remove_feed_id(id);
        if let Some(query) = self.ids.queries.remove(&id) {
            let reason = SlowConsumerReason::QueryOverrun;
            self.sender.clients.drop_slow_consumer(query.client, reason);
        }
    }
}
