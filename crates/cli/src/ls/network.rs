//! Sessions on the network, as the processes of this host tell of them.

use super::TOPICS;
use crate::printable::{list, printable};
use crate::table::{grouped, render, table};
use lanecast_stats::{Look, Role, StatsReport};
use serde_json::{Map, Value, json};

/// The sessions that `look` shows, with a topic that contains `topic` if one is given.
pub(super) fn sessions<'a>(look: &'a Look, topic: Option<&str>) -> Vec<&'a StatsReport> {
    let sessions = look.reports.iter().filter(|report| report.role != Role::Process);
    let wanted = |report: &&StatsReport| {
        topic.is_none_or(|text| report.topics.iter().any(|topic| topic.contains(text)))
    };
    let mut sessions: Vec<_> = sessions.filter(wanted).collect();
    // Publishers stand before their subscribers.
    sessions.sort_by_key(|report| (report.session, report.role != Role::Publisher));
    sessions
}

const fn state(report: &StatsReport) -> &'static str {
    if report.is_alive { "alive" } else { "dead" }
}

pub(super) fn to_text(sessions: &[&StatsReport]) -> String {
    let columns = ["session", "role", ">pid", "process", "state", "carrier", "address", "group"];
    let more = [">topics", "names", ">receivers", ">messages", ">repaired", ">lost"];
    let mut table = table(&[&columns[..], &more[..]].concat());
    for report in sessions {
        let value = |label| report.value(label).map_or_else(String::new, grouped);
        let repaired = match report.role {
            Role::Publisher => value("datagrams repaired"),
            _ => value("datagrams recovered"),
        };
        table.add_row([
            format!("{:016x}", report.session),
            report.role.name().into(),
            report.process.pid.to_string(),
            printable(&report.name),
            state(report).into(),
            printable(&report.carrier),
            printable(&report.address),
            printable(&report.group),
            value("topics"),
            list(&report.topics, TOPICS),
            value("receivers"),
            value("messages"),
            repaired,
            value("messages lost"),
        ]);
    }
    render(&table)
}

pub(super) fn to_json(report: &StatsReport) -> Value {
    let counters = report.counters.iter();
    let counters: Map<String, Value> =
        counters.map(|counter| (counter.label.clone(), counter.value.into())).collect();
    json!({
        "session": format!("{:016x}", report.session),
        "role": report.role.name(),
        "pid": report.process.pid,
        "name": report.name,
        "state": state(report),
        "carrier": report.carrier,
        "address": report.address,
        "group": (!report.group.is_empty()).then_some(&report.group),
        "topics": report.topics,
        "receivers": report.value("receivers"),
        "messages": report.value("messages"),
        "counters": counters,
        "created_unix_ns": report.opened_unix_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::process::Identity;
    use lanecast_stats::CounterReport;
    use std::time::Instant;

    fn look() -> Look {
        let counter = |label: &str, value| CounterReport { label: label.to_owned(), value };
        let session = |role, session, topic: &str, counters| StatsReport {
            process: Identity { pid: 12, ..Identity::default() },
            name: "ticker".into(),
            is_alive: true,
            role,
            session,
            carrier: "rm".into(),
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
        Look { at: Instant::now(), reports, unreadable: Vec::new() }
    }

    #[test]
    fn a_publisher_stands_before_its_subscribers() {
        let look = look();
        let all = sessions(&look, None);
        let order: Vec<_> = all.iter().map(|report| (report.session, report.role)).collect();
        let publisher = (7, Role::Publisher);
        assert_eq!(order, [(3, Role::Publisher), publisher, (7, Role::Subscriber)]);
        assert_eq!(sessions(&look, Some("price")).len(), 2);
        let text = to_text(&all);
        let lines: Vec<&str> = text.lines().collect();
        let start = "0000000000000007  publisher    12  ticker   alive  rm       10.0.0.7:4000";
        assert!(lines[2].starts_with(start), "{text}");
        assert!(lines[2].contains("1  prices          3     1 234"), "{text}");
        assert!(lines[3].ends_with("5     6"), "{text}");
    }

    #[test]
    fn json_has_every_counter() {
        let look = look();
        let object = to_json(&look.reports[2]);
        assert_eq!(object["counters"]["receivers"], 3);
        assert_eq!((&object["carrier"], &object["role"]), (&"rm".into(), &"publisher".into()));
        assert_eq!(object["session"], "0000000000000007");
    }
}
