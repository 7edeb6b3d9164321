//! Sessions on the network, as the processes of this host tell of them.

use crate::printable::{printable, topics};
use crate::sessions::NUMBER_COLUMNS;
use crate::table::{grouped, rate, render, room_beside};
use lanecast_report::TextTable;
use lanecast_stats::{Role, StatsReport, StatsSnapshot};
use serde_json::{Map, Value, json};

/// A session, and how many messages it carries in a second, if that is known.
pub(super) struct Session<'a> {
    report: &'a StatsReport,
    rate: Option<f64>,
}

/// The sessions that `now` shows, with their rates since `then`.
pub(super) fn sessions<'a>(
    then: &StatsSnapshot,
    now: &'a StatsSnapshot,
    wanted: impl Fn(&[String]) -> bool,
) -> Vec<Session<'a>> {
    let with_rate = |report: &'a StatsReport| {
        let messages = report.counters.iter().position(|counter| counter.label == "messages");
        let rates = then.rates_until(report, now.at);
        Session { report, rate: rates.zip(messages).map(|(rates, index)| rates[index]) }
    };
    reports(now, wanted).into_iter().map(with_rate).collect()
}

/// Reports of the sessions in `look` whose topics are `wanted`.
pub(super) fn reports(
    look: &StatsSnapshot,
    wanted: impl Fn(&[String]) -> bool,
) -> Vec<&StatsReport> {
    let is_session = |role| matches!(role, Role::Publisher | Role::Subscriber);
    let sessions = look.reports.iter().filter(|report| is_session(report.role));
    let mut sessions: Vec<_> = sessions.filter(|report| wanted(&report.topics)).collect();
    // Publishers stand before their subscribers.
    sessions.sort_by_key(|report| (report.session, report.role != Role::Publisher));
    sessions
}

const fn state(report: &StatsReport) -> &'static str {
    if report.is_alive { "alive" } else { "dead" }
}

pub(super) fn to_text(sessions: &[Session<'_>]) -> String {
    let columns = ["session", "role", ">pid", "process", "state", "transport", "address", "group"];
    let more = [">topics", "names", ">receivers", ">messages", ">rate", ">repaired", ">lost"];
    let mut table = TextTable::new(&[&columns[..], &more[..]].concat());
    for Session { report, rate: per_second } in sessions {
        let value = |label| report.value(label).map_or_else(String::new, grouped);
        let repaired = match report.role {
            Role::Publisher => value("datagrams repaired"),
            _ => value("datagrams recovered"),
        };
        table.row([
            format!("{:016x}", report.session),
            report.role.name().into(),
            report.process.pid.to_string(),
            printable(&report.name),
            state(report).into(),
            printable(&report.transport),
            printable(&report.address),
            printable(&report.group),
            value("topics"),
            topics(&report.topics, room_beside(NUMBER_COLUMNS)),
            value("receivers"),
            value("messages"),
            per_second.map_or_else(String::new, rate),
            repaired,
            value("messages lost"),
        ]);
    }
    render(&table)
}

pub(super) fn to_json(session: &Session<'_>) -> Value {
    let Session { report, rate } = session;
    let counters = report.counters.iter();
    let counters: Map<String, Value> =
        counters.map(|counter| (counter.label.clone(), counter.value.into())).collect();
    json!({
        "session": format!("{:016x}", report.session),
        "role": report.role.name(),
        "pid": report.process.pid,
        "name": report.name,
        "state": state(report),
        "transport": report.transport,
        "address": report.address,
        "group": (!report.group.is_empty()).then_some(&report.group),
        "topics": report.topics,
        "receivers": report.value("receivers"),
        "messages": report.value("messages"),
        "messages_per_second": rate,
        "counters": counters,
        "created_unix_ns": report.opened_unix_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::process::Identity;
    use lanecast_stats::CounterReport;
    use std::time::{Duration, Instant};

    fn look() -> StatsSnapshot {
        let counter = |label: &str, value| CounterReport { label: label.to_owned(), value };
        let session = |role: Role, session, topic: &str, counters| StatsReport {
            path: format!("{}-{session}", role.name()).into(),
            process: Identity { pid: 12, ..Identity::default() },
            name: "ticker".into(),
            is_alive: true,
            role,
            session,
            transport: "rm".into(),
            address: "10.0.0.7:4000".into(),
            group: "239.192.71.2:14400".into(),
            topics: vec![topic.to_owned()],
            counters,
            ..StatsReport::default()
        };
        let told = vec![counter("topics", 1), counter("receivers", 3), counter("messages", 1_234)];
        let heard = vec![counter("datagrams recovered", 5), counter("messages lost", 6)];
        let reports = vec![
            StatsReport::default(),
            session(Role::Subscriber, 7, "prices", heard),
            session(Role::Publisher, 7, "prices", told),
            session(Role::Publisher, 3, "news", Vec::new()),
        ];
        StatsSnapshot { at: Instant::now(), reports, unreadable: Vec::new() }
    }

    #[test]
    fn a_publisher_stands_before_its_subscribers() {
        let look = look();
        let mut then = self::look();
        then.at = look.at - Duration::from_millis(500);
        then.reports[2].counters[2].value -= 1_000;
        let all = sessions(&then, &look, |_| true);
        let order: Vec<_> = all.iter().map(|it| (it.report.session, it.report.role)).collect();
        let publisher = (7, Role::Publisher);
        assert_eq!(order, [(3, Role::Publisher), publisher, (7, Role::Subscriber)]);
        assert_eq!(reports(&look, |topics| topics.contains(&"prices".to_owned())).len(), 2);
        let text = to_text(&all);
        let lines: Vec<&str> = text.lines().collect();
        let start = "0000000000000007  publisher    12  ticker   alive  rm         10.0.0.7:4000";
        assert!(lines[2].starts_with(start), "{text}");
        assert!(lines[2].contains("1  prices          3     1 234  2.0 k/s"), "{text}");
        assert!(lines[3].ends_with("5     6"), "{text}");
    }

    #[test]
    fn json_has_every_counter() {
        let look = look();
        let object = to_json(&Session { report: &look.reports[2], rate: Some(0.5) });
        assert_eq!(object["messages_per_second"], 0.5);
        assert_eq!(object["counters"]["receivers"], 3);
        assert_eq!((&object["transport"], &object["role"]), (&"rm".into(), &"publisher".into()));
        assert_eq!(object["session"], "0000000000000007");
    }
}
