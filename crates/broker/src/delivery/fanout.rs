//! A message on its way into outboxes.

use crate::client::{Client, ClientId};
use crate::delivery::frame_arena::{FrameArena, FrameRange};
use crate::delivery::subscriptions::Subscriptions;
use crate::queue::slow_consumers::SlowConsumerReason;
use lanecast_wire::command::{Command, Field, HeaderWriter, LENGTH_BYTES};

/// A message, its header but for the subscriptions that it is for.
#[derive(Debug, Default)]
pub(crate) struct Fanout {
    /// The header up to the list of subscriptions, and the rest of it.
    before: Vec<u8>,
    after: Vec<u8>,
    /// Clients with several subscriptions that want the message.
    several: Vec<ClientId>,
    /// Where frames are written that more than one client may get.
    pub(crate) sheets: FrameArena,
    /// By the numbers of subscriptions' names.
    pages: Vec<CachedFrame>,
    /// The number of the message.
    message: u64,
}

/// Where messages for subscriptions of one name stand.
#[derive(Clone, Copy, Debug, Default)]
struct CachedFrame {
    /// In this round they have the sheet, counted from 1.
    round: u64,
    sheet: usize,
    /// The last message, and where its frame is.
    message: u64,
    part: FrameRange,
}

/// Where outboxes are, and what becomes of them.
#[derive(Debug)]
pub(crate) struct SendQueues<'a> {
    pub(crate) clients: &'a mut [Option<Client>],
    /// Those with something to be sent, each once.
    pub(crate) dirty: &'a mut Vec<ClientId>,
    /// Those that read too slowly.
    pub(crate) slow: &'a mut Vec<(ClientId, SlowConsumerReason)>,
    /// The most bytes that may wait for a client, and that should in memory.
    pub(crate) most: usize,
    pub(crate) memory_max: usize,
    /// More waits in memory for some client than should: it is to be sent, or put by.
    pub(crate) is_pressed: &'a mut bool,
}

impl Fanout {
    /// Writes the header of a message of `topic`, with what `more` adds.
    pub(crate) fn begin(
        &mut self,
        command: Command,
        topic: &str,
        length: usize,
        more: impl FnOnce(HeaderWriter<'_>) -> HeaderWriter<'_>,
    ) {
        self.message += 1;
        self.before.clear();
        let header = HeaderWriter::command(&mut self.before, command).text(Field::Topic, topic);
        // Left open: the list goes between the quotes.
        let _open = more(header).text(Field::SubscriptionIds, "");
        self.before.pop();
        self.after.clear();
        self.after.push(b'"');
        HeaderWriter::record(&mut self.after).number(Field::Length, length as u64).end();
        self.after[1] = b',';
    }

    /// Puts the message into the outbox of each client that has one of the subscriptions, once;
    /// returns how many those are.
    pub(crate) fn deliver(
        &mut self,
        body: &[u8],
        numbers: &[u32],
        subscriptions: &Subscriptions,
        mail: &mut SendQueues<'_>,
    ) -> u64 {
        let mut delivered = 0;
        for number in numbers {
            let Some(route) = subscriptions.route(*number) else { continue };
            let id = route.client;
            let Some(client) = mail.client(id) else { continue };
            if client.subscriptions.len() == 1 {
                client.outbox.share(self.written(route.name, subscriptions, body));
                mail.note(id);
                delivered += 1;
            } else if client.gathered.is_empty() {
                client.gathered.extend_from_slice(subscriptions.name(route.name));
                self.several.push(id);
            } else {
                client.gathered.push(b',');
                client.gathered.extend_from_slice(subscriptions.name(route.name));
            }
        }
        delivered += self.several.len() as u64;
        while let Some(id) = self.several.pop() {
            let Some(client) = mail.client(id) else { continue };
            let mut names = std::mem::take(&mut client.gathered);
            write(client.outbox.bytes(), [&self.before, &names, &self.after, body]);
            names.clear();
            client.gathered = names;
            mail.note(id);
        }
        delivered
    }

    /// The frame of the message for subscriptions of that name, written when it is first asked for.
    #[inline]
    fn written(&mut self, name: u32, subscriptions: &Subscriptions, body: &[u8]) -> FrameRange {
        let at = name as usize;
        if self.pages.len() <= at {
            self.pages.resize(at + 1, CachedFrame::default());
        }
        let page = &mut self.pages[at];
        if page.message != self.message {
            let round = self.sheets.round() + 1;
            if page.round != round {
                (page.round, page.sheet) = (round, self.sheets.fresh());
            }
            let parts = [&self.before, subscriptions.name(name), &self.after, body];
            page.part = self.sheets.write(page.sheet, |out| write(out, parts));
            page.message = self.message;
        }
        page.part
    }
}

/// Writes a frame.
#[inline]
fn write(out: &mut Vec<u8>, parts: [&[u8]; 4]) {
    out.reserve(LENGTH_BYTES + parts.iter().map(|part| part.len()).sum::<usize>());
    let start = lanecast_wire::command::begin_frame(out);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    lanecast_wire::command::end_frame(out, start);
}

impl SendQueues<'_> {
    #[inline]
    pub(crate) fn client(&mut self, id: ClientId) -> Option<&mut Client> {
        let client = self.clients.get_mut(id.0 as usize)?.as_mut();
        client.filter(|client| !client.is_leaving)
    }

    /// Something was written for the client.
    #[inline]
    pub(crate) fn note(&mut self, id: ClientId) {
        let (most, memory_max) = (self.most, self.memory_max);
        let Some(client) = self.client(id) else { return };
        let (waiting, is_pressed) = (client.outbox.len(), client.outbox.held() > memory_max);
        let was_dirty = std::mem::replace(&mut client.is_dirty, true);
        if !was_dirty {
            self.dirty.push(id);
        }
        *self.is_pressed |= is_pressed;
        if waiting > most {
            self.give_up(id, SlowConsumerReason::SendQueue(waiting));
        }
    }
}
