//! Fan-out: encodes a message once per distinct subscription name, and appends the frame to the
//! send queue of each subscriber.
//!
//! This is the hot path of publishing. It neither allocates nor hashes: cached frames are found by
//! the subscription name's index, clients by their identifier.

use crate::clients::Clients;
use crate::delivery::field_selection::FieldSelection;
use crate::delivery::subscriptions::{SubscriptionIds, Subscriptions};
use crate::ids::{ClientId, NameId};
use crate::queue::send_queue::{FrameArena, FrameRange};
use crate::time::Nanos;
use lanecast_filter::message_type::Format;
use lanecast_sow::Record;
use lanecast_wire::command::{Command, Field, HeaderWriter, LENGTH_BYTES, begin_frame, end_frame};

/// Once so many bytes are encoded, the round ends before more is read: the frames are still in the
/// cache when the system copies them.
const ROUND_BYTES: usize = 64 << 10;

/// A message to deliver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutboundMessage<'a> {
    pub(crate) command: Command,
    pub(crate) topic: &'a str,
    pub(crate) format: Format,
    pub(crate) reason: Option<&'a str>,
    pub(crate) payload: Payload<'a>,
}

/// The content of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    /// A message of a transient topic.
    Message(&'a [u8]),
    /// A whole record.
    Record(&'a Record),
    /// The changed fields of a record.
    Delta { record: &'a Record, base: &'a Record, changes: usize, bytes: &'a [u8] },
}

impl<'a> Payload<'a> {
    fn bytes(self) -> &'a [u8] {
        match self {
            Self::Message(bytes) | Self::Delta { bytes, .. } => bytes,
            Self::Record(record) => record.bytes(),
        }
    }

    fn record(self) -> Option<&'a Record> {
        match self {
            Self::Message(_) => None,
            Self::Record(record) | Self::Delta { record, .. } => Some(record),
        }
    }
}

impl<'a> OutboundMessage<'a> {
    /// The payload for subscriptions with these fields; `None` if they skip the message.
    fn select<'b>(&self, fields: &FieldSelection, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]>
    where
        'a: 'b,
    {
        let Payload::Delta { record, base, changes, bytes } = self.payload else {
            return Some(fields.select(self.format, self.payload.bytes(), buffer));
        };
        // Without `no_empties` even a delta without changes is delivered, so it counts as one.
        let changes = match fields.skip_empty {
            true => fields.count_changes(self.format, base, record).unwrap_or(changes),
            false => changes.max(1),
        };
        (changes > 0).then(|| fields.select(self.format, bytes, buffer))
    }
}

/// Encoder of outbound messages, with the frames of the current round.
#[derive(Debug, Default)]
pub(crate) struct Fanout {
    /// The current message's header before and after the list of subscription names.
    header_start: Vec<u8>,
    header_end: Vec<u8>,
    /// Clients with several subscriptions that match the current message.
    multiple: Vec<ClientId>,
    /// Frames that several clients may receive.
    arena: FrameArena,
    /// Cached frames, by subscription name.
    cached: Vec<CachedFrame>,
    /// Number of the current message.
    message: u64,
    /// Messages written into send queues so far.
    delivered: u64,
}

/// The frame of the current message for one subscription name.
#[derive(Clone, Copy, Debug, Default)]
struct CachedFrame {
    /// The round, counted from 1, in which the name owns `buffer`.
    round: u64,
    buffer: usize,
    /// The message that `range` encodes.
    message: u64,
    range: FrameRange,
}

impl Fanout {
    /// Frames of this round.
    pub(crate) fn arena(&self) -> &FrameArena {
        &self.arena
    }

    /// Whether so much is encoded that the round should end.
    pub(crate) fn is_round_full(&self) -> bool {
        self.arena.len() >= ROUND_BYTES
    }

    /// Starts the next round. No send queue may share frames any more.
    pub(crate) fn end_round(&mut self) {
        self.arena.end_round();
    }

    /// Messages written into send queues so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Encodes the header of a message, except for the subscription names.
    fn begin(
        &mut self,
        command: Command,
        topic: &str,
        length: usize,
        more: impl FnOnce(HeaderWriter<'_>) -> HeaderWriter<'_>,
    ) {
        self.message += 1;
        self.header_start.clear();
        let header =
            HeaderWriter::command(&mut self.header_start, command).text(Field::Topic, topic);
        // Drops the closing quote: the names go between the two parts.
        let _open = more(header).text(Field::SubscriptionIds, "");
        self.header_start.pop();
        self.header_end.clear();
        self.header_end.push(b'"');
        HeaderWriter::record(&mut self.header_end).number(Field::Length, length as u64).end();
        // The second part continues the header: a comma instead of its opening brace.
        self.header_end[1] = b',';
    }

    /// Appends the message to the send queue of each client with one of the subscriptions, once.
    fn deliver(
        &mut self,
        payload: &[u8],
        ids: &SubscriptionIds,
        subscriptions: &Subscriptions,
        clients: &mut Clients,
    ) {
        // The list has no order by client, so names of one client collect in its record.
        for id in ids.iter() {
            let Some(route) = subscriptions.route(id) else { continue };
            // A client that is about to be disconnected receives nothing more.
            let Some(client) = clients.active(route.client) else { continue };
            if client.subscriptions.len() == 1 {
                // The usual case: the frame names one subscription, and clients share it.
                client.queue.share(self.frame(route.name, subscriptions, payload));
                clients.mark_dirty(route.client);
                self.delivered += 1;
            } else if client.matched_names.is_empty() {
                client.matched_names.extend_from_slice(subscriptions.name(route.name));
                self.multiple.push(route.client);
            } else {
                client.matched_names.push(b',');
                client.matched_names.extend_from_slice(subscriptions.name(route.name));
            }
        }
        self.delivered += self.multiple.len() as u64;
        // Clients with several subscriptions receive one frame that lists those that matched.
        while let Some(id) = self.multiple.pop() {
            let Some(client) = clients.active(id) else { continue };
            let mut names = std::mem::take(&mut client.matched_names);
            let parts = [&self.header_start, &names, &self.header_end, payload];
            write_frame(client.queue.buffer(), parts);
            names.clear();
            // Puts the allocation back for the next message.
            client.matched_names = names;
            clients.mark_dirty(id);
        }
    }

    /// The frame of the current message for a subscription name, encoded on first use.
    #[inline]
    fn frame(&mut self, name: NameId, subscriptions: &Subscriptions, payload: &[u8]) -> FrameRange {
        if self.cached.len() <= name.index() {
            self.cached.resize(name.index() + 1, CachedFrame::default());
        }
        let cached = &mut self.cached[name.index()];
        if cached.message != self.message {
            let round = self.arena.round() + 1;
            // The buffers of earlier rounds are reused by other names.
            if cached.round != round {
                (cached.round, cached.buffer) = (round, self.arena.new_buffer());
            }
            let parts = [&self.header_start, subscriptions.name(name), &self.header_end, payload];
            cached.range = self.arena.write(cached.buffer, |out| write_frame(out, parts));
            // Valid for this message alone: the next one has another payload.
            cached.message = self.message;
        }
        cached.range
    }
}

/// Appends a frame.
#[inline]
fn write_frame(out: &mut Vec<u8>, parts: [&[u8]; 4]) {
    // One reservation for all four parts, since this runs for each distinct name.
    out.reserve(LENGTH_BYTES + parts.iter().map(|part| part.len()).sum::<usize>());
    let start = begin_frame(out);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    end_frame(out, start);
}

/// Borrows the parts of the engine that deliver messages, for the duration of a command.
#[derive(Debug)]
pub(crate) struct MessageSender<'a> {
    pub(crate) subscriptions: &'a Subscriptions,
    pub(crate) clients: &'a mut Clients,
    pub(crate) fanout: &'a mut Fanout,
    /// The publisher's correlation id, passed on to subscribers.
    pub(crate) correlation_id: Option<&'a str>,
    /// Time of the turn: for intervals between messages.
    pub(crate) now: Nanos,
}

impl MessageSender<'_> {
    /// Appends a frame for one client.
    pub(crate) fn write(&mut self, id: ClientId, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(client) = self.clients.active(id) else { return };
        let out = client.queue.buffer();
        let start = begin_frame(out);
        write(out);
        end_frame(out, start);
        self.clients.mark_dirty(id);
    }

    /// Delivers a message to subscriptions. May change the list.
    #[inline]
    pub(crate) fn send(&mut self, message: &OutboundMessage<'_>, ids: &mut SubscriptionIds) {
        // One counter decides for all subscriptions, without a look at any of them.
        if self.subscriptions.has_selective() {
            self.send_selected(message, ids);
        }
        if !ids.is_empty() {
            self.deliver(message, message.payload.bytes(), ids);
        }
    }

    /// Delivers to subscriptions that select fields, grouped by equal selections, and removes them
    /// from the list.
    fn send_selected(&mut self, message: &OutboundMessage<'_>, ids: &mut SubscriptionIds) {
        let subscriptions = self.subscriptions;
        let fields = |id| subscriptions.get(id).map(|one| &one.fields);
        let is_selective = |id| fields(id).is_some_and(|fields| !fields.is_everything());
        // Selections are rare: the others keep the fast path, which ignores fields.
        let mut rest = ids.extract(is_selective);
        while let Some(selection) = rest.last().and_then(fields) {
            let alike = rest.extract(|id| fields(id) == Some(selection));
            let mut buffer = Vec::new();
            if let Some(payload) = message.select(selection, &mut buffer) {
                self.deliver(message, payload, &alike);
            }
        }
    }

    fn deliver(&mut self, message: &OutboundMessage<'_>, payload: &[u8], ids: &SubscriptionIds) {
        // AMPS passes a correlation id on with publications alone, not with out-of-focus messages.
        let correlation_id = self.correlation_id.filter(|_| message.command == Command::Publish);
        self.fanout.begin(message.command, message.topic, payload.len(), |mut header| {
            if let Some(record) = message.payload.record() {
                header = header.number(Field::SowKey, record.key().0);
            }
            let header = header.text_if(Field::Reason, message.reason);
            header.text_if(Field::CorrelationId, correlation_id)
        });
        self.fanout.deliver(payload, ids, self.subscriptions, self.clients);
    }
}
