//! The writing side, whatever way the messages take.

mod both;

pub use both::{BothBatch, BothClaim};

use crate::claim::{AnyBatch, AnyClaim};
use crate::context::Error;
use crate::{net, shm};
use both::Both;
use lanecast_net::NetTransport;
use lanecast_transport::{ClaimError, Publish, SessionId, TopicId, Transport};
use std::fmt;
use std::time::Duration;

/// A publisher: one session, one or several topics.
///
/// Over the way that its context was made with: what that is makes no difference to its calls.
pub struct Publisher {
    way: Way,
}

#[expect(clippy::large_enum_variant, reason = "one hop less on the path of a message")]
enum Way {
    Shm(shm::Publisher),
    Net(net::Publisher),
    Both(Box<Both>),
}

/// Why a topic cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// Not over shared memory.
    #[error(transparent)]
    Shm(#[from] shm::TopicError),
    /// Not over the network.
    #[error(transparent)]
    Net(#[from] net::TopicError),
}

impl Publisher {
    pub(crate) fn over_both(
        domain: &shm::Domain,
        network: &NetTransport,
        topic: &str,
    ) -> Result<Self, Error> {
        let near = domain.publisher(topic)?;
        let far = network.publisher_of(near.session(), topic)?;
        Ok(Self { way: Way::Both(Box::new(Both::new(near, far))) })
    }

    /// Sends now what has been published but held back for a moment, because more seemed to be
    /// coming. Only the network does that, and never for long.
    pub fn flush(&mut self) {
        match &mut self.way {
            Way::Shm(_) => {}
            Way::Net(publisher) => publisher.flush(),
            Way::Both(publisher) => publisher.flush(),
        }
    }

    /// How often a claim has found no room.
    pub fn back_pressured(&mut self) -> u64 {
        match &mut self.way {
            Way::Shm(publisher) => publisher.back_pressured(),
            Way::Net(publisher) => publisher.back_pressured(),
            Way::Both(publisher) => publisher.back_pressured(),
        }
    }
}

impl From<shm::Publisher> for Publisher {
    fn from(publisher: shm::Publisher) -> Self {
        Self { way: Way::Shm(publisher) }
    }
}

impl From<net::Publisher> for Publisher {
    fn from(publisher: net::Publisher) -> Self {
        Self { way: Way::Net(publisher) }
    }
}

impl Publish for Publisher {
    type Claim<'a> = AnyClaim<'a>;
    type Batch<'a> = AnyBatch<'a>;
    type TopicError = TopicError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, TopicError> {
        Ok(match &mut self.way {
            Way::Shm(publisher) => publisher.add_topic(name)?,
            Way::Net(publisher) => publisher.add_topic(name)?,
            Way::Both(publisher) => publisher.add_topic(name)?,
        })
    }

    #[inline(always)]
    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<AnyClaim<'_>, ClaimError> {
        Ok(match &mut self.way {
            Way::Shm(publisher) => AnyClaim::Shm(publisher.try_claim_on(topic, len)?),
            Way::Net(publisher) => AnyClaim::Net(publisher.try_claim_on(topic, len)?),
            Way::Both(publisher) => AnyClaim::Both(publisher.try_claim_on(topic, len)?),
        })
    }

    #[inline(always)]
    fn claim_on(&mut self, topic: TopicId, len: usize) -> Result<AnyClaim<'_>, ClaimError> {
        Ok(match &mut self.way {
            Way::Shm(publisher) => AnyClaim::Shm(publisher.claim_on(topic, len)?),
            Way::Net(publisher) => AnyClaim::Net(publisher.claim_on(topic, len)?),
            Way::Both(publisher) => AnyClaim::Both(publisher.claim_on(topic, len)?),
        })
    }

    fn batch(&mut self) -> AnyBatch<'_> {
        match &mut self.way {
            Way::Shm(publisher) => AnyBatch::Shm(publisher.batch()),
            Way::Net(publisher) => AnyBatch::Net(publisher.batch()),
            Way::Both(publisher) => AnyBatch::Both(publisher.batch()),
        }
    }

    fn session(&self) -> SessionId {
        match &self.way {
            Way::Shm(publisher) => publisher.session(),
            Way::Net(publisher) => publisher.session(),
            Way::Both(publisher) => publisher.session(),
        }
    }

    fn source(&self) -> &str {
        match &self.way {
            Way::Shm(publisher) => publisher.source(),
            Way::Net(publisher) => publisher.source(),
            Way::Both(publisher) => publisher.source(),
        }
    }

    fn longest_message(&self) -> usize {
        match &self.way {
            Way::Shm(publisher) => publisher.longest_message(),
            Way::Net(publisher) => publisher.longest_message(),
            Way::Both(publisher) => publisher.longest_message(),
        }
    }

    fn subscribers(&self) -> usize {
        match &self.way {
            Way::Shm(publisher) => publisher.subscribers(),
            Way::Net(publisher) => publisher.subscribers(),
            Way::Both(publisher) => publisher.subscribers(),
        }
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        match &mut self.way {
            Way::Shm(publisher) => publisher.wait_for_subscribers(count, timeout),
            Way::Net(publisher) => publisher.wait_for_subscribers(count, timeout),
            Way::Both(publisher) => publisher.wait_for_subscribers(count, timeout),
        }
    }

    fn left_behind(&mut self) -> usize {
        match &mut self.way {
            Way::Shm(publisher) => publisher.left_behind(),
            Way::Net(publisher) => publisher.left_behind(),
            Way::Both(publisher) => publisher.left_behind(),
        }
    }

    fn drain(&mut self, timeout: Duration) -> bool {
        match &mut self.way {
            Way::Shm(publisher) => publisher.drain(timeout),
            Way::Net(publisher) => publisher.drain(timeout),
            Way::Both(publisher) => publisher.drain(timeout),
        }
    }

    fn close(self, linger: Duration) -> bool {
        match self.way {
            Way::Shm(publisher) => publisher.close(linger),
            Way::Net(publisher) => publisher.close(linger),
            Way::Both(publisher) => publisher.close(linger),
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("source", &self.source()).finish_non_exhaustive()
    }
}
