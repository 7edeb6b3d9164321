//! Counters of a member.

use crate::Nanos;
use crate::view::MemberId;

/// Counts since the member was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupCounters {
    /// Own messages to all.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Messages of all senders, this member's own among them, delivered here.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Messages to one member.
    pub sent_direct: u64,
    /// Messages to this member alone.
    pub delivered_direct: u64,
    /// Acknowledgements sent.
    pub acks: u64,
    /// Order lists sent, as the sequencer.
    pub order_lists: u64,
    /// Requests for missing frames.
    pub wants: u64,
    /// Missing frames that were asked for; each request counts them again.
    pub wanted: u64,
    /// Frames sent again for others.
    pub repairs_sent: u64,
    /// Requests that the limit of repairs cut short.
    pub repairs_limited: u64,
    /// Frames received again that were asked for.
    pub repairs_received: u64,
    /// Frames dropped since they had arrived before.
    pub duplicates: u64,
    /// Frames dropped since they belong to another view, and were not kept for it.
    pub other_view: u64,
    /// Frames dropped for want of room; they are asked for again.
    pub no_room: u64,
    /// Frames of this member that were sent again since acknowledgements failed to come.
    pub probes: u64,
    /// Most bytes retained of one sender.
    pub highest_retained: usize,
    /// Members that held up this one's sending.
    pub blocked: Vec<BlockedBy>,
}

/// A member that held up sending, as it acknowledged last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedBy {
    /// The slow member.
    pub member: MemberId,
    /// Times that it was the slowest when a send was refused.
    pub times: u64,
    /// Time until sending was possible again, in nanoseconds.
    pub nanos: Nanos,
}

impl GroupCounters {
    /// Most members in `blocked`: the list outlives views.
    const MOST_BLOCKERS: usize = 1_024;

    /// A send was refused, or sending is possible again after `nanos`.
    pub(crate) fn on_blocked(&mut self, member: MemberId, times: u64, nanos: Nanos) {
        let at = match self.blocked.iter().position(|by| by.member == member) {
            Some(at) => at,
            None if self.blocked.len() < Self::MOST_BLOCKERS => {
                self.blocked.push(BlockedBy { member, times: 0, nanos: 0 });
                self.blocked.len() - 1
            }
            None => return,
        };
        let by = &mut self.blocked[at];
        by.times += times;
        by.nanos = by.nanos.saturating_add(nanos);
    }
}
