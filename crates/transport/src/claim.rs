//! Room for a message, taken before it is written.

use core::fmt;
use core::ops::DerefMut;

/// Room for one message, written in place.
///
/// Holds what was there before: write every byte that the reader is to see. Dropped without
/// [`commit`](Self::commit), it was never there.
pub trait Claim: DerefMut<Target = [u8]> + Sized {
    /// Publishes the message: from now on subscribers see it.
    fn commit(self);

    /// Publishes the message, then claims room for the next one on the same topic, waiting for
    /// it as [`Publish::claim`](crate::Publish::claim) does.
    ///
    /// The price of waiting for room thus falls after publication, not before it.
    ///
    /// # Errors
    /// As for [`Publish::claim`](crate::Publish::claim); this message is published even so.
    fn commit_and_claim_next(self, len: usize) -> Result<Self, ClaimError>;

    /// Gives the room back; the same as dropping the claim.
    fn abort(self) {
        drop(self);
    }
}

/// Several messages that become visible together.
///
/// Dropped without [`publish`](Self::publish), none of them was ever there.
pub trait Batch {
    /// Adds room for one more message, to be written in place now.
    ///
    /// # Errors
    /// As for [`Publish::try_claim`](crate::Publish::try_claim). The messages added before stay.
    fn try_add(&mut self, topic: crate::TopicId, len: usize) -> Result<&mut [u8], ClaimError>;

    /// How many messages it holds.
    fn len(&self) -> usize;

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Publishes all of them at once; returns how many.
    fn publish(self) -> usize;
}

/// Why there is no room for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimError {
    /// Not now: try again, or wait.
    BackPressured(BackPressureReason),
    /// The publisher has been closed.
    Closed,
    /// Longer than the transport's longest message; no waiting helps.
    TooLong {
        /// The longest message, in bytes.
        longest: usize,
    },
    /// The topic was not given out by this publisher.
    NoSuchTopic,
}

/// What holds a publisher back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackPressureReason {
    /// The slowest subscriber has a whole window still to read.
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
                "the message is longer than {longest} bytes: configure a larger window \
                 (a message may take an eighth of it)"
            ),
            Self::NoSuchTopic => {
                f.write_str("the topic is not this publisher's: add it with add_topic")
            }
        }
    }
}

impl std::error::Error for ClaimError {}
