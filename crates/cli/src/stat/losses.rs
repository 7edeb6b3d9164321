//! `lanecast stat --losses`.

use super::arguments::StatArgs;
use crate::counters::errors;
use crate::printable::printable;
use crate::table::{grouped, render, time, utc};
use crate::watch::Block;
use lanecast_report::TextTable;
use lanecast_stats::{LossOutcome, LossReport, StatsReport, StatsSnapshot};
use serde_json::{Value, json};

/// A loss, and whose log it is in.
type Logged<'a> = (&'a StatsReport, &'a LossReport);

/// The losses of all processes, oldest first.
pub(super) fn show(look: &StatsSnapshot, arguments: &StatArgs) -> Block {
    let logs = look.reports.iter();
    let mut losses: Vec<Logged<'_>> =
        logs.flat_map(|report| report.losses.iter().map(move |loss| (report, loss))).collect();
    if let Some(text) = &arguments.filter {
        losses.retain(|logged| is_wanted(logged, text));
    }
    losses.sort_by_key(|(_, loss)| loss.unix_ns);
    let text = if arguments.json {
        arguments.watch.json_line(losses.iter().map(to_json))
    } else if losses.is_empty() {
        "no losses in the logs here\n".to_owned()
    } else {
        to_text(&losses)
    };
    Block { text, errors: errors(look) }
}

fn is_wanted((report, loss): &Logged<'_>, text: &str) -> bool {
    [&report.name, &loss.source, &loss.topic].iter().any(|name| name.contains(text))
        || report.process.pid.to_string() == text
}

/// Unit, outcome and reason of a loss.
const fn words(end: LossOutcome) -> (&'static str, &'static str, &'static str) {
    match end {
        LossOutcome::Recovered => ("datagrams", "recovered", ""),
        LossOutcome::Rebuilt => ("datagrams", "recovered", "rebuilt from parity"),
        LossOutcome::GivenUp(why) => ("datagrams", "given up", why.describe()),
        LossOutcome::Reported(why) => ("messages", "lost", why.describe()),
    }
}

fn to_text(losses: &[Logged<'_>]) -> String {
    let columns = ["when (UTC)", ">pid", "process", "source", "topic", ">how many", "of"];
    let mut table = TextTable::new(&[&columns[..], &["end", ">after", "why"]].concat());
    for (report, loss) in losses {
        let (of, end, why) = words(loss.end);
        let after = if of == "datagrams" { time(loss.after_ns) } else { String::new() };
        table.row([
            utc(loss.unix_ns),
            report.process.pid.to_string(),
            printable(&report.name),
            printable(&loss.source),
            printable(&loss.topic),
            loss.count.map_or_else(|| "?".into(), grouped),
            of.into(),
            end.into(),
            after,
            why.into(),
        ]);
    }
    render(&table)
}

fn to_json((report, loss): &Logged<'_>) -> Value {
    let (of, end, why) = words(loss.end);
    json!({
        "pid": report.process.pid,
        "name": report.name,
        "number": loss.number,
        "session": format!("{:016x}", loss.session),
        "source": loss.source,
        "topic": (!loss.topic.is_empty()).then_some(&loss.topic),
        "noticed_unix_ns": loss.unix_ns,
        "of": of,
        "first": loss.first,
        "count": loss.count,
        "end": end,
        "after_ns": (of == "datagrams").then_some(loss.after_ns),
        "why": (!why.is_empty()).then_some(why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::process::Identity;
    use lanecast_stats::LossCause;

    fn report() -> StatsReport {
        let loss = |end, topic: &str, count| LossReport {
            number: 7,
            unix_ns: 1_700_000_000_123_456_789,
            after_ns: 45_600,
            session: 0xfeed,
            source: "ru:10.0.0.7:4000:000000000000feed".into(),
            topic: topic.into(),
            first: 9,
            count,
            end,
        };
        StatsReport {
            process: Identity { pid: 12, ..Identity::default() },
            name: "ticker".into(),
            losses: vec![
                loss(LossOutcome::Recovered, "", Some(1_234)),
                loss(LossOutcome::GivenUp(LossCause::Gone), "", Some(2)),
                loss(LossOutcome::Reported(LossCause::Gone), "prices\u{1b}", None),
            ],
            ..StatsReport::default()
        }
    }

    #[test]
    fn a_log_says_who_when_how_many_and_how_it_ended() {
        let report = report();
        let losses: Vec<_> = report.losses.iter().map(|loss| (&report, loss)).collect();
        let text = to_text(&losses);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("2023-11-14 22:13:20.123   12  ticker"), "{text}");
        assert!(lines[1].ends_with("1 234  datagrams  recovered  45.6 us"), "{text}");
        assert!(
            lines[2].ends_with("given up   45.6 us  no longer kept by the publisher"),
            "{text}"
        );
        assert!(lines[3].contains("prices\u{fffd} "), "{text}");
        assert!(lines[3].contains(" ?  messages   lost"), "{text}");
        let told = to_json(&losses[2]);
        assert_eq!((&told["count"], &told["after_ns"]), (&Value::Null, &Value::Null));
        assert_eq!((&told["end"], &told["session"]), (&"lost".into(), &"000000000000feed".into()));
    }

    #[test]
    fn a_filter_looks_at_process_source_and_topic() {
        let report = report();
        for (text, kept) in [("tick", 3), ("12", 3), ("10.0.0.7", 3), ("price", 1), ("x", 0)] {
            let losses = report.losses.iter().map(|loss| (&report, loss));
            assert_eq!(losses.filter(|logged| is_wanted(logged, text)).count(), kept, "{text}");
        }
    }
}
