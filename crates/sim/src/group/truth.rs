//! Messages that a member has sent, as its application knows them.

use crate::payload::{Payloads, Sizes};
use lanecast_membership::{MemberId, Order, ViewId};
use std::collections::BTreeMap;

/// Messages of one sender, to all or to one member, numbered from 0 over all its views.
#[derive(Clone, Debug)]
pub struct SentStream {
    payloads: Payloads,
    sent: Vec<Sent>,
}

/// A message that was accepted.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// View in which it was sent.
    pub view: ViewId,
    /// Sequence that the member returned.
    pub sequence: u64,
    /// Order in which it is delivered.
    pub order: Order,
}

impl SentStream {
    fn new(id: MemberId, number: u32, sizes: Sizes) -> Self {
        Self { payloads: Payloads::new(id.0, number, sizes), sent: Vec::new() }
    }

    /// Messages so far.
    pub fn count(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Message `number`.
    pub fn get(&self, number: u64) -> Option<&Sent> {
        self.sent.get(number as usize)
    }

    /// Payload of the message that will be sent next.
    pub fn next_payload(&self) -> Vec<u8> {
        let number = self.count();
        let mut bytes = vec![0; self.payloads.length(number)];
        self.payloads.write(number, &mut bytes);
        bytes
    }

    /// Notes that the next message was accepted.
    pub fn accept(&mut self, sent: Sent) {
        self.sent.push(sent);
    }

    /// Whether `bytes` are message `number`.
    pub fn is(&self, number: u64, bytes: &[u8]) -> bool {
        self.payloads.is(number, bytes)
    }
}

/// All messages of one sender.
#[derive(Clone, Debug)]
pub struct SenderTruth {
    /// Messages to all.
    pub to_all: SentStream,
    /// Messages to one member each.
    pub direct: BTreeMap<MemberId, SentStream>,
    /// Count of `to_all` at the sender's installation of each view.
    pub starts: BTreeMap<ViewId, u64>,
    id: MemberId,
    sizes: Sizes,
}

impl SenderTruth {
    /// Creates a sender without messages.
    pub fn new(id: MemberId, sizes: Sizes) -> Self {
        let to_all = SentStream::new(id, 0, sizes);
        Self { to_all, direct: BTreeMap::new(), starts: BTreeMap::new(), id, sizes }
    }

    /// Messages to one member.
    pub fn direct_to(&mut self, to: MemberId) -> &mut SentStream {
        let (id, sizes) = (self.id, self.sizes);
        self.direct.entry(to).or_insert_with(|| SentStream::new(id, to.0 as u32 | 1, sizes))
    }
}
