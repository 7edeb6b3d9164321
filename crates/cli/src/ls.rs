//! `lanecast ls`: looks at the sessions' own memory, two of them so that rates can be told, and at
//! the counters files of sessions on the network.

mod network;

use crate::context::DomainArgs;
use crate::counters;
use crate::group::ls::local_groups;
use crate::output::print;
use crate::printable::{printable, topics};
use crate::sessions::{NUMBER_COLUMNS, Session, Subscriber, errors, since, wait_name};
use crate::table::{byte_rate, columns, grouped, rate, render, room_beside, size};
use crate::watch::{Block, WatchArgs};
use lanecast::shm::DomainSnapshot;
use lanecast::{TopicPattern, parse_duration};
use lanecast_report::{TextTable, wrap};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `ls`.
#[derive(Debug, clap::Args)]
pub(crate) struct LsArgs {
    /// Show only sessions with a topic that matches, such as 'prices.*': * stands for any
    /// characters but . and /, and ** for any
    #[arg(value_name = "PATTERN", value_parser = TopicPattern::wildcard)]
    pattern: Option<TopicPattern>,

    /// Time between the first two looks, which rates are computed from
    #[arg(long, value_name = "DURATION", default_value = "250ms", value_parser = parse_duration)]
    interval: Duration,

    /// Show only sessions with a topic that contains this
    #[arg(long, value_name = "TEXT")]
    topic: Option<String>,

    /// Print the topics of living sessions, one on a line, and nothing else
    #[arg(short = '1', long, conflicts_with_all = ["json", "watch"])]
    one_per_line: bool,

    /// Print one JSON array; with --watch, one for each look, on a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    watch: WatchArgs,

    #[command(flatten)]
    domain: DomainArgs,
}

impl LsArgs {
    /// Whether the topic is to be shown.
    fn wants(&self, topic: &str) -> bool {
        self.topic.as_ref().is_none_or(|text| topic.contains(text))
            && self.pattern.as_ref().is_none_or(|pattern| pattern.matches(topic))
    }

    /// Whether a session with these topics is to be shown.
    fn wants_any(&self, topics: &[String]) -> bool {
        self.topic.is_none() && self.pattern.is_none() || topics.iter().any(|it| self.wants(it))
    }
}

pub(crate) fn run(arguments: &LsArgs) -> anyhow::Result<ExitCode> {
    let directory = arguments.domain.directory()?;
    if arguments.one_per_line {
        return print_topics(arguments, &Seen::take(&directory)?);
    }
    let mut before = None;
    arguments.watch.run(!arguments.json, || {
        let then = match before.take() {
            Some(then) => then,
            None => first(&directory, arguments.interval)?,
        };
        let now = Seen::take(&directory)?;
        let mut sessions = since(&then.memory, &now.memory);
        sessions.retain(|session| arguments.wants_any(&session.report.topics));
        let wanted = |topics: &[String]| arguments.wants_any(topics);
        let remote = network::sessions(&then.network, &now.network, wanted);
        let text = if arguments.json {
            let remote = remote.iter().map(network::to_json);
            arguments.watch.json_line(sessions.iter().map(session_json).chain(remote))
        } else if sessions.is_empty() && remote.is_empty() {
            let what = if now.is_empty() { "no sessions" } else { "no such topic" };
            format!("{what} in {}\n", directory.display())
        } else {
            let local = (!sessions.is_empty()).then(|| to_text(&sessions));
            let remote = (!remote.is_empty()).then(|| network::to_text(&remote));
            let groups = groups_line(&local_groups(&now.memory, &now.network));
            local.into_iter().chain(remote).chain(groups).collect::<Vec<_>>().join("\n")
        };
        let errors = now.errors();
        before = Some(now);
        Ok(Block { text, errors })
    })
}

/// Snapshots of sessions in memory and on the network.
struct Seen {
    memory: DomainSnapshot,
    network: lanecast_stats::StatsSnapshot,
}

impl Seen {
    fn take(directory: &Path) -> std::io::Result<Self> {
        Ok(Self {
            memory: DomainSnapshot::take(directory)?,
            network: lanecast_stats::StatsSnapshot::take(directory)?,
        })
    }

    fn is_empty(&self) -> bool {
        self.memory.sessions.is_empty() && network::reports(&self.network, |_| true).is_empty()
    }

    fn errors(&self) -> Vec<String> {
        let mut errors = errors(&self.memory);
        errors.extend(counters::errors(&self.network));
        errors
    }
}

/// The look that the first rates start from.
fn first(directory: &Path, interval: Duration) -> std::io::Result<Seen> {
    let seen = Seen::take(directory)?;
    if !seen.is_empty() {
        std::thread::sleep(interval);
    }
    Ok(seen)
}

fn print_topics(arguments: &LsArgs, seen: &Seen) -> anyhow::Result<ExitCode> {
    let living = seen.memory.sessions.iter().filter(|report| report.is_alive && !report.is_closed);
    let remote = network::reports(&seen.network, |_| true).into_iter().filter(|r| r.is_alive);
    let topics = living.flat_map(|report| &report.topics);
    let topics = topics.chain(remote.flat_map(|report| &report.topics));
    let topics = topics.filter(|topic| arguments.wants(topic));
    let lines: BTreeSet<String> = topics.map(|topic| printable(topic) + "\n").collect();
    seen.errors().iter().for_each(|error| crate::output::warn(&printable(error)));
    print(&lines.into_iter().collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

/// Says which of the topics are those of groups.
fn groups_line(groups: &BTreeSet<String>) -> Option<String> {
    let names = Vec::from_iter(groups.iter().map(|group| printable(group))).join(", ");
    let line = format!("groups: {names} (members and views: lanecast group ls)");
    (!groups.is_empty()).then(|| wrap(&line, columns()).join("\n") + "\n")
}

fn to_text(sessions: &[Session]) -> String {
    let first = ["session", "role", ">pid", "process", "state", "topics", ">messages", ">rate"];
    let more = [">bytes/s", ">lag", ">behind", "wait", "note"];
    let mut table = TextTable::new(&[&first[..], &more[..]].concat());
    for session in sessions {
        table.row(publisher_row(session));
        for subscriber in session.subscribers() {
            table.row(subscriber_row(&subscriber));
        }
    }
    render(&table)
}

fn publisher_row(session: &Session) -> [String; 13] {
    let report = &session.report;
    let held = session.rates.back_pressured;
    let held = if held > 0.0 { format!(", no room {}", rate(held)) } else { String::new() };
    [
        session.number(),
        "publisher".into(),
        report.publisher.pid.to_string(),
        printable(&report.name),
        session.state().into(),
        topics(&report.topics, room_beside(NUMBER_COLUMNS)),
        grouped(report.messages),
        rate(session.rates.messages),
        byte_rate(session.rates.bytes),
        String::new(),
        String::new(),
        wait_name(report.wait).into(),
        format!("window {}{held}", lanecast::Size(report.window_bytes)),
    ]
}

fn subscriber_row(subscriber: &Subscriber<'_>) -> [String; 13] {
    let report = subscriber.report;
    let holds = subscriber.holds_publisher_up();
    [
        String::new(),
        "subscriber".into(),
        report.process.pid.to_string(),
        printable(&report.name),
        subscriber.state().into(),
        String::new(),
        grouped(report.messages),
        rate(subscriber.rates.messages),
        String::new(),
        size(report.lag_bytes),
        subscriber.behind(),
        wait_name(report.wait).into(),
        if holds { "holds the publisher up".into() } else { String::new() },
    ]
}

fn session_json(session: &Session) -> Value {
    let Session { report, rates } = session;
    json!({
        "session": session.number(),
        "transport": "shm",
        "pid": report.publisher.pid,
        "name": report.name,
        "state": session.state(),
        "topics": report.topics,
        "window_bytes": report.window_bytes,
        "window_fill": session.fill(),
        "position": report.position,
        "messages": report.messages,
        "messages_per_second": rates.messages,
        "bytes_per_second": rates.bytes,
        "back_pressured": report.back_pressured,
        "back_pressured_per_second": rates.back_pressured,
        "evictions": report.evictions,
        "wakes": report.wakes,
        "wait": report.wait.map(|wait| wait.name()),
        "created_unix_ns": report.created_unix_ns,
        "subscribers": session.subscribers().map(|s| subscriber_json(&s)).collect::<Vec<_>>(),
    })
}

fn subscriber_json(subscriber: &Subscriber<'_>) -> Value {
    let report = subscriber.report;
    json!({
        "slot": report.slot,
        "pid": report.process.pid,
        "name": report.name,
        "state": subscriber.state(),
        "lag_bytes": report.lag_bytes,
        "window_fill": subscriber.fill(),
        "lag_messages_estimate": subscriber.lag_messages(),
        "holds_publisher_up": subscriber.holds_publisher_up(),
        "messages": report.messages,
        "messages_per_second": subscriber.rates.messages,
        "sleeps": report.sleeps,
        "sleeps_per_second": subscriber.rates.sleeps,
        "wait": report.wait.map(|wait| wait.name()),
    })
}
