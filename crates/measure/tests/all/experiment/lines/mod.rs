//! The lines that are written have exactly the members that `docs/protocol/measurements.md` names.
//!
//! On that page, members are named by code in the first column of tables, or in the first
//! paragraph of a section, outside of brackets; a member's own members in its row's other column.

use super::memory::{Fate, Memory};
use super::round_trip;
use super::{NOWHERE, reading, run, sending};
use lanecast_base::WaitStrategy;
use lanecast_measure::ping::Threads;
use lanecast_measure::smx::RunLength;
use lanecast_measure::{
    Baseline, Head, Kind, LinearShape, PriorityChange, doctor, jitter, pipes, publisher, rings,
    subscriber,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol/measurements.md");

type Names = BTreeSet<String>;

/// The page's sections, by name.
struct Page(String);

impl Page {
    fn read() -> Self {
        Self(std::fs::read_to_string(PAGE).unwrap())
    }

    fn section(&self, name: &str) -> &str {
        let named = |section: &&str| {
            let title = section.lines().next().unwrap_or_default();
            title.trim_matches('`') == name
        };
        let found = self.0.split("\n## ").skip(1).find(named);
        let section = found.unwrap_or_else(|| panic!("no section {name}"));
        section.split_once('\n').unwrap().1.trim()
    }

    /// Members that a section's first paragraph names.
    fn listed(&self, section: &str) -> Names {
        code(self.section(section).split("\n\n").next().unwrap())
    }

    /// Members of each stream: its names, and the subscriber's counts again.
    fn streams(&self) -> Names {
        let mut names = self.listed("subscriber");
        names.retain(|name| {
            !["linear", "fast", "spin", "recovered", "streams"].contains(&name.as_str())
        });
        names.extend(["topic", "session", "source", "ended"].map(str::to_owned));
        names
    }

    /// Members of `linear`, from the paragraph that starts with its name.
    fn linear(&self) -> Names {
        let mut paragraphs = self.section("subscriber").split("\n\n");
        let mut names = code(paragraphs.find(|text| text.starts_with("`linear`")).unwrap());
        names.remove("linear");
        names
    }

    /// Members that a section's table names.
    fn tabled(&self, section: &str) -> Names {
        self.rows(section).flat_map(|(member, _)| code(member)).collect()
    }

    /// Names in the row of a member.
    fn row(&self, section: &str, member: &str) -> Names {
        let row = self.rows(section).find(|(members, _)| code(members).contains(member));
        code(row.unwrap_or_else(|| panic!("no {member} in {section}")).1)
    }

    fn rows(&self, section: &str) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.section(section).lines().filter_map(|line| line.strip_prefix("| "));
        lines.skip(1).filter_map(|line| line.trim_end_matches(" |").split_once(" | "))
    }
}

/// The words in backquotes that stand outside of brackets.
fn code(text: &str) -> Names {
    let (mut names, mut depth) = (Names::new(), 0u32);
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            let is_name = part.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c));
            if depth == 0 && is_name {
                names.insert(part.to_owned());
            }
            continue;
        }
        for c in part.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    names
}

fn members(value: &Value) -> Names {
    value.as_object().unwrap_or_else(|| panic!("{value} is no object")).keys().cloned().collect()
}

fn check(what: &str, value: &Value, documented: &Names) {
    let written = members(value);
    let unknown: Vec<_> = written.difference(documented).collect();
    assert!(unknown.is_empty(), "{what}: the page does not name {unknown:?}");
    let missing: Vec<_> = documented.difference(&written).collect();
    assert!(missing.is_empty(), "{what}: the line has no {missing:?}");
}

fn line(kind: Kind, result: &impl Serialize) -> Value {
    serde_json::from_str(&Head::now().line(kind, result).unwrap()).unwrap()
}

/// The lines of a publisher and its subscriber, with all that they can tell.
fn lines() -> (Value, Value) {
    let sending = publisher::Settings { rate: 1_000_000, ..sending(24, 100, 1) };
    let reading = subscriber::Settings { linear: LinearShape::new(10, 100), ..reading() };
    let transport = Memory::new(64, |_| Fate::Arrives);
    let (published, received, _) = run(&transport, &sending, &reading);
    (line(Kind::Publisher, &published), line(Kind::Subscriber, &received))
}

fn check_conditions(page: &Page, line: &Value) {
    check("cpus", &line["cpus"], &page.row("Conditions", "cpus"));
    check("interference", &line["interference"], &page.row("Conditions", "interference"));
}

fn with(names: &Names, more: &[&Names]) -> Names {
    more.iter().fold(names.clone(), |all, names| all.union(names).cloned().collect())
}

#[test]
fn publishers_and_subscribers_write_what_the_page_names() {
    let page = Page::read();
    let (head, conditions) = (page.tabled("Every line"), page.tabled("Conditions"));
    let distribution = page.listed("Distributions");
    let (published, received) = lines();
    let documented = with(&page.listed("publisher"), &[&head, &conditions]);
    check("publisher", &published, &documented);
    check_conditions(&page, &published);
    check("host", &published["host"], &page.tabled("host"));

    let documented = with(&page.listed("subscriber"), &[&head, &conditions]);
    check("subscriber", &received, &documented);
    check_conditions(&page, &received);
    check("streams", &received["streams"][0], &page.streams());
    check("actual", &received["latency"]["actual"], &distribution);
    check("intended", &received["latency"]["intended"], &distribution);
    check("lateness", &published["lateness"], &distribution);
    check("linear", &received["linear"], &page.linear());
}

#[test]
fn pings_and_pongs_write_what_the_page_names() {
    let page = Page::read();
    let documented = [&page.tabled("Every line"), &page.tabled("Conditions")];
    let distribution = page.listed("Distributions");
    let settings = round_trip::pinging(24, 100, Threads::Two);
    let (pinged, ponged) = round_trip::run(&Memory::new(64, |_| Fate::Arrives), &settings);
    let (ping, pong) = (line(Kind::Ping, &pinged), line(Kind::Pong, &ponged));
    check("ping", &ping, &with(&page.tabled("ping"), &documented));
    check_conditions(&page, &ping);
    check("receiver", &ping["receiver"], documented[1]);
    check_conditions(&page, &ping["receiver"]);
    check("topics", &ping["topics"], &page.row("ping", "topics"));
    check("actual", &ping["latency"]["actual"], &distribution);
    check("intended", &ping["latency"]["intended"], &distribution);
    check("lateness", &ping["lateness"], &distribution);
    check("linear", &ping["linear"], &page.linear());

    check("pong", &pong, &with(&page.tabled("pong"), &documented));
    check_conditions(&page, &pong);
}

#[test]
fn jitter_writes_what_the_page_names() {
    let page = Page::read();
    let settings = jitter::Settings {
        loops: 1000,
        place: NOWHERE,
        read: jitter::Read::Host,
        raise: PriorityChange::NotPermitted,
    };
    let line = line(Kind::Jitter, &jitter::run(&settings, &|| false).unwrap());
    check("jitter", &line, &with(&page.listed("jitter"), &[&page.tabled("Every line")]));
    check("gaps", &line["gaps"], &page.listed("Distributions"));
    check_conditions(&page, &line);
}

#[test]
fn the_baseline_writes_what_the_page_names() {
    let baseline = serde_json::to_value(Baseline { line_ns: None, loop_ns: Some(1.5) }).unwrap();
    check("baseline", &baseline, &Page::read().row("run", "baseline"));
}

#[test]
fn the_doctor_writes_what_the_page_names() {
    let page = Page::read();
    let settings = doctor::Settings {
        directory: "/dev/shm".into(),
        window: lanecast_base::Size(1 << 20),
        raise: PriorityChange::NotPermitted,
        time: Some(std::time::Duration::from_millis(100)),
    };
    let line = line(Kind::Doctor, &doctor::examine(&settings, &mut |_| {}));
    check("doctor", &line, &with(&page.tabled("doctor"), &[&page.tabled("Every line")]));
    check("findings", &line["findings"][0], &page.row("doctor", "findings"));
    if !line["proposal"].is_null() {
        check("proposal", &line["proposal"], &page.row("doctor", "proposal"));
    }
    if let Some(gaps) = line["gaps"].get(0) {
        check("gaps", gaps, &page.row("doctor", "gaps"));
    }
}

fn check_threads(page: &Page, what: &str, line: &Value) {
    let documented = [&page.tabled("Every line"), &page.tabled("Between threads")];
    check(what, line, &with(&page.tabled(what), &documented));
    check("threads", &line["threads"][0], &page.row("Between threads", "threads"));
    check("reference", &line["reference"], &page.row(what, "reference"));
    let interference = &line["threads"][0]["interference"];
    check("interference", interference, &page.row("Conditions", "interference"));
}

#[test]
fn pipes_and_rings_write_what_the_page_names() {
    let page = Page::read();
    let cpu = lanecast_os::affinity::allowed().unwrap()[0];
    let (length, raise) = (RunLength::Messages(100), PriorityChange::NotAsked);
    let case = pipes::Case {
        experiment: pipes::Experiment::PingPong,
        transport: pipes::Transport::Socketpair,
        wait: WaitStrategy::Park,
        seats: pipes::Seats::One,
        batch: 1,
    };
    let settings = pipes::Settings { case, length, producer_cpu: cpu, consumer_cpu: cpu, raise };
    check_threads(&page, "pipes", &line(Kind::Pipes, &pipes::run(&settings).unwrap()));

    let row = rings::Row::Unicast;
    let seats = rings::Seats::deal(row, None, &[cpu]).unwrap();
    let wait = WaitStrategy::SpinYield;
    let case = rings::Case { row, batch: 1, size: 8, capacity: 64, wait, seats };
    let result = rings::run(&rings::Settings { case, length, raise }).unwrap();
    check_threads(&page, "rings", &line(Kind::Rings, &result));
}

#[test]
fn every_kind_is_on_the_page() {
    let documented = Page::read().row("Every line", "kind");
    let kinds = [Kind::Publisher, Kind::Subscriber, Kind::Jitter, Kind::Run];
    let others = [Kind::Skipped, Kind::Rival, Kind::Doctor, Kind::Pipes, Kind::Rings];
    let round_trips = [Kind::Ping, Kind::Pong];
    for kind in kinds.into_iter().chain(others).chain(round_trips) {
        let name = serde_json::to_value(kind).unwrap();
        assert!(documented.contains(name.as_str().unwrap()), "{name}");
    }
}
