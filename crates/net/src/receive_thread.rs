//! A receive thread's agent: serves shares of the context's subscribers.
//!
//! The conductor gives it shares and publishers to join, by commands. When the thread ends, by the
//! end of the context or by a panic, its shares go back to the conductor, which serves them on
//! ([`ThreadReport::Gone`]).

use crate::conductor::{CommandQueue, SubAgent, WaitSet};
use crate::conductor_waker::ConductorWaker;
use crate::source::Source;
use crate::tcp_receiver;
use lanecast_protocol::Nanos;
use std::fmt::Debug;
use std::sync::Arc;

/// Sessions that are served by one thread at a time: a
/// [`ReceiveShare`](crate::receive_share::ReceiveShare).
pub(crate) trait Served: Debug + Send {
    /// The subscriber whose sessions they are.
    fn subscriber(&self) -> u64;

    /// The receive thread with this index serves them from now on; `None`: the conductor.
    fn set_thread(&mut self, thread: Option<usize>);

    /// Joins a publisher of `topic` with the next [`serve`](Self::serve).
    fn join(&mut self, source: Source, topic: String);

    /// One turn; returns the number of deliveries.
    fn serve(&mut self, now: Nanos, turn: &mut Turn<'_>) -> usize;
}

/// A share's turn: what it works with, and its results.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    /// Sockets are read into it.
    pub(crate) buffer: &'a mut [u8],
    /// Descriptors and deadline of the thread's next sleep.
    pub(crate) wait_set: &'a mut WaitSet,
    /// Sessions of which nothing is left at the share.
    pub(crate) released: Vec<u64>,
}

impl Turn<'_> {
    /// The next turn is due at `deadline`, if not earlier.
    pub(crate) fn wait_until(&mut self, deadline: Nanos) {
        self.wait_set.deadline = self.wait_set.deadline.min(deadline);
    }
}

/// Commands of the conductor to a receive thread.
#[derive(Debug)]
pub(crate) enum ShareCommand<S> {
    Serve(S),
    Join { subscriber: u64, source: Source, topic: String },
    Remove { subscriber: u64 },
}

/// Reports of a receive thread to the conductor.
#[derive(Debug)]
pub(crate) enum ThreadReport<S> {
    /// Nothing is left of a session: any thread may serve it next.
    Released(Release),
    /// The thread has ended.
    Gone { thread: usize, shares: Vec<ServedShare<S>> },
}

/// The end of a session at a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) subscriber: u64,
    pub(crate) thread: usize,
    pub(crate) session: u64,
    /// Joins that the share has got so far: a later one may be on its way.
    pub(crate) joins: u64,
}

/// A share with its server.
#[derive(Debug)]
pub(crate) struct ServedShare<S> {
    /// Index of the receive thread that the share is for.
    thread: usize,
    joins: u64,
    share: S,
}

/// Shares that one thread serves.
#[derive(Debug)]
pub(crate) struct ShareServer<S> {
    shares: Vec<ServedShare<S>>,
    /// All sockets are read into it; empty before the first share.
    buffer: Box<[u8]>,
}

impl<S: Served> ShareServer<S> {
    pub(crate) fn new() -> Self {
        Self { shares: Vec::new(), buffer: Box::default() }
    }

    /// Runs a command for the shares of `thread`.
    pub(crate) fn run(&mut self, thread: usize, command: ShareCommand<S>) {
        let is = |it: &ServedShare<S>, subscriber| {
            it.thread == thread && it.share.subscriber() == subscriber
        };
        match command {
            ShareCommand::Serve(share) => self.shares.push(ServedShare { thread, joins: 0, share }),
            ShareCommand::Join { subscriber, source, topic } => {
                if let Some(served) = self.shares.iter_mut().find(|it| is(it, subscriber)) {
                    served.joins += 1;
                    served.share.join(source, topic);
                }
            }
            ShareCommand::Remove { subscriber } => self.shares.retain(|it| !is(it, subscriber)),
        }
    }

    /// Serves the shares of a thread that has ended, after the commands that it has left.
    pub(crate) fn adopt(
        &mut self,
        thread: usize,
        shares: Vec<ServedShare<S>>,
        commands: Vec<ShareCommand<S>>,
    ) {
        self.shares.extend(shares);
        for command in commands {
            self.run(thread, command);
        }
        self.shares.iter_mut().for_each(|it| it.share.set_thread(None));
    }

    /// One turn of all shares; returns the number of deliveries.
    pub(crate) fn serve(
        &mut self,
        now: Nanos,
        wait_set: &mut WaitSet,
        released: &mut Vec<Release>,
    ) -> usize {
        if self.buffer.is_empty() && !self.shares.is_empty() {
            self.buffer = tcp_receiver::read_buffer();
        }
        let mut deliveries = 0;
        let mut turn = Turn { buffer: &mut self.buffer, wait_set, released: Vec::new() };
        for ServedShare { thread, joins, share } in &mut self.shares {
            deliveries += share.serve(now, &mut turn);
            let (subscriber, thread, joins) = (share.subscriber(), *thread, *joins);
            let sessions = turn.released.drain(..);
            released.extend(sessions.map(|session| Release { subscriber, thread, session, joins }));
        }
        deliveries
    }
}

/// The way of a receive thread's reports to the conductor.
#[derive(Debug)]
pub(crate) struct ReportQueue<S> {
    pub(crate) reports: Arc<CommandQueue<ThreadReport<S>>>,
    pub(crate) waker: Arc<ConductorWaker>,
}

impl<S> ReportQueue<S> {
    fn push(&self, report: ThreadReport<S>) {
        // Queued before the wake-up: the thread that wakes finds it.
        self.reports.push(report);
        self.waker.wake();
    }
}

/// The agent of a receive thread.
#[derive(Debug)]
pub(crate) struct ReceiveThread<S: Served> {
    /// Index among the context's receive threads.
    thread: usize,
    commands: Arc<CommandQueue<ShareCommand<S>>>,
    server: ShareServer<S>,
    released: Vec<Release>,
    to_conductor: ReportQueue<S>,
}

impl<S: Served> ReceiveThread<S> {
    pub(crate) fn new(
        thread: usize,
        commands: Arc<CommandQueue<ShareCommand<S>>>,
        to_conductor: ReportQueue<S>,
    ) -> Self {
        let server = ShareServer::new();
        Self { thread, commands, server, released: Vec::new(), to_conductor }
    }
}

impl<S: Served> SubAgent for ReceiveThread<S> {
    fn do_work(&mut self, now: Nanos, wait_set: &mut WaitSet) -> usize {
        let commands = self.commands.drain();
        let count = commands.len();
        for command in commands {
            self.server.run(self.thread, command);
        }
        let deliveries = self.server.serve(now, wait_set, &mut self.released);
        for release in self.released.drain(..) {
            self.to_conductor.push(ThreadReport::Released(release));
        }
        count + deliveries
    }
}

impl<S: Served> Drop for ReceiveThread<S> {
    fn drop(&mut self) {
        // Commands that are still queued are the conductor's to run, behind this report.
        let shares = std::mem::take(&mut self.server.shares);
        self.to_conductor.push(ThreadReport::Gone { thread: self.thread, shares });
    }
}
