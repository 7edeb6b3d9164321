//! The transport of a group test: send to all, poll, and learn of departures.

use std::io;
use std::time::Duration;

/// A member's identity as its transport sees it, such as an address. It stays the same for the
/// life of the member, and no two members share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderId(pub u64);

/// An event of [`GroupTransport::poll`].
#[derive(Debug)]
pub enum GroupEvent<'a> {
    /// A message of a member; of this one, too.
    Message {
        /// The member that sent it.
        from: SenderId,
        /// The bytes, valid during the call.
        bytes: &'a [u8],
    },
    /// A member has left, or has died.
    Left {
        /// The member.
        from: SenderId,
        /// The reason, in words.
        why: String,
    },
}

/// A message was not sent.
#[derive(Debug)]
pub enum SendRefusal {
    /// No room now: poll, wait, and try again.
    Full,
    /// The message can never be sent.
    Failed(io::Error),
}

/// A member's access to its group, on one thread.
///
/// ```
/// use lanecast_measure::group::{GroupEvent, GroupTransport, SendRefusal, SenderId};
/// use std::{collections::VecDeque, io, time::Duration};
///
/// /// A group of one.
/// #[derive(Default)]
/// struct Alone(VecDeque<Vec<u8>>);
///
/// impl GroupTransport for Alone {
///     fn longest_message(&self) -> usize {
///         1000
///     }
///     fn try_send(&mut self, bytes: &[u8]) -> Result<(), SendRefusal> {
///         self.0.push_back(bytes.to_vec());
///         Ok(())
///     }
///     fn poll(
///         &mut self,
///         limit: usize,
///         handler: &mut impl FnMut(GroupEvent<'_>),
///     ) -> io::Result<usize> {
///         let count = self.0.len().min(limit);
///         for bytes in self.0.drain(..count) {
///             handler(GroupEvent::Message { from: SenderId(1), bytes: &bytes });
///         }
///         Ok(count)
///     }
///     fn wait(&mut self, _: Duration) {}
/// }
///
/// let mut group = Alone::default();
/// assert!(group.try_send(b"to all").is_ok());
/// let mut seen = 0;
/// group.poll(10, &mut |_| seen += 1)?;
/// assert_eq!(seen, 1);
/// # Ok::<(), io::Error>(())
/// ```
pub trait GroupTransport {
    /// The longest message that [`try_send`](Self::try_send) takes, in bytes.
    fn longest_message(&self) -> usize;

    /// Sends `bytes` to all members; they come back to this one, too.
    ///
    /// # Errors
    /// [`SendRefusal::Full`] if there is no room now; [`SendRefusal::Failed`] if the group cannot
    /// be reached any more.
    fn try_send(&mut self, bytes: &[u8]) -> Result<(), SendRefusal>;

    /// Sends what waits to be sent, and hands over received events, about `limit` at most; returns
    /// their number.
    ///
    /// # Errors
    /// If this member cannot receive any more.
    fn poll(&mut self, limit: usize, handler: &mut impl FnMut(GroupEvent<'_>))
    -> io::Result<usize>;

    /// Waits until there may be something to poll or room to send, at most for `limit`.
    fn wait(&mut self, limit: Duration);

    /// Number of members that the transport sees now; `None` if it does not know its members.
    fn members(&self) -> Option<usize> {
        None
    }

    /// The transport's own counters, such as repairs or drops, by name.
    fn counters(&self) -> Vec<(String, u64)> {
        Vec::new()
    }
}
