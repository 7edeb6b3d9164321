//! The hand-over of sessions between conductor and receive threads, under seeded interleavings.
//!
//! Threads meet in queues only, so one turn of one of them is a step: any order of steps may
//! happen. A ledger notes each session that is served, and by which thread.

use super::*;
use crate::conductor::SubAgent;
use crate::receive_thread::{ReceiveThread, ReportQueue, Turn};
use crate::source::TransportKind;
use lanecast_protocol::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Steps of each run.
const STEPS: u64 = 1_000;
/// The most subscribers at a time.
const SUBSCRIBERS: usize = 3;
const SESSIONS: u64 = 12;

/// Facts about all sessions, by subscriber and number.
#[derive(Debug, Default)]
struct Ledger {
    /// The server of each: a thread's index, or `None` for the conductor.
    served: BTreeMap<(u64, u64), Option<usize>>,
    /// Joins that shares have got.
    joins: u64,
    /// Shares that exist, by subscriber, and the threads whose shares have been served.
    shares: BTreeMap<u64, usize>,
    active: BTreeSet<Option<usize>>,
}

#[derive(Clone, Debug, Default)]
struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A share without sockets, whose sessions end by chance.
#[derive(Debug)]
struct SimulatedShare {
    subscriber: u64,
    thread: Option<usize>,
    found: BTreeSet<u64>,
    sessions: BTreeSet<u64>,
    rng: Rng,
    ledger: SharedLedger,
}

impl SimulatedShare {
    fn new(subscriber: u64, seed: u64, ledger: &SharedLedger) -> Self {
        *ledger.lock().shares.entry(subscriber).or_default() += 1;
        Self {
            subscriber,
            thread: None,
            found: BTreeSet::new(),
            sessions: BTreeSet::new(),
            rng: Rng::new(seed),
            ledger: ledger.clone(),
        }
    }

    fn end(&self, session: u64) {
        let server = self.ledger.lock().served.remove(&(self.subscriber, session));
        assert_eq!(server, Some(self.thread), "session {session} was served elsewhere too");
    }
}

impl Served for SimulatedShare {
    fn subscriber(&self) -> u64 {
        self.subscriber
    }

    fn set_thread(&mut self, thread: Option<usize>) {
        self.thread = thread;
        for session in &self.sessions {
            self.ledger.lock().served.insert((self.subscriber, *session), thread);
        }
    }

    fn join(&mut self, source: Source, _topic: String) {
        self.ledger.lock().joins += 1;
        self.found.insert(source.session);
    }

    fn serve(&mut self, _now: Nanos, turn: &mut Turn<'_>) -> usize {
        self.ledger.lock().active.insert(self.thread);
        for session in std::mem::take(&mut self.found) {
            // One of eight joins is refused.
            if self.sessions.contains(&session) || self.rng.below(8) == 0 {
                continue;
            }
            let other = self.ledger.lock().served.insert((self.subscriber, session), self.thread);
            assert_eq!(other, None, "session {session} is served by two");
            self.sessions.insert(session);
        }
        let ending: Vec<u64> =
            self.sessions.iter().copied().filter(|_| self.rng.below(4) == 0).collect();
        for session in &ending {
            self.sessions.remove(session);
            self.end(*session);
        }
        turn.released.extend(ending);
        // Refused joins leave nothing, either; a session may be named twice.
        turn.released.extend((0..SESSIONS).filter(|it| !self.sessions.contains(it)));
        0
    }
}

impl Drop for SimulatedShare {
    fn drop(&mut self) {
        self.sessions.iter().for_each(|session| self.end(*session));
        let mut ledger = self.ledger.lock();
        *ledger.shares.entry(self.subscriber).or_default() -= 1;
    }
}

/// A conductor and its receive threads.
struct Context {
    conductor: ReceiveThreads<SimulatedShare>,
    threads: Vec<Option<ReceiveThread<SimulatedShare>>>,
    ledger: SharedLedger,
    rng: Rng,
    /// Subscribers that are there, and the number of the next one.
    subscribers: Vec<u64>,
    next: u64,
}

fn waker() -> Arc<ConductorWaker> {
    Arc::new(ConductorWaker::new().expect("an event"))
}

impl Context {
    fn new(seed: u64, count: usize) -> Self {
        let (reports, conductor_waker) = (Arc::<CommandQueue<_>>::default(), waker());
        let (mut handles, mut threads) = (Vec::new(), Vec::new());
        for thread in 0..count {
            let commands = Arc::<CommandQueue<_>>::default();
            let to_conductor =
                ReportQueue { reports: Arc::clone(&reports), waker: Arc::clone(&conductor_waker) };
            let agent = ReceiveThread::new(thread, Arc::clone(&commands), to_conductor);
            handles.push(ThreadHandle { commands, waker: waker() });
            threads.push(Some(agent));
        }
        Self {
            conductor: ReceiveThreads::new(handles, reports),
            threads,
            ledger: SharedLedger::default(),
            rng: Rng::new(seed),
            subscribers: Vec::new(),
            next: 0,
        }
    }

    fn source(&mut self) -> Source {
        let session = self.rng.below(SESSIONS);
        let address = SocketAddr::from(([127, 0, 0, 1], 1_000));
        // Every fourth session shares one group.
        let group = session.is_multiple_of(4).then(|| SocketAddr::from(([239, 0, 0, 1], 7)));
        Source { kind: TransportKind::Rm, session, address, group, pid: 0 }
    }

    fn add(&mut self) {
        let (subscriber, rng) = (self.next, &mut self.rng);
        let share = |_| SimulatedShare::new(subscriber, rng.next_u64(), &self.ledger);
        let shares = (0..self.threads.len()).map(share).collect();
        self.conductor.add(subscriber, shares);
        self.subscribers.push(subscriber);
        self.next += 1;
    }

    fn remove(&mut self) {
        let at = self.rng.below(self.subscribers.len() as u64) as usize;
        let subscriber = self.subscribers.swap_remove(at);
        self.conductor.remove(subscriber);
    }

    fn any_thread(&mut self) -> usize {
        self.rng.below(self.threads.len() as u64) as usize
    }

    fn step(&mut self) {
        match self.rng.below(64) {
            0..16 => {
                let source = self.source();
                for subscriber in self.subscribers.clone() {
                    self.conductor.join(subscriber, source, "topic".into());
                }
            }
            16..32 => self.run_conductor(),
            32..34 if self.subscribers.len() < SUBSCRIBERS => self.add(),
            34 if self.subscribers.len() > 1 => self.remove(),
            35 if self.rng.below(8) == 0 => {
                // The thread ends, whatever is in its queue.
                let thread = self.any_thread();
                drop(self.threads[thread].take());
            }
            _ => {
                let thread = self.any_thread();
                self.run_thread(thread);
            }
        }
    }

    fn run_conductor(&mut self) {
        self.conductor.do_work(0, &mut WaitSet::new());
    }

    fn run_thread(&mut self, thread: usize) {
        if let Some(agent) = &mut self.threads[thread] {
            agent.do_work(0, &mut WaitSet::new());
        }
    }

    /// Runs all until the queues are empty.
    fn settle(&mut self) {
        for _ in 0..3 {
            (0..self.threads.len()).for_each(|thread| self.run_thread(thread));
            self.run_conductor();
        }
    }
}

#[test]
fn a_session_is_served_by_one_thread_whichever_ends() {
    for seed in 0..40 {
        let mut context = Context::new(seed, 1 + seed as usize % 4);
        context.add();
        for _ in 0..STEPS {
            context.step();
        }
        context.settle();
        for subscriber in 0..context.next {
            let shares = context.ledger.lock().shares[&subscriber];
            let is_there = context.subscribers.contains(&subscriber);
            let expected = if is_there { context.threads.len() } else { 0 };
            assert_eq!(shares, expected, "seed {seed}: shares of subscriber {subscriber}");
        }
        // Shares of threads that have ended are served on, by the conductor.
        context.ledger.lock().active.clear();
        context.settle();
        let gone = context.threads.iter().any(Option::is_none);
        let active = context.ledger.lock().active.clone();
        assert_eq!(active.contains(&None), gone, "seed {seed}");
        for (index, thread) in context.threads.iter().enumerate() {
            assert_eq!(active.contains(&Some(index)), thread.is_some(), "seed {seed}");
        }
    }
}

#[test]
fn no_join_is_lost_with_a_thread() {
    for seed in 0..50 {
        let mut context = Context::new(seed, 2);
        context.add();
        for step in 0..40 {
            let source = context.source();
            context.conductor.join(0, source, "topic".into());
            if step == seed % 40 {
                drop(context.threads[0].take());
            }
            if context.rng.below(2) == 0 {
                context.run_conductor();
            }
        }
        context.settle();
        assert_eq!(context.ledger.lock().joins, 40, "seed {seed}");
    }
}

#[test]
fn counts_of_sessions_fall_to_zero_with_the_last_subscriber() {
    let mut context = Context::new(7, 3);
    context.add();
    for _ in 0..STEPS {
        context.step();
    }
    context.settle();
    while !context.subscribers.is_empty() {
        context.remove();
    }
    context.settle();
    assert!(context.conductor.threads.iter().all(|thread| thread.sessions == 0));
    assert!(context.ledger.lock().served.is_empty());
}

#[test]
fn sessions_spread_and_those_of_a_group_stay_together() {
    let mut context = Context::new(1, 3);
    context.add();
    let address = SocketAddr::from(([127, 0, 0, 1], 1_000));
    let alone = |session| Source { kind: TransportKind::Ru, session, address, group: None, pid: 0 };
    for session in 0..6 {
        context.conductor.join(0, alone(session), "a".into());
        // Another topic of the session goes to its thread.
        context.conductor.join(0, alone(session), "b".into());
    }
    let counts = |context: &Context| -> Vec<usize> {
        context.conductor.threads.iter().map(|thread| thread.sessions).collect()
    };
    assert_eq!(counts(&context), [2, 2, 2]);
    let group = Some(SocketAddr::from(([239, 0, 0, 1], 7)));
    for session in 6..9 {
        let source = Source { kind: TransportKind::Rm, group, ..alone(session) };
        context.conductor.join(0, source, "a".into());
    }
    assert_eq!(counts(&context), [5, 2, 2]);
}
