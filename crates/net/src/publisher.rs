//! The writing side.

use crate::claim::{NetBatch, NetClaim};
use crate::counters::PublisherCounters;
use crate::error::{TopicError, check_name};
use crate::network::Network;
use crate::outbound::Outbound;
use crate::session::Source;
use crate::tally::Tally;
use lanecast_base::sync::Ordering;
use lanecast_os::biased::Owner;
use lanecast_protocol::sender;
use lanecast_transport::{ClaimError, Publish, SessionId, TopicId};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A publisher over the network: one session.
pub struct Publisher {
    owner: Owner<Outbound>,
    network: Network,
    /// As others are told of it.
    told: (Source, usize),
    source: String,
    longest: usize,
    tally: Arc<Tally>,
    is_closed: bool,
}

impl Publisher {
    pub(crate) fn new(
        owner: Owner<Outbound>,
        network: Network,
        told: (Source, usize),
        longest: usize,
        tally: Arc<Tally>,
    ) -> Self {
        let source = told.0.to_string();
        Self { owner, network, told, source, longest, tally, is_closed: false }
    }

    /// How often a claim has found no room.
    pub fn back_pressured(&self) -> u64 {
        self.tally.back_pressured.load(Ordering::Relaxed)
    }

    /// What it has counted so far.
    pub fn counters(&mut self) -> PublisherCounters {
        self.owner.enter().counters()
    }

    /// Sends now what has been committed but not sent, because more seemed to be coming.
    pub fn flush(&mut self) {
        self.owner.enter().flush();
    }

    /// Turns the session until `done` or `timeout`; says whether `done`.
    fn turn_until(&mut self, timeout: Duration, done: impl Fn(&Outbound) -> bool) -> bool {
        let start = Instant::now();
        loop {
            let mut outbound = self.owner.enter();
            outbound.ask();
            if done(&outbound) {
                return true;
            }
            let Some(left) = timeout.checked_sub(start.elapsed()) else { return false };
            outbound.sleep(left);
        }
    }

    fn finish(&mut self, linger: Duration) -> bool {
        if self.is_closed {
            return true;
        }
        self.is_closed = true;
        let drained = self.turn_until(linger, |outbound| outbound.sender.is_drained());
        self.owner.enter().close();
        self.network.desk().retire(self.told.0.session);
        drained
    }
}

impl Publish for Publisher {
    type Claim<'a> = NetClaim<'a>;
    type Batch<'a> = NetBatch<'a>;
    type TopicError = TopicError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, TopicError> {
        check_name(name)?;
        let (source, datagram_bytes) = self.told;
        let own = self.network.settings().own_group(name);
        if let (Some(own), Some(group)) = (own, source.group)
            && own != group
        {
            return Err(TopicError::Group { own, group });
        }
        let added = self.owner.enter().add_topic(name);
        let number = added.map_err(|error| match error {
            sender::TopicError::Name => TopicError::Name(name.len()),
            sender::TopicError::TooMany { max } => TopicError::Full(max),
        })?;
        self.network.desk().announce(source, datagram_bytes, name);
        Ok(TopicId(number))
    }

    #[inline(always)]
    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<NetClaim<'_>, ClaimError> {
        let mut outbound = self.owner.enter();
        outbound.stage(topic, len)?;
        Ok(NetClaim::new(outbound, topic))
    }

    #[inline(always)]
    fn claim_on(&mut self, topic: TopicId, len: usize) -> Result<NetClaim<'_>, ClaimError> {
        let mut outbound = self.owner.enter();
        outbound.stage_waiting(topic, len)?;
        Ok(NetClaim::new(outbound, topic))
    }

    fn batch(&mut self) -> NetBatch<'_> {
        NetBatch::new(self.owner.enter())
    }

    fn session(&self) -> SessionId {
        SessionId(self.told.0.session)
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn longest_message(&self) -> usize {
        self.longest
    }

    fn subscribers(&self) -> usize {
        self.tally.receivers.load(Ordering::Relaxed)
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        self.turn_until(timeout, |outbound| outbound.sender.joined() >= count)
    }

    fn left_behind(&mut self) -> usize {
        self.owner.enter().sender.left_behind()
    }

    fn drain(&mut self, timeout: Duration) -> bool {
        self.turn_until(timeout, |outbound| outbound.sender.is_drained())
    }

    fn close(mut self, linger: Duration) -> bool {
        self.finish(linger)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.finish(Duration::ZERO);
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("source", &self.source).finish_non_exhaustive()
    }
}
