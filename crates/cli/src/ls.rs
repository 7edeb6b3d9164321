//! `lanecast ls`: two looks at the sessions' own memory, so that rates can be told.

use crate::context::DomainArgs;
use crate::output::{print, print_json, print_line};
use crate::table::{rate, render, table};
use lanecast::shm::{SessionReport, SubscriberReport, inspect};
use lanecast::{Size, parse_duration};
use lanecast_os::process::State;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Arguments of `ls`.
#[derive(Debug, clap::Args)]
pub(crate) struct LsArgs {
    /// Time between the two looks that rates are computed from
    #[arg(long, value_name = "DURATION", default_value = "250ms", value_parser = parse_duration)]
    interval: Duration,

    /// Print one JSON array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    domain: DomainArgs,
}

/// A session, its rate, and its subscribers' rates, in messages per second.
struct Row {
    report: SessionReport,
    rate: f64,
    subscriber_rates: Vec<f64>,
}

pub(crate) fn run(arguments: &LsArgs) -> anyhow::Result<ExitCode> {
    let directory = arguments.domain.directory()?;
    let before = look(&directory, false)?;
    let start = Instant::now();
    if !before.is_empty() {
        std::thread::sleep(arguments.interval);
    }
    let after = look(&directory, true)?;
    let seconds = start.elapsed().as_secs_f64();
    let rows: Vec<Row> = after.into_iter().map(|report| row(report, &before, seconds)).collect();
    if arguments.json {
        print_json(&rows.iter().map(to_json).collect::<Vec<_>>())?;
    } else if rows.is_empty() {
        print_line(&format!("no sessions in {}", directory.display()))?;
    } else {
        print_text(&rows)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn look(directory: &Path, say_errors: bool) -> anyhow::Result<Vec<SessionReport>> {
    let mut reports = Vec::new();
    for report in inspect(directory)? {
        match report {
            Ok(report) => reports.push(report),
            Err(error) if say_errors => eprintln!("lanecast: {error}"),
            Err(_) => {}
        }
    }
    Ok(reports)
}

fn row(report: SessionReport, before: &[SessionReport], seconds: f64) -> Row {
    let per_second = |now: u64, then: u64| now.wrapping_sub(then) as f64 / seconds.max(1e-9);
    let then = before.iter().find(|earlier| earlier.session == report.session);
    let subscriber_rates = report.subscribers.iter().map(|subscriber| {
        let then = then.and_then(|then| {
            let same = |earlier: &&SubscriberReport| {
                (earlier.slot, earlier.process) == (subscriber.slot, subscriber.process)
            };
            then.subscribers.iter().find(same)
        });
        then.map_or(0.0, |then| per_second(subscriber.messages, then.messages))
    });
    Row {
        subscriber_rates: subscriber_rates.collect(),
        rate: then.map_or(0.0, |then| per_second(report.messages, then.messages)),
        report,
    }
}

fn session_state(report: &SessionReport) -> &'static str {
    match (report.is_closed, report.is_alive) {
        (true, _) => "closed",
        (false, true) => "alive",
        (false, false) => "dead",
    }
}

fn subscriber_state(subscriber: &SubscriberReport) -> &'static str {
    match subscriber {
        SubscriberReport { is_evicted: true, .. } => "evicted",
        SubscriberReport { is_alive: false, .. } => "dead",
        SubscriberReport { state: Some(State::Stopped), .. } => "stopped",
        _ => "alive",
    }
}

fn print_text(rows: &[Row]) -> std::io::Result<()> {
    let columns = ["session", "role", ">pid", "process", "state", "topics", ">messages", ">rate"];
    let mut table = table(&[&columns[..], &[">lag", "wait", "note"][..]].concat());
    for Row { report, rate: publisher_rate, subscriber_rates } in rows {
        let wait = |wait: Option<lanecast::WaitStrategy>| wait.map_or("?", |wait| wait.name());
        table.add_row([
            format!("{:016x}", report.session),
            "publisher".into(),
            report.publisher.pid.to_string(),
            report.name.clone(),
            session_state(report).into(),
            report.topics.join(","),
            report.messages.to_string(),
            rate(*publisher_rate),
            String::new(),
            wait(report.wait).into(),
            format!("window {}", Size(report.window_bytes)),
        ]);
        for (subscriber, subscriber_rate) in report.subscribers.iter().zip(subscriber_rates) {
            let full = subscriber.lag_bytes * 8 > report.window_bytes * 7;
            let holds = full && subscriber.is_alive && !subscriber.is_evicted;
            table.add_row([
                String::new(),
                "subscriber".into(),
                subscriber.process.pid.to_string(),
                subscriber.name.clone(),
                subscriber_state(subscriber).into(),
                String::new(),
                subscriber.messages.to_string(),
                rate(*subscriber_rate),
                Size(subscriber.lag_bytes).to_string(),
                wait(subscriber.wait).into(),
                if holds { "holds the publisher up".into() } else { String::new() },
            ]);
        }
    }
    print(&render(&table))
}

fn to_json(row: &Row) -> Value {
    let report = &row.report;
    let subscribers: Vec<_> = report.subscribers.iter().zip(&row.subscriber_rates).collect();
    json!({
        "session": format!("{:016x}", report.session),
        "pid": report.publisher.pid,
        "name": report.name,
        "state": session_state(report),
        "topics": report.topics,
        "window_bytes": report.window_bytes,
        "position": report.position,
        "messages": report.messages,
        "messages_per_second": row.rate,
        "back_pressured": report.back_pressured,
        "evictions": report.evictions,
        "wakes": report.wakes,
        "wait": report.wait.map(|wait| wait.name()),
        "created_unix_ns": report.created_unix_ns,
        "subscribers": subscribers.iter().map(|(subscriber, rate)| json!({
            "slot": subscriber.slot,
            "pid": subscriber.process.pid,
            "name": subscriber.name,
            "state": subscriber_state(subscriber),
            "lag_bytes": subscriber.lag_bytes,
            "messages": subscriber.messages,
            "messages_per_second": rate,
            "sleeps": subscriber.sleeps,
            "wait": subscriber.wait.map(|wait| wait.name()),
        })).collect::<Vec<_>>(),
    })
}
