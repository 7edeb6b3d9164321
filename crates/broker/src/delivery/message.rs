//! The way of messages into outboxes: to each the parts that it wants.

use crate::client::ClientId;
use crate::delivery::fanout::{Fanout, SendQueues};
use crate::delivery::subscriptions::{FieldSelection, Subscriptions};
use lanecast_filter::difference::difference;
use lanecast_filter::message_type::Format;
use lanecast_filter::path::Path;
use lanecast_sow::Record;
use lanecast_wire::command::{Command, Field, begin_frame, end_frame};

/// Where events go: into the outboxes of those whom they are for.
#[derive(Debug)]
pub(crate) struct Post<'a> {
    pub(crate) subscriptions: &'a Subscriptions,
    pub(crate) mail: SendQueues<'a>,
    pub(crate) fanout: &'a mut Fanout,
    /// What the publisher of the message at hand wants handed on unread.
    pub(crate) correlation: Option<&'a str>,
    pub(crate) delivered: u64,
}

/// Something to be told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutboundMessage<'a> {
    pub(crate) command: Command,
    pub(crate) topic: &'a str,
    pub(crate) format: Format,
    pub(crate) reason: Option<&'a str>,
    pub(crate) subject: Payload<'a>,
}

/// What it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    /// A message of which nothing is kept.
    Message(&'a [u8]),
    Record(&'a Record),
    /// What of a record has changed.
    Delta {
        record: &'a Record,
        base: &'a Record,
        changes: usize,
        bytes: &'a [u8],
    },
}

impl Post<'_> {
    /// Writes a frame for one client.
    pub(crate) fn write(&mut self, to: ClientId, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(client) = self.mail.client(to) else { return };
        let out = client.outbox.bytes();
        let start = begin_frame(out);
        write(out);
        end_frame(out, start);
        self.mail.note(to);
    }

    /// Tells the subscriptions `numbers`; uses the list up.
    #[inline]
    pub(crate) fn send(&mut self, letter: &OutboundMessage<'_>, numbers: &mut Vec<u32>) {
        if !self.subscriptions.all_are_plain() {
            self.send_to_particular(letter, numbers);
        }
        if !numbers.is_empty() {
            self.deliver(letter, letter.subject.bytes(), numbers);
        }
    }

    /// Tells those who do not want all, and takes them off the list.
    fn send_to_particular(&mut self, letter: &OutboundMessage<'_>, numbers: &mut Vec<u32>) {
        let subscriptions = self.subscriptions;
        let taste = |number: &u32| subscriptions.get(*number).map(|one| &one.taste);
        let is_plain = |number: &u32| taste(number).is_none_or(FieldSelection::is_plain);
        let mut rest: Vec<u32> = numbers.extract_if(.., |number| !is_plain(number)).collect();
        while let Some(like) = rest.last().and_then(taste) {
            let is_like = |number: &mut u32| taste(number).is_some_and(|one| one.is_like(like));
            let alike: Vec<u32> = rest.extract_if(.., is_like).collect();
            let mut parts = Vec::new();
            if let Some(body) = letter.for_taste(like, &mut parts) {
                self.deliver(letter, body, &alike);
            }
        }
    }

    fn deliver(&mut self, letter: &OutboundMessage<'_>, body: &[u8], numbers: &[u32]) {
        let correlation = self.correlation.filter(|_| letter.command == Command::Publish);
        self.fanout.begin(letter.command, letter.topic, body.len(), |mut header| {
            if let Some(record) = letter.subject.record() {
                header = header.number(Field::SowKey, record.key().0);
            }
            let header = header.text_if(Field::Reason, letter.reason);
            header.text_if(Field::CorrelationId, correlation)
        });
        let Self { subscriptions, mail, fanout, delivered, .. } = self;
        *delivered += fanout.deliver(body, numbers, subscriptions, mail);
    }
}

impl<'a> OutboundMessage<'a> {
    /// What is told to those of a taste; nothing if they do not want to know.
    fn for_taste<'b>(&self, taste: &FieldSelection, parts: &'b mut Vec<u8>) -> Option<&'b [u8]>
    where
        'a: 'b,
    {
        let Payload::Delta { record, base, changes, bytes } = self.subject else {
            return Some(taste.of(self.format, self.subject.bytes(), parts));
        };
        let changes = match taste.no_empties {
            true => taste.changes(self.format, base, record).unwrap_or(changes),
            false => changes.max(1),
        };
        (changes > 0).then(|| taste.of(self.format, bytes, parts))
    }
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

impl FieldSelection {
    /// The parts of a message that are wanted; all of it if it cannot be taken apart.
    pub(crate) fn of<'a>(
        &self,
        format: Format,
        body: &'a [u8],
        parts: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let Some(selection) = &self.selection else { return body };
        parts.clear();
        match selection.select(format, body, parts) {
            Ok(()) => parts,
            Err(_) => body,
        }
    }

    /// How many of the fields that are wanted have changed, if that can be told.
    fn changes(&self, format: Format, base: &Record, record: &Record) -> Option<usize> {
        const NO_KEYS: &[Path] = &[];
        let selection = self.selection.as_ref()?;
        let (mut old, mut new, mut delta) = (Vec::new(), Vec::new(), Vec::new());
        selection.select(format, base.bytes(), &mut old).ok()?;
        selection.select(format, record.bytes(), &mut new).ok()?;
        difference(format, &old, &new, NO_KEYS, &mut delta).ok()
    }

    fn is_like(&self, other: &Self) -> bool {
        self.no_empties == other.no_empties && self.selection == other.selection
    }
}
