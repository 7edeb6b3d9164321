//! The subscriber of any transport, and the transport itself.

use crate::event::Event;
use crate::publish::Publish;
use crate::run::Run;
use crate::stream::SessionId;
use crate::topic_selection::TopicSelection;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A subscriber to all present and future publishers of its topics.
pub trait Subscribe: Send + 'static {
    /// A run of pending events, see [`take`](Self::take).
    type Run<'a>: Run
    where
        Self: 'a;

    /// Calls `handler` with pending events, at most `limit` messages; returns the number of events.
    /// Never blocks.
    ///
    /// Messages are read in place and count as read when the handler returns or panics.
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: F) -> usize;

    /// Takes a run of at most `limit` pending events, which stay valid until the run is dropped;
    /// only its drop moves the cursor, past the events that were yielded. Never blocks.
    ///
    /// A run may hold fewer events than are pending: it ends where a publisher's or a topic's life
    /// begins or ends, at the end of a publisher's ring or of a read from the network. Calls of
    /// `take` and [`poll`](Self::poll) may be mixed. [`Run`] has the rules and an example.
    fn take(&mut self, limit: usize) -> Self::Run<'_>;

    /// Waits by the subscriber's strategy after a poll or run of `work` events; returns at once if
    /// that is not 0, and after [`Self::longest_wait`] at the latest.
    fn wait(&mut self, work: usize) {
        self.wait_at_most(work, self.longest_wait());
    }

    /// As [`wait`](Self::wait), and returns after `limit` at the latest, for loops with duties of
    /// their own at known times.
    fn wait_at_most(&mut self, work: usize, limit: Duration);

    /// The longest time of a [`wait`](Self::wait), so that a loop can check a stop flag in between.
    fn longest_wait(&self) -> Duration;

    /// A descriptor for event loops (`poll`, `epoll`, mio, tokio's `AsyncFd`): readable when there
    /// may be something to poll.
    ///
    /// It is readable from the start, and a [`poll`](Self::poll) that returns 0 makes it
    /// unreadable. From then on the next event makes it readable: a message, `Joined`, `Lost` or
    /// `Left`. No event is missed, whether it comes before or after the loop goes to sleep, and
    /// from which thread or process it comes. It stays readable until a poll returns 0, so a loop
    /// may poll once for each time it is readable (level-triggered), or poll until 0 before it
    /// sleeps (edge-triggered). It may be readable without an event, between hosts by a heartbeat;
    /// the poll then returns 0. Heartbeats wake a loop at most eight times in a row.
    ///
    /// The descriptor is the same for each call, and lives as long as the subscriber: a loop adds
    /// it once, on any thread, and polls on the subscriber's. Never read it. To keep it apart from
    /// the borrow, duplicate it (`try_clone_to_owned`).
    ///
    /// Subscribers that never asked pay nothing. With a descriptor, each poll that returns 0 after
    /// one with events costs a few microseconds; further ones cost a load, or a system call where
    /// publishers of other processes signal the descriptor: sleep on it rather than poll in a loop.
    /// [`wait`](Self::wait) may be used beside it.
    ///
    /// # Errors
    /// If the process has no free descriptor, or the system refuses a thread.
    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>>;

    /// Number of joined streams.
    fn streams(&self) -> usize;
}

/// A way to carry messages: makes publishers and subscribers.
pub trait Transport {
    /// The publisher of this transport.
    type Publisher: Publish;
    /// The subscriber of this transport.
    type Subscriber: Subscribe;
    /// Errors of making publishers and subscribers.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The name on the command line: `shm`, `tcp`, ...
    fn name(&self) -> &'static str;

    /// Whether a subscriber gets the messages of one publisher in one order across its topics.
    /// False if only each topic has its order, because a message that is missing delays only those
    /// of its own topic.
    fn keeps_order_across_topics(&self) -> bool;

    /// A publisher of `topic`.
    ///
    /// # Errors
    /// If the transport cannot set it up; the error says what to do.
    fn publisher(&self, topic: &str) -> Result<Self::Publisher, Self::Error>;

    /// A subscriber to all of `topics`.
    ///
    /// # Errors
    /// If the transport cannot set it up; the error says what to do.
    fn subscriber(&self, topics: &[&str]) -> Result<Self::Subscriber, Self::Error>;

    /// A subscriber to the topics of `selection`, which may have patterns: topics that match join
    /// as they appear, each with the events of any stream.
    ///
    /// Topics beyond the selection's limit are not joined; the transport counts and logs that.
    ///
    /// # Errors
    /// If the transport cannot set it up; the error says what to do.
    fn subscriber_of(&self, selection: &TopicSelection) -> Result<Self::Subscriber, Self::Error>;

    /// A subscriber to all of `topics`, except for the publisher of `session`: for programs that
    /// publish and subscribe to the same topic. Their own messages then cost nothing.
    ///
    /// # Errors
    /// If the transport cannot set it up; the error says what to do.
    fn subscriber_except(
        &self,
        topics: &[&str],
        session: SessionId,
    ) -> Result<Self::Subscriber, Self::Error>;
}
