//! The part of persistence: a store keeps the messages of a publisher; a subscriber is killed, and
//! gets what it missed when it is started again.

use super::actors::context;
use super::control::Control;
use crate::child::{ChildProcess, Deadline};
use crate::output::print_json;
use crate::table::{counted, grouped, time};
use crate::temp_domain::TempDomain;
use anyhow::{Context as _, ensure};
use lanecast::PersistentPublisher;
use lanecast::persistence::ReceiverEvent;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Name of the store.
const STORE: &str = "demo";
/// Id of the publisher.
const SOURCE: u64 = 7;
/// Id of the subscriber, in both of its lives.
const RECEIVER: u64 = 99;
/// Messages that are published, and consumed, before the subscriber is killed.
const BEFORE: u64 = 5_000;
/// Messages that are published while it is dead.
const MISSED: u64 = 20_000;
/// Messages that are published when it is back.
const AFTER: u64 = 1_000;
/// Length of a message, which begins with its sequence.
const LENGTH: usize = 100;
/// Longest life of a process: longer than the part takes on a busy machine.
const LONGEST_LIFE: Duration = Duration::from_secs(60);
/// Longest sleep of an idle process.
const LONGEST_WAIT: Duration = Duration::from_millis(10);

/// The life of a subscriber so far, as it reports it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LifeFigures {
    /// Sequence of its first message.
    first: u64,
    /// Sequence after its last message.
    next: u64,
    /// Messages that came from the store.
    recovered: u64,
    /// Messages that were missing, repeated, or others than were sent.
    wrong: u64,
    /// Time from its start to its last message.
    caught_up_ns: u64,
    /// Sequence up to which the store knows what it has consumed.
    acknowledged: u64,
}

/// Results of this part.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    published: u64,
    victim_pid: u32,
    missed: u64,
    first_life: LifeFigures,
    second_life: LifeFigures,
}

impl Outcome {
    /// Whether the second life went on where the first one had come to, and missed nothing.
    pub(super) const fn is_right(&self) -> bool {
        let Self { published, first_life, second_life, .. } = self;
        second_life.first >= first_life.acknowledged
            && second_life.first <= BEFORE
            && second_life.next == *published
            && first_life.wrong + second_life.wrong == 0
    }

    /// The figures and the verdict, for people.
    pub(super) fn words(&self) -> String {
        let Self { published, victim_pid, missed, first_life, second_life } = self;
        let verdict = if self.is_right() {
            "The subscriber went on behind the last message that it had acknowledged, and has \
             every message."
        } else {
            "Messages are missing or wrong: this should not happen, please report it."
        };
        format!(
            "A store keeps the messages of a publisher; their subscriber, process {victim_pid}, is \
             killed (kill -9) and started again.\n\n\
             before    {:>12}   messages acknowledged, of {} published in all\n\
             missed    {:>12}   messages published while it was dead, each of them on disk\n\
             caught up {:>12}   after its start, with {} from the store\n\n\
             {verdict}",
            grouped(first_life.acknowledged),
            grouped(*published),
            grouped(*missed),
            time(second_life.caught_up_ns),
            counted(second_life.recovered, "message"),
        )
    }
}

/// Runs the store, the subscriber's two lives, and the publisher in this process.
pub(super) fn run(control: &Control<'_>) -> anyhow::Result<Outcome> {
    (control.step)("store: registering");
    let stage = TempDomain::build("store")?;
    let domain = stage.path("domain");
    let deadline = control.deadline(LONGEST_LIFE);
    let words = |role: &str, rest: String| {
        ["demo".into(), role.into(), domain.to_string_lossy().into_owned(), rest]
    };
    let data = stage.path("data").to_string_lossy().into_owned();
    let mut store = ChildProcess::start("store", &words("store", data))?;
    let context = context(&domain)?;
    let topic = context.topic("orders").persistent(SOURCE).stores([STORE]);
    let mut publisher = topic.publisher()?;
    let all = BEFORE + MISSED + AFTER;
    let start =
        |until: u64| ChildProcess::start("subscriber", &words("durable", until.to_string()));
    // Its first life would last until all are there, and reports when it has acknowledged some.
    let mut victim = start(all)?;
    send(&mut publisher, BEFORE, &deadline)?;
    let first_life: LifeFigures = victim.read(&deadline)?;
    (control.step)("store: the subscriber is killed");
    let victim_pid = victim.pid();
    victim.end();
    send(&mut publisher, MISSED, &deadline)?;
    (control.step)("store: the subscriber is back");
    let mut heir = start(all)?;
    send(&mut publisher, AFTER, &deadline)?;
    let second_life = loop {
        let life: LifeFigures = heir.read(&deadline)?;
        if life.next == all {
            break life;
        }
    };
    store.end();
    let missed = MISSED;
    Ok(Outcome { published: all, victim_pid, missed, first_life, second_life })
}

/// Publishes so many messages, until they are stable.
fn send(
    publisher: &mut PersistentPublisher,
    count: u64,
    deadline: &Deadline<'_>,
) -> anyhow::Result<()> {
    let mut sent = 0;
    let mut body = [0; LENGTH];
    while sent < count || publisher.stable() < publisher.next() {
        ensure!(!(deadline.stop)(), "interrupted");
        ensure!(Instant::now() < deadline.until, "the store does not accept messages");
        if sent < count {
            body[..8].copy_from_slice(&publisher.next().to_le_bytes());
            match publisher.try_send(&body) {
                Ok(_) => {
                    sent += 1;
                    continue;
                }
                Err(error) if error.may_pass() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let work = publisher.poll(|_| {});
        publisher.wait_at_most(work, LONGEST_WAIT);
    }
    Ok(())
}

/// The store, which its starter ends.
pub(super) fn keep(domain: &Path, data: &Path) -> anyhow::Result<ExitCode> {
    let mut store = context(domain)?.store(STORE, data)?;
    let start = Instant::now();
    while start.elapsed() < LONGEST_LIFE {
        let work = store.poll()?;
        store.wait_at_most(work, LONGEST_WAIT);
    }
    Ok(ExitCode::SUCCESS)
}

/// A subscriber that reports when it has acknowledged the first messages, and when it has those
/// before `until`.
pub(super) fn subscribe(domain: &Path, until: u64) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let context = context(domain)?;
    let mut feed = context.topic("orders").durable(RECEIVER).stores([STORE]).subscriber()?;
    let (mut life, mut has_begun, mut has_reported) = (LifeFigures::default(), false, false);
    while life.next < until {
        ensure!(start.elapsed() < LONGEST_LIFE, "messages are missing from {} on", life.next);
        let work = feed.poll(256, |event| match event {
            ReceiverEvent::Joined { next, .. } => (life.first, life.next) = (next, next),
            ReceiverEvent::Message(message) => {
                let number = message.bytes().first_chunk().map(|it| u64::from_le_bytes(*it));
                let is_right = message.sequence() == life.next && number == Some(life.next);
                life.wrong += u64::from(!is_right);
                life.recovered += u64::from(message.is_recovered());
                (life.next, has_begun) = (message.sequence() + 1, true);
            }
            ReceiverEvent::Lost { count, .. } | ReceiverEvent::Discarded { count, .. } => {
                life.wrong += count;
            }
            ReceiverEvent::Acknowledged { next, .. } => life.acknowledged = next,
            _ => {}
        });
        if has_begun && !has_reported && life.acknowledged >= BEFORE {
            has_reported = true;
            print_json(&life)?;
        }
        feed.wait_at_most(work, LONGEST_WAIT);
    }
    life.caught_up_ns = u64::try_from(start.elapsed().as_nanos()).context("a long life")?;
    print_json(&life)?;
    Ok(ExitCode::SUCCESS)
}
