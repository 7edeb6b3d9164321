//! The conductor's end of the receive threads: which of them serves a session.
//!
//! Owned by the conductor's `receiver_agent`, the only thread that gives sessions away. A session
//! stays with its thread until that one reports that nothing is left of it, so that no session is
//! served by two. Shares of a thread that has ended are served by the conductor.

mod assignment;
#[cfg(test)]
mod tests;

use crate::conductor::{CommandQueue, WaitSet};
use crate::conductor_waker::ConductorWaker;
use crate::receive_thread::{Release, Served, ShareCommand, ShareServer, ThreadReport};
use crate::source::Source;
use assignment::Assignment;
use lanecast_protocol::Nanos;
use std::collections::HashMap;
use std::sync::Arc;

/// The way of commands to one receive thread.
#[derive(Debug)]
pub(crate) struct ThreadHandle<S> {
    pub(crate) commands: Arc<CommandQueue<ShareCommand<S>>>,
    pub(crate) waker: Arc<ConductorWaker>,
}

/// A receive thread, as the conductor knows it.
#[derive(Debug)]
struct KnownThread<S> {
    handle: ThreadHandle<S>,
    /// Sessions of all subscribers.
    sessions: usize,
    is_gone: bool,
}

/// All receive threads of a context.
#[derive(Debug)]
pub(crate) struct ReceiveThreads<S> {
    threads: Vec<KnownThread<S>>,
    /// The sessions of each subscriber.
    assignments: HashMap<u64, Assignment>,
    reports: Arc<CommandQueue<ThreadReport<S>>>,
    /// Shares of threads that have ended.
    server: ShareServer<S>,
    released: Vec<Release>,
}

impl<S: Served> ReceiveThreads<S> {
    pub(crate) fn new(
        handles: Vec<ThreadHandle<S>>,
        reports: Arc<CommandQueue<ThreadReport<S>>>,
    ) -> Self {
        let known = |handle| KnownThread { handle, sessions: 0, is_gone: false };
        Self {
            threads: handles.into_iter().map(known).collect(),
            assignments: HashMap::new(),
            reports,
            server: ShareServer::new(),
            released: Vec::new(),
        }
    }

    /// Adds a subscriber with a share for each thread.
    pub(crate) fn add(&mut self, subscriber: u64, shares: Vec<S>) {
        for (thread, mut share) in shares.into_iter().enumerate() {
            share.set_thread((!self.threads[thread].is_gone).then_some(thread));
            self.command(thread, ShareCommand::Serve(share));
        }
        self.assignments.insert(subscriber, Assignment::new(self.threads.len()));
    }

    pub(crate) fn remove(&mut self, subscriber: u64) {
        let Some(assignment) = self.assignments.remove(&subscriber) else { return };
        for thread in assignment.threads() {
            self.threads[thread].sessions -= 1;
        }
        for thread in 0..self.threads.len() {
            self.command(thread, ShareCommand::Remove { subscriber });
        }
    }

    /// Has a publisher of `topic` joined by the thread that serves its session, or else by the one
    /// with the fewest sessions. Sessions of one multicast group share a socket, and a thread.
    pub(crate) fn join(&mut self, subscriber: u64, source: Source, topic: String) {
        let Some(assignment) = self.assignments.get_mut(&subscriber) else { return };
        let thread = assignment.of(&source).unwrap_or_else(|| {
            let all = self.threads.iter().enumerate();
            // Those that have ended come last: the conductor serves their shares.
            let least = all.min_by_key(|(_, thread)| (thread.is_gone, thread.sessions));
            least.map_or(0, |(index, _)| index)
        });
        if assignment.join(&source, thread) {
            self.threads[thread].sessions += 1;
        }
        self.command(thread, ShareCommand::Join { subscriber, source, topic });
    }

    /// Runs the command by the thread, or here if that one has ended.
    fn command(&mut self, thread: usize, command: ShareCommand<S>) {
        let KnownThread { handle, is_gone, .. } = &self.threads[thread];
        if *is_gone {
            self.server.run(thread, command);
        } else {
            // Queued before the wake-up: the thread that wakes finds it.
            handle.commands.push(command);
            handle.waker.wake();
        }
    }

    fn release(&mut self, release: Release) {
        let Release { subscriber, thread, session, joins } = release;
        let assignment = self.assignments.get_mut(&subscriber);
        if assignment.is_some_and(|it| it.release(session, thread, joins)) {
            self.threads[thread].sessions -= 1;
        }
    }

    /// Runs the reports of the threads, and serves the shares of those that have ended; returns the
    /// number of both.
    pub(crate) fn do_work(&mut self, now: Nanos, wait_set: &mut WaitSet) -> usize {
        let reports = self.reports.drain();
        let count = reports.len();
        for report in reports {
            match report {
                ThreadReport::Released(release) => self.release(release),
                ThreadReport::Gone { thread, shares } => {
                    let known = &mut self.threads[thread];
                    known.is_gone = true;
                    // No other thread reads its queue any more, and only this one writes to it.
                    self.server.adopt(thread, shares, known.handle.commands.drain());
                }
            }
        }
        let deliveries = self.server.serve(now, wait_set, &mut self.released);
        for release in std::mem::take(&mut self.released) {
            self.release(release);
        }
        count + deliveries
    }
}
