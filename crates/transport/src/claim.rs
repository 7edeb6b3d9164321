//! Claims: room for messages, reserved before they are written.

use core::fmt;
use core::ops::DerefMut;

/// Room for one message, written in place.
///
/// It holds old bytes: write every byte. Dropping it without [`commit`](Self::commit) aborts it.
pub trait Claim: DerefMut<Target = [u8]> + Sized {
    /// Publishes the message.
    fn commit(self);

    /// Publishes the message, then claims room for the next one on the same topic, waiting like
    /// [`Publish::claim`](crate::Publish::claim). So the wait for room follows the publication
    /// instead of delaying it.
    ///
    /// # Errors
    /// As for [`Publish::claim`](crate::Publish::claim); this message is published even so.
    #[inline(always)]
    fn commit_and_claim_next(self, len: usize) -> Result<Self, ClaimError> {
        self.commit_and_claim_next_after(len, || Ok(()))
    }

    /// As [`commit_and_claim_next`](Self::commit_and_claim_next), and calls `reserve` between the
    /// two: for publishers over several sessions, whose next message needs room in each.
    ///
    /// `reserve` may wait. This session has no claim meanwhile, so it is served as at any time
    /// between two messages.
    ///
    /// # Errors
    /// As for [`Publish::claim`](crate::Publish::claim), and the errors of `reserve`, after which
    /// no room is claimed; this message is published even so.
    fn commit_and_claim_next_after(
        self,
        len: usize,
        reserve: impl FnOnce() -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError>;

    /// Returns the room, like dropping the claim.
    fn abort(self) {
        drop(self);
    }
}

/// Several messages that become visible together.
///
/// Dropping it without [`publish`](Self::publish) aborts all of them.
pub trait Batch {
    /// Adds room for one more message, to write in place.
    ///
    /// The messages of the batch take room themselves, which subscribers can free only once they
    /// see them: a batch that is refused is to be published, or dropped, before the room is waited
    /// for.
    ///
    /// # Errors
    /// As for [`Publish::try_claim`](crate::Publish::try_claim). The messages added before stay.
    fn try_add(&mut self, topic: crate::TopicId, len: usize) -> Result<&mut [u8], ClaimError>;

    /// The bytes of the message added last, which may still be changed; empty without one.
    fn last(&mut self) -> &mut [u8];

    /// Number of messages in the batch.
    fn len(&self) -> usize;

    /// Whether the batch is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Publishes all messages at once; returns their number.
    fn publish(self) -> usize;
}

/// Errors of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimError {
    /// No room now: try again, or wait.
    BackPressured(BackPressureReason),
    /// The publisher has been closed.
    Closed,
    /// Longer than the transport's longest message; waiting does not help.
    TooLong {
        /// The longest message, in bytes.
        longest: usize,
    },
    /// The topic id is not from this publisher.
    NoSuchTopic,
}

/// Reason of back-pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackPressureReason {
    /// The slowest subscriber is a whole window behind.
    WindowFull,
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BackPressured(BackPressureReason::WindowFull) => {
                f.write_str("back-pressured: the slowest subscriber has a whole window to read")
            }
            Self::Closed => f.write_str("the publisher is closed"),
            Self::TooLong { longest } => write!(
                f,
                "the message is longer than {longest} bytes: configure a larger shm.window (a \
                 message may take an eighth of it), and between hosts a larger net.longest_message \
                 (at most a quarter of net.window)"
            ),
            Self::NoSuchTopic => {
                f.write_str("the topic is not this publisher's: add it with add_topic")
            }
        }
    }
}

impl std::error::Error for ClaimError {}
