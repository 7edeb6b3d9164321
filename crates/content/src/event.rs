//! Events of a subscription.

use lanecast_transport::{CloseReason, Gap, Message, Overwritten, Stream};

/// An event of a subscription.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A publisher joined; the filter is being requested.
    Joined(&'a Stream),
    /// The publisher applies the filter: from here on all its matching messages arrive.
    FilterActive(&'a Stream),
    /// The publisher refused the filter, with the reason. The request is not repeated.
    Refused(&'a Stream, &'a str),
    /// A message that matches the filter.
    Message(FilteredMessage<'a>),
    /// The publisher no longer applies the filter, because messages were lost or it timed this
    /// subscriber out. Matching messages may be missing until the next
    /// [`FilterActive`](Self::FilterActive).
    FilterLost(&'a Stream),
    /// Messages were lost, matching or not. [`FilterLost`](Self::FilterLost) follows.
    Lost(Gap<'a>),
    /// The publisher left.
    Left(&'a Stream, CloseReason),
}

/// A message that matches the filter, in the transport's buffer.
#[derive(Clone, Copy, Debug)]
pub struct FilteredMessage<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) whole: Message<'a>,
}

impl<'a> FilteredMessage<'a> {
    /// The message as published.
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.body
    }

    /// Stream of its publisher.
    pub const fn stream(&self) -> &'a Stream {
        self.whole.stream()
    }

    /// Copies the message.
    ///
    /// # Errors
    ///
    /// [`Overwritten`] if the transport reused the buffer meanwhile, as in [`Message::to_vec`].
    pub fn to_vec(&self) -> Result<Vec<u8>, Overwritten> {
        let bytes = self.body.to_vec();
        if self.is_intact() { Ok(bytes) } else { Err(Overwritten) }
    }

    /// Whether the buffer was not overwritten so far, as [`Message::is_intact`].
    pub fn is_intact(&self) -> bool {
        self.whole.is_intact()
    }
}
