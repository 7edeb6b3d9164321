//! `lanecast stat --losses`.

use super::arguments::StatArgs;
use super::session_losses::SessionLosses;
use crate::counters::errors;
use crate::printable::{printable, topics};
use crate::table::{columns, counted, grouped, heading, render, time, utc};
use crate::watch::Block;
use lanecast_report::{TextTable, wrap};
use lanecast_stats::{LossCount, LossOutcome, LossReport, StatsSnapshot};
use serde_json::{Value, json};

/// The losses of all sessions, that with the latest loss last.
pub(super) fn show(look: &StatsSnapshot, arguments: &StatArgs) -> Block {
    let mut sessions = SessionLosses::of(look);
    if let Some(text) = &arguments.filter {
        sessions.retain(|session| session.is_wanted(text));
    }
    let text = if arguments.json {
        arguments.watch.json_line(sessions.iter().map(|session| to_json(session, arguments.last)))
    } else if sessions.is_empty() {
        "no losses in the logs here\n".to_owned()
    } else {
        let sessions = sessions.iter().map(|session| to_text(session, arguments.last));
        sessions.collect::<Vec<_>>().join("\n")
    };
    Block { text, errors: errors(look) }
}

/// Outcome of a loss, in words.
const fn words(end: LossOutcome) -> &'static str {
    match end {
        LossOutcome::Late => "came late",
        LossOutcome::Repaired => "repaired by NAK",
        LossOutcome::Rebuilt => "repaired by parity",
        LossOutcome::GivenUp(_) => "given up",
        LossOutcome::Reported(_) => "lost",
    }
}

/// Unit of the count, name of the outcome in JSON, and reason of a loss.
const fn names(end: LossOutcome) -> (&'static str, &'static str, Option<&'static str>) {
    match end {
        LossOutcome::Late => ("datagrams", "late", None),
        LossOutcome::Repaired => ("datagrams", "repaired", None),
        LossOutcome::Rebuilt => ("datagrams", "rebuilt", None),
        LossOutcome::GivenUp(why) => ("datagrams", "given_up", Some(why.describe())),
        LossOutcome::Reported(why) => ("messages", "lost", Some(why.describe())),
    }
}

/// Number of missed datagrams; of all, and of those that are missing now, if the session goes on.
fn summary(session: &SessionLosses<'_>) -> String {
    let (pid, name) = (session.report.process.pid, printable(&session.report.name));
    let missed = grouped(session.missed());
    let Some((all, missing)) = session.datagrams() else {
        let missed = counted(session.missed(), "datagram");
        return format!("pid {pid} {name} missed {missed}; the session has ended");
    };
    let missing = match missing {
        0 => String::new(),
        some => format!(", and misses {} now", grouped(some)),
    };
    format!("pid {pid} {name} missed {missed} of {}{missing}", counted(all, "datagram"))
}

fn to_text(session: &SessionLosses<'_>, last: usize) -> String {
    let titles = ["outcome", ">count", ">longest", "first (UTC)", "last (UTC)"];
    let mut table = TextTable::new(&titles);
    for (outcome, sum) in session.outcomes() {
        table.row(sum_row(words(outcome), &sum, time(sum.longest_ns)));
    }
    for (topic, sum) in session.lost_messages() {
        table.row(sum_row(&format!("lost: {}", printable(topic)), sum, String::new()));
    }
    let titles = ["latest (UTC)", ">first", ">count", ">after", "outcome"];
    let mut latest = TextTable::new(&titles);
    for loss in session.latest(last) {
        latest.row(loss_row(loss));
    }
    let names: Vec<String> = session.topics().map(str::to_owned).collect();
    let heading = heading([printable(session.source()), topics(&names, columns())]);
    let summary = wrap(&summary(session), columns()).join("\n");
    let mut text = format!("{heading}\n{summary}\n{}", render(&table));
    if !latest.is_empty() {
        text += &format!("\n{}", render(&latest));
    }
    text
}

fn sum_row(outcome: &str, sum: &LossCount, longest: String) -> [String; 5] {
    let moment = |unix_ns| {
        let text = utc(unix_ns);
        text.split('.').next().unwrap_or_default().to_owned()
    };
    let (first, last) = (moment(sum.first_unix_ns), moment(sum.last_unix_ns));
    [outcome.to_owned(), grouped(sum.count), longest, first, last]
}

fn loss_row(loss: &LossReport) -> [String; 5] {
    let (of, _, why) = names(loss.end);
    let is_message = of == "messages";
    let mut outcome = words(loss.end).to_owned();
    if is_message {
        outcome += &format!(" on {}", printable(&loss.topic));
    }
    if let Some(why) = why {
        outcome += &format!(": {why}");
    }
    let count = loss.count.map_or_else(|| "?".into(), grouped);
    let after = if is_message { String::new() } else { time(loss.after_ns) };
    [utc(loss.unix_ns), loss.first.to_string(), count, after, outcome]
}

fn to_json(session: &SessionLosses<'_>, last: usize) -> Value {
    let report = session.report;
    let datagrams = session.outcomes().map(|(end, sum)| {
        let mut value = sum_json(end, &sum);
        value["longest_ns"] = sum.longest_ns.into();
        value
    });
    let messages = session.lost_messages().map(|(topic, sum)| {
        let mut value = sum_json(LOST, sum);
        value["topic"] = topic.into();
        value
    });
    let (all, missing) = session.datagrams().unzip();
    json!({
        "pid": report.process.pid,
        "name": report.name,
        "is_alive": report.is_alive,
        "source": session.source(),
        "transport": session.transport(),
        "session": format!("{:016x}", session.session),
        "topics": session.topics().collect::<Vec<_>>(),
        "missed": session.missed(),
        "datagrams": all,
        "missing": missing,
        "outcomes": datagrams.chain(messages).collect::<Vec<_>>(),
        "latest": session.latest(last).map(loss_json).collect::<Vec<_>>(),
    })
}

/// Any outcome of lost messages: their name does not depend on the reason.
const LOST: LossOutcome = LossOutcome::Reported(lanecast_stats::LossCause::GaveUp);

fn sum_json(end: LossOutcome, sum: &LossCount) -> Value {
    let (of, outcome, _) = names(end);
    json!({
        "outcome": outcome,
        "of": of,
        "count": sum.count,
        "first_unix_ns": sum.first_unix_ns,
        "last_unix_ns": sum.last_unix_ns,
    })
}

fn loss_json(loss: &LossReport) -> Value {
    let (of, outcome, why) = names(loss.end);
    json!({
        "number": loss.number,
        "noticed_unix_ns": loss.unix_ns,
        "topic": (!loss.topic.is_empty()).then_some(&loss.topic),
        "of": of,
        "first": loss.first,
        "count": loss.count,
        "outcome": outcome,
        "after_ns": (of == "datagrams").then_some(loss.after_ns),
        "why": why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::process::Identity;
    use lanecast_stats::{CounterReport, LossCause, LossTotals, Role, StatsReport};
    use std::time::Instant;

    const SOURCE: &str = "rm:10.0.0.7:40000:239.192.71.2:14400:000000000000feed";
    const NOON: u64 = 1_700_000_000_123_456_789;

    fn sum(count: u64) -> LossCount {
        let (first_unix_ns, last_unix_ns) = (NOON, NOON + 65_000_000_000);
        LossCount { count, first_unix_ns, last_unix_ns, longest_ns: 45_600 }
    }

    fn look() -> StatsSnapshot {
        let (session, source) = (0xfeed, SOURCE.to_owned());
        let loss = |number, end, topic: &str, count| LossReport {
            number,
            unix_ns: NOON,
            after_ns: 45_600,
            session,
            source: source.clone(),
            topic: topic.into(),
            first: 9,
            count,
            end,
        };
        let process = Identity { pid: 12, ..Identity::default() };
        let datagrams = LossTotals {
            session,
            source: source.clone(),
            repaired: sum(1_232),
            given_up: sum(2),
            ..LossTotals::default()
        };
        let (topic, reported) = ("prices\u{1b}".to_owned(), sum(7));
        let messages =
            LossTotals { topic, reported, source: source.clone(), ..datagrams_of(session) };
        let log = StatsReport {
            process,
            name: "ticker".into(),
            losses: vec![
                loss(1, LossOutcome::Repaired, "", Some(1_232)),
                loss(2, LossOutcome::GivenUp(LossCause::Gone), "", Some(2)),
                loss(3, LossOutcome::Reported(LossCause::Gone), "prices\u{1b}", None),
            ],
            loss_totals: vec![datagrams, messages],
            ..StatsReport::default()
        };
        let counter = |label: &str, value| CounterReport { label: label.into(), value };
        let live = StatsReport {
            process,
            role: Role::Subscriber,
            session,
            counters: vec![
                counter("datagrams", 4_999_995),
                counter("datagrams missing", 3),
                counter("datagrams lost", 2),
            ],
            topics: vec!["prices".into(), "orders".into()],
            ..StatsReport::default()
        };
        let reports = vec![log, live];
        StatsSnapshot { at: Instant::now(), reports, unreadable: Vec::new() }
    }

    fn datagrams_of(session: u64) -> LossTotals {
        LossTotals { session, ..LossTotals::default() }
    }

    #[test]
    fn a_session_says_who_lost_what_when_and_how_it_was_recovered() {
        let look = look();
        let sessions = SessionLosses::of(&look);
        let text = to_text(&sessions[0], 2);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((sessions.len(), lines.len()), (1, 10), "{text}");
        assert_eq!(lines[0], format!("{SOURCE}  prices,orders"));
        let summary = "pid 12 ticker missed 1 234 of 5 000 000 datagrams, and misses 3 now";
        assert_eq!(lines[1], summary);
        assert!(lines[3].starts_with("repaired by NAK  1 232  45.6 us  2023-11-14 22:13:20"));
        assert!(lines[3].ends_with("  2023-11-14 22:14:25"), "{text}");
        assert!(lines[4].starts_with("given up             2"), "{text}");
        assert!(lines[5].starts_with("lost: prices\u{fffd}        7           2023"), "{text}");
        let given_up = "2023-11-14 22:13:20.123      9      2  45.6 us  given up: no longer kept";
        assert!(lines[8].starts_with(given_up), "{text}");
        assert!(lines[9].contains("?           lost on prices\u{fffd}: no longer"), "{text}");
    }

    #[test]
    fn tables_keep_their_columns_side_by_side_in_80_columns() {
        let look = look();
        let session = &SessionLosses::of(&look)[0];
        let mut sums = TextTable::new(&["outcome", ">count", ">longest", "first", "last"]);
        let large = LossCount { count: 99_999_999, ..sum(0) };
        sums.row(sum_row("repaired by parity", &large, time(45_600_000)));
        let mut latest = TextTable::new(&["latest", ">first", ">count", ">after", "outcome"]);
        session.latest(9).for_each(|loss| _ = latest.row(loss_row(loss)));
        assert!(sums.fits_wrapped(80) && latest.fits_wrapped(80));
    }

    #[test]
    fn json_has_every_number() {
        let look = look();
        let told = to_json(&SessionLosses::of(&look)[0], 1);
        assert_eq!(
            (&told["session"], &told["transport"]),
            (&"000000000000feed".into(), &"rm".into())
        );
        assert_eq!((&told["missed"], &told["datagrams"]), (&1_234.into(), &5_000_000.into()));
        assert_eq!(told["missing"], 3);
        let outcomes = told["outcomes"].as_array().unwrap();
        let names: Vec<_> = outcomes.iter().map(|one| one["outcome"].as_str().unwrap()).collect();
        assert_eq!(names, ["repaired", "given_up", "lost"]);
        assert_eq!(
            (&outcomes[1]["count"], &outcomes[1]["longest_ns"]),
            (&2.into(), &45_600.into())
        );
        assert_eq!((&outcomes[2]["of"], &outcomes[2]["count"]), (&"messages".into(), &7.into()));
        let latest = told["latest"].as_array().unwrap();
        assert_eq!((latest.len(), &latest[0]["number"]), (1, &3.into()));
        assert_eq!((&latest[0]["count"], &latest[0]["after_ns"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn an_ended_session_keeps_its_sums() {
        let mut look = look();
        look.reports.pop();
        let session = &SessionLosses::of(&look)[0];
        assert_eq!(summary(session), "pid 12 ticker missed 1 234 datagrams; the session has ended");
        assert_eq!(session.topics().collect::<Vec<_>>(), ["prices\u{1b}"]);
        assert_eq!(to_json(session, 1)["datagrams"], Value::Null);
    }

    #[test]
    fn sums_of_any_numbers_end_at_the_last() {
        let mut look = look();
        look.reports[0].loss_totals[0].repaired = sum(u64::MAX);
        look.reports[1].counters[0].value = u64::MAX;
        let session = &SessionLosses::of(&look)[0];
        assert_eq!((session.missed(), session.datagrams()), (u64::MAX, Some((u64::MAX, 3))));
    }

    #[test]
    fn a_filter_looks_at_process_source_and_topic() {
        let look = look();
        let session = &SessionLosses::of(&look)[0];
        for text in ["tick", "12", "10.0.0.7", "price", "orders"] {
            assert!(session.is_wanted(text), "{text}");
        }
        assert!(!session.is_wanted("x"));
    }
}
