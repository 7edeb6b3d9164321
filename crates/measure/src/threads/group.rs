//! Threads that measure together: each on its CPU, all from one moment on.

use super::thread::{Role, ThreadResult};
use crate::interference::{CounterSnapshot, load_average};
use crate::pinning::{Cpus, PinChoice, Pinning};
use lanecast_os::affinity;
use std::any::Any;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Instant;
use thiserror::Error;

/// Work of a thread, with its result.
pub(crate) type Work<'a, T> = Box<dyn FnOnce() -> T + Send + 'a>;

/// Errors of an exchange between threads.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failed {
    /// The system refuses a thread, or its place.
    #[error("there can be no {role} on CPU {cpu}: choose other CPUs with --cpus")]
    Unavailable {
        /// Role of the thread.
        role: Role,
        /// CPU of the thread.
        cpu: usize,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A thread panicked.
    #[error("the {0} broke off: {1}")]
    Panicked(Role, String),
    /// The ring cannot be built.
    #[error(transparent)]
    Ring(#[from] lanecast_ring::rings::BuildError),
    /// Messages have other lengths.
    #[error("messages of {0} bytes are not measured: choose of 8, 16, 32, 64, 128, 256")]
    Size(usize),
    /// The pipe cannot be made.
    #[error(transparent)]
    Pipe(#[from] lanecast_ring::pipe::CapacityError),
    /// The pipe's reader has no such signal.
    #[error(transparent)]
    Signal(#[from] lanecast_ring::signal::NoSuchSignal),
    /// There are no sockets to be had, or no event descriptor.
    #[error("the system gives no more descriptors")]
    Descriptors(#[from] std::io::Error),
}

/// Result of a thread.
#[derive(Debug)]
pub(crate) struct ThreadOutcome<T> {
    /// Start and end of its work.
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    pub(crate) thread: ThreadResult,
    pub(crate) found: T,
}

/// The threads of one exchange.
pub(crate) struct ThreadGroup<'a, T> {
    members: Vec<(Role, usize, Work<'a, T>)>,
}

impl<'a, T: Send> ThreadGroup<'a, T> {
    pub(crate) const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// Adds a thread on `cpu`.
    pub(crate) fn join(&mut self, role: Role, cpu: usize, work: impl FnOnce() -> T + Send + 'a) {
        self.members.push((role, cpu, Box::new(work)));
    }

    /// Starts all threads at once and waits for them; returns their results in the order of
    /// joining.
    ///
    /// # Errors
    /// If one cannot be had, in which case none works; or if one panics.
    pub(crate) fn run(self) -> Result<Vec<ThreadOutcome<T>>, Failed> {
        let sharing = CpuSharing::new(self.members.iter().map(|(_, cpu, _)| *cpu));
        std::thread::scope(|scope| {
            let mut started = Vec::new();
            for (role, cpu, work) in self.members {
                started.push(Started::new(scope, role, cpu, work)?);
            }
            // One that is let down here never works: its channel is gone when this returns.
            let going = started.iter().map(Started::is_ready).collect::<Result<Vec<_>, _>>()?;
            // Consumers start first, so that they are ready for the producers.
            for go in going.iter().rev() {
                // It has broken off since: its end tells why.
                let _ = go.send(());
            }
            started.into_iter().map(|member| member.finish(&sharing)).collect()
        })
    }
}

/// A started thread, waiting for the others or working.
struct Started<'scope, T> {
    role: Role,
    cpu: usize,
    ready: Receiver<std::io::Result<()>>,
    go: Sender<()>,
    thread: ScopedJoinHandle<'scope, Option<ThreadOutcome<T>>>,
}

impl<'scope, T: Send + 'scope> Started<'scope, T> {
    fn new(
        scope: &'scope Scope<'scope, '_>,
        role: Role,
        cpu: usize,
        work: Work<'scope, T>,
    ) -> Result<Self, Failed> {
        let (tell_ready, ready) = channel();
        let (go, started) = channel();
        let body = move || {
            let pinned = affinity::pin(cpu);
            let before = CounterSnapshot::take(Some(cpu));
            tell_ready.send(pinned).ok()?;
            started.recv().ok()?;
            let start = Instant::now();
            let found = work();
            let end = Instant::now();
            let place = Pinning { cpu: Some(cpu), choice: PinChoice::Given };
            let thread = ThreadResult {
                role,
                cpu,
                node: affinity::node_of(cpu),
                ran_on: Cpus::now(place).ran_on,
                interference: before.since(),
            };
            Some(ThreadOutcome { start, end, thread, found })
        };
        let spawned = Builder::new().name(role.to_string()).spawn_scoped(scope, body);
        let thread = spawned.map_err(|source| Failed::Unavailable { role, cpu, source })?;
        Ok(Self { role, cpu, ready, go, thread })
    }

    /// The channel to start it with, once it has its place.
    fn is_ready(&self) -> Result<&Sender<()>, Failed> {
        let (role, cpu) = (self.role, self.cpu);
        match self.ready.recv() {
            Ok(Ok(())) => Ok(&self.go),
            Ok(Err(source)) => Err(Failed::Unavailable { role, cpu, source }),
            Err(_) => Err(Failed::Panicked(role, "it never started".to_owned())),
        }
    }

    fn finish(self, sharing: &CpuSharing) -> Result<ThreadOutcome<T>, Failed> {
        let share =
            self.thread.join().map_err(|panic| Failed::Panicked(self.role, message(&*panic)))?;
        let mut share =
            share.ok_or_else(|| Failed::Panicked(self.role, "it gave up".to_owned()))?;
        sharing.evaluate(&mut share.thread);
        Ok(share)
    }
}

/// Message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given").to_owned()
}

/// Sharing of CPUs by measured threads, and the load by other programs.
struct CpuSharing {
    cpus: Vec<usize>,
    online: usize,
    load: Option<f64>,
}

impl CpuSharing {
    fn new(cpus: impl Iterator<Item = usize>) -> Self {
        let online = affinity::online().len();
        Self { cpus: cpus.collect(), online, load: load_average() }
    }

    /// Adds doubts about CPUs, and removes doubts about measured threads that share a CPU with each
    /// other.
    fn evaluate(&self, thread: &mut ThreadResult) {
        let here = self.cpus.iter().filter(|cpu| **cpu == thread.cpu).count();
        let mut cpus = self.cpus.clone();
        cpus.sort_unstable();
        cpus.dedup();
        let cpu = Some(thread.cpu);
        let (ran_on, online, choice) = (thread.ran_on, self.online, PinChoice::Given);
        let interference = &mut thread.interference;
        if here > 1 {
            interference.remove_turns();
            interference.doubt_shared_cpus(self.cpus.len(), cpus.len());
        }
        interference.doubt_cpu(&Cpus { pinned: cpu, choice, ran_on, online }, self.load);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first() -> usize {
        affinity::allowed().unwrap()[0]
    }

    #[test]
    fn all_work_at_once_and_are_told_apart() {
        let (send, receive) = channel();
        let mut group = ThreadGroup::new();
        // Each waits for the other: neither is let to work alone.
        group.join(Role::Producer, first(), move || send.send(7).map_or(0, |()| 1));
        group.join(Role::Consumer, first(), move || receive.recv().unwrap_or(0));
        let shares = group.run().unwrap();
        assert_eq!(shares.iter().map(|share| share.found).collect::<Vec<_>>(), [1, 7]);
        for share in &shares {
            assert!(share.start <= share.end);
            assert_eq!((share.thread.cpu, share.thread.ran_on), (first(), first()));
            let doubts = share.thread.interference.doubts.join("; ");
            assert!(doubts.contains("2 measured threads take turns on 1 CPU"), "{doubts}");
            assert!(!doubts.contains("other threads"), "{doubts}");
        }
    }

    #[test]
    fn no_thread_starts_if_one_fails() {
        let mut group = ThreadGroup::new();
        group.join(Role::Consumer, first(), || panic!("works"));
        group.join(Role::Producer, 99_999, || ());
        let error = group.run().unwrap_err();
        assert!(error.to_string().contains("no producer on CPU 99999"), "{error}");
    }

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        let mut group = ThreadGroup::<()>::new();
        group.join(Role::Consumer, first(), || panic!("no {}", "room"));
        let error = group.run().unwrap_err().to_string();
        assert_eq!(error, "the consumer broke off: no room");
    }
}
