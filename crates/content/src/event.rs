//! What a subscriber is told.

use lanecast_transport::{CloseReason, Gap, Message, Overwritten, Stream};

/// One thing that happened on a subscription.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A publisher is there; it is being asked.
    Joined(&'a Stream),
    /// From here on everything of this publisher comes that meets the filter.
    InForce(&'a Stream),
    /// The publisher does not take the filter, for this reason. It is not asked again.
    Refused(&'a Stream, &'a str),
    /// A message that meets the filter.
    Message(Matched<'a>),
    /// The publisher has to be asked again, because messages were lost or it took this subscriber
    /// for dead. Until the next [`InForce`](Self::InForce), some that meet the filter may be
    /// missing.
    Lapsed(&'a Stream),
    /// Messages are lost, wanted ones or not. [`Lapsed`](Self::Lapsed) follows.
    Lost(Gap<'a>),
    /// The publisher is gone.
    Left(&'a Stream, CloseReason),
}

/// A message that meets the filter, read where the transport holds it.
#[derive(Clone, Copy, Debug)]
pub struct Matched<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) whole: Message<'a>,
}

impl<'a> Matched<'a> {
    /// The message, as it was published.
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.body
    }

    /// Which publisher it is from.
    pub const fn stream(&self) -> &'a Stream {
        self.whole.stream()
    }

    /// As [`Message::to_vec`].
    ///
    /// # Errors
    /// As there.
    pub fn to_vec(&self) -> Result<Vec<u8>, Overwritten> {
        let bytes = self.body.to_vec();
        if self.is_intact() { Ok(bytes) } else { Err(Overwritten) }
    }

    /// As [`Message::is_intact`].
    pub fn is_intact(&self) -> bool {
        self.whole.is_intact()
    }
}
