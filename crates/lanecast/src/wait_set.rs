//! One loop over several publishers, subscribers and other descriptors.

use lanecast_os::epoll::Epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Waits for several publishers, subscribers, and any other descriptor at once, on one thread.
///
/// Ends are added by their descriptors, each under a key of the program:
/// [`Subscribe::wakeup`](crate::Subscribe::wakeup) is readable when there is something to poll,
/// [`Publish::wakeup`](crate::Publish::wakeup) when a refused claim may find room. Timers, sockets
/// and standard input are added the same way. An end leaves the set when it is dropped.
///
/// The ends may belong to several contexts and transports. The set is a descriptor itself, for a
/// loop around it. Programs with a loop of their own (mio, tokio) need no set: they add the
/// descriptors there.
///
/// ```
/// use lanecast::prelude::*;
/// # use std::time::Duration;
/// # let directory = std::env::temp_dir().join(format!("lanecast-set-{}", std::process::id()));
/// # let context = Context::builder().set("shm.directory", directory.display())?.build()?;
/// const ORDERS: u64 = 0;
/// const QUOTES: u64 = 1;
/// let mut orders = context.subscriber("orders")?;
/// let mut quotes = context.subscriber("quotes")?;
/// let mut set = WaitSet::new()?;
/// set.add(ORDERS, orders.wakeup()?)?;
/// set.add(QUOTES, quotes.wakeup()?)?;
/// # let mut publisher = context.publisher("quotes")?;
/// # publisher.wait_for_subscribers(1, Duration::from_secs(5));
/// # publisher.send(b"1.234")?;
/// # let mut seen = 0;
/// # while seen == 0 {
/// for &key in set.wait(None)? {
///     match key {
///         ORDERS => orders.poll(64, |event| println!("order: {event:?}")),
///         QUOTES => quotes.poll(64, |event| {
/// #           seen += usize::from(matches!(event, Event::Message(_)));
///             println!("quote: {event:?}");
///         }),
///         _ => 0,
///     };
/// }
/// # }
/// # drop((orders, quotes, publisher));
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WaitSet {
    descriptors: Epoll,
    ready: Vec<u64>,
}

impl WaitSet {
    /// An empty set.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub fn new() -> io::Result<Self> {
        Ok(Self { descriptors: Epoll::new()?, ready: Vec::new() })
    }

    /// Adds `descriptor`, which [`wait`](Self::wait) reports by `key`. Several may share a key.
    ///
    /// # Errors
    /// If the set has it already, or it is a file, which never has to be waited for.
    pub fn add(&mut self, key: u64, descriptor: impl AsFd) -> io::Result<()> {
        self.descriptors.add(descriptor.as_fd(), key)
    }

    /// Removes `descriptor`. Dropping the end that it belongs to removes it as well.
    ///
    /// # Errors
    /// If the set does not have it.
    pub fn remove(&mut self, descriptor: impl AsFd) -> io::Result<()> {
        self.descriptors.remove(descriptor.as_fd())
    }

    /// Sleeps until an end is ready, at most `timeout`, without end for `None`; returns the keys of
    /// the ready ones, none after a timeout or a signal.
    ///
    /// An end is returned again until a poll of it returns 0, or a claim is made.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<&[u64]> {
        self.descriptors.wait(timeout, &mut self.ready)?;
        Ok(&self.ready)
    }
}

impl AsFd for WaitSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptors.as_fd()
    }
}
