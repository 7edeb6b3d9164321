//! What the numbers of a feed stand for: queries, subscriptions, and whose they are.

use crate::Nanos;
use crate::client::ClientId;
use crate::delivery::message::Post;
use crate::queue::slow_consumers::SlowConsumerReason;
use crate::topic::sow_topic::PendingQuery;
use foldhash::HashMap;

/// How far the queries of a topic are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryProgress {
    /// All are answered.
    CommandResult,
    /// Those that are not wait until their clients have taken more.
    Waiting,
    /// There is something to do.
    Going,
}

/// What the feed's numbers stand for.
#[derive(Debug, Default)]
pub(crate) struct FeedSubscriptions {
    /// The server's numbers of subscriptions, by the feed's.
    pub(crate) subscriptions: Vec<Option<u32>>,
    /// And the other way round.
    ids: HashMap<u32, u32>,
    pub(crate) inquiries: HashMap<u32, PendingQuery>,
    /// Those whose answers have not begun.
    pub(crate) fresh: Vec<u32>,
    /// Those whose clients have enough to read for now, and since when.
    paused: HashMap<u32, Nanos>,
    /// The same of the round before.
    paused_before: HashMap<u32, Nanos>,
}

impl FeedSubscriptions {
    pub(crate) fn drop_inquiry(&mut self, id: u32) {
        if self.inquiries.remove(&id).is_some() {
            self.fresh.retain(|other| *other != id);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.inquiries.is_empty()
    }

    /// Forgets a subscription of the server's; gives its number here.
    pub(crate) fn unname(&mut self, number: u32) -> Option<u32> {
        let id = self.ids.remove(&number)?;
        self.subscriptions[id as usize] = None;
        Some(id)
    }

    pub(crate) fn name(&mut self, id: u32, number: u32) {
        let at = id as usize;
        if self.subscriptions.len() <= at {
            self.subscriptions.resize(at + 1, None);
        }
        self.subscriptions[at] = Some(number);
        self.ids.insert(number, id);
    }

    /// Those that are not asked about again before the next round are paused no more.
    pub(crate) fn begin_round(&mut self) {
        self.paused_before = std::mem::take(&mut self.paused);
    }

    /// Whether the client of a query or subscription has enough to read for now. Lets it go if it
    /// has had that for longer than `still_max`: its topic's records are held as they were for it.
    pub(crate) fn is_paused(
        &mut self,
        id: u32,
        now: Nanos,
        still_max: Nanos,
        post: &mut Post<'_>,
    ) -> bool {
        let client = self.client(id, post).filter(|client| post.mail.has_enough(*client));
        let Some(client) = client else { return false };
        let since = self.paused_before.get(&id).copied().unwrap_or(now);
        if now.saturating_sub(since) > still_max {
            post.mail.give_up(client, SlowConsumerReason::Still);
        }
        self.paused.insert(id, since);
        true
    }

    fn client(&self, id: u32, post: &Post<'_>) -> Option<ClientId> {
        let asking = self.inquiries.get(&id).map(|inquiry| inquiry.client);
        let number = || self.subscriptions.get(id as usize).copied().flatten();
        asking.or_else(|| post.subscriptions.route(number()?).map(|route| route.client))
    }
}
