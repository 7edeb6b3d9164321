//! `lanecast store ls`: the streams of stores, their quorums, and the registered receivers.

use super::silent::tell_missing;
use super::survey::{StreamSurvey, Survey};
use super::which::WhichArgs;
use crate::output::{print, print_json};
use crate::printable::printable;
use crate::table::{grouped, render, size, utc};
use anyhow::ensure;
use lanecast::persistence::{StoreInspection, StreamReport};
use lanecast_report::TextTable;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Arguments of `store ls`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Without names, the stores of this host, and those of the configuration \
    (persistence.stores, persistence.topic_stores) that they belong to.\n\
    The first table has a line for each stream and store: behind counts the messages that another \
    store has and this one lacks. The second one tells for each stream how many of its stores \
    answered, whether these make a quorum, and what is stable. The third one has the receivers: \
    lag counts the messages that a receiver has not consumed, blocking tells whether it holds a \
    receiver-paced publisher back; expired ones were away for longer than --receiver-lifetime of \
    the store.\n\
    Example: lanecast store ls a b c\n\
    Exit status: 0 all stores answered; 1 one did not, or an error; 2 wrong arguments.")]
pub(crate) struct LsArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &LsArgs) -> anyhow::Result<ExitCode> {
    let Some(context) = arguments.which.way.looking()? else {
        if arguments.json {
            print_json(&json!({"stores": [], "streams": []}))?;
        }
        return Ok(ExitCode::FAILURE);
    };
    let names = arguments.which.stores(&context)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let stop = crate::stop::flag()?;
    let mut administrator = context.store_administrator(&names)?;
    administrator.stop_when(stop.clone());
    let stores = administrator.inspect(arguments.which.time);
    ensure!(!stop(), "interrupted");
    let survey = Survey::new(&stores, &context.config().persistence);
    if arguments.json {
        print_json(&to_json(&stores, &survey))?;
    } else if !survey.streams.is_empty() {
        let tables = [streams(&survey), quorums(&survey), receivers(&survey)];
        let filled = tables.iter().filter(|table| !table.is_empty());
        print(&filled.map(render).collect::<Vec<_>>().join("\n"))?;
    } else if stores.iter().any(|store| store.incarnation.is_some()) {
        print("no streams are kept\n")?;
    }
    let is_any_missing = stores.iter().any(|store| !store.is_complete);
    tell_missing(&stores, context.config(), arguments.which.time);
    Ok(ExitCode::from(u8::from(is_any_missing)))
}

/// One line for each stream and store.
fn streams(survey: &Survey<'_>) -> TextTable {
    let columns = [
        "topic",
        ">source",
        "store",
        "state",
        ">first",
        ">next",
        ">behind",
        ">messages",
        ">bytes",
        "oldest",
        ">unconsumed",
    ];
    let mut table = TextTable::new(&columns);
    for stream in &survey.streams {
        for (store, report) in &stream.reports {
            let is_empty = report.oldest_unix_ns == 0;
            table.row([
                printable(&report.topic),
                report.source.to_string(),
                (*store).to_owned(),
                stream.state(store, report).to_owned(),
                grouped(report.first),
                grouped(report.next),
                grouped(stream.furthest() - report.next),
                grouped(report.next - report.first),
                size(report.bytes),
                if is_empty { "-".into() } else { utc(report.oldest_unix_ns) },
                grouped(unconsumed(report)),
            ]);
        }
    }
    table
}

/// Messages that a registered receiver has not consumed.
fn unconsumed(report: &StreamReport<'_>) -> u64 {
    report.next.saturating_sub(report.consumed.max(report.first))
}

fn quorums(survey: &Survey<'_>) -> TextTable {
    let columns = ["topic", ">source", ">stores", ">answered", "quorum", ">stable", "missing"];
    let mut table = TextTable::new(&columns);
    for stream in &survey.streams {
        let missing = stream.missing();
        table.row([
            printable(stream.topic()),
            stream.source().to_string(),
            stream.members().to_string(),
            (stream.members() - missing.len()).to_string(),
            if stream.has_quorum() { "yes" } else { "no" }.to_owned(),
            stream.stable().map_or_else(|| "-".into(), grouped),
            missing.join(", "),
        ]);
    }
    table
}

fn receivers(survey: &Survey<'_>) -> TextTable {
    let columns = ["topic", ">source", ">receiver", ">position", ">lag", "blocking"];
    let mut table = TextTable::new(&columns);
    for stream in &survey.streams {
        for it in stream.receivers() {
            table.row([
                printable(stream.topic()),
                stream.source().to_string(),
                it.receiver.to_string(),
                grouped(it.next),
                grouped(stream.furthest() - it.next.min(stream.furthest())),
                match (it.is_expired, it.is_non_blocking) {
                    (true, _) => "expired",
                    (_, true) => "no",
                    _ => "yes",
                }
                .to_owned(),
            ]);
        }
    }
    table
}

fn to_json(stores: &[StoreInspection], survey: &Survey<'_>) -> Value {
    let stores = stores.iter().map(|store| {
        json!({
            "store": store.store,
            "incarnation": store.incarnation.map(|it| format!("{it:016x}")),
            "is_complete": store.is_complete,
        })
    });
    let streams = survey.streams.iter().map(stream_json);
    json!({"stores": stores.collect::<Vec<_>>(), "streams": streams.collect::<Vec<_>>()})
}

fn stream_json(stream: &StreamSurvey<'_>) -> Value {
    let reports = stream.reports.iter().map(|(store, report)| {
        json!({
            "store": store, "state": stream.state(store, report),
            "first": report.first, "next": report.next, "consumed": report.consumed,
            "behind": stream.furthest() - report.next, "unconsumed": unconsumed(report),
            "bytes": report.bytes, "oldest_unix_ns": report.oldest_unix_ns,
            "epoch": report.run.epoch, "session": format!("{:016x}", report.run.session),
        })
    });
    let receivers = stream.receivers().map(|it| {
        let lag = stream.furthest() - it.next.min(stream.furthest());
        json!({
            "receiver": it.receiver, "position": it.next, "lag": lag,
            "is_non_blocking": it.is_non_blocking, "is_expired": it.is_expired,
        })
    });
    json!({
        "topic": stream.topic(), "source": stream.source(),
        "members": stream.members(), "missing": stream.missing(),
        "has_quorum": stream.has_quorum(), "stable": stream.stable(),
        "reports": reports.collect::<Vec<_>>(), "receivers": receivers.collect::<Vec<_>>(),
    })
}
