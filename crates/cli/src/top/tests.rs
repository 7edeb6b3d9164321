//! Whole screens against recorded ones, and what keys do to them.

use super::draw::{Palette, draw};
use super::keys::{Action, action};
use super::model::{Model, Seen};
use crate::counters::Process;
use crate::sessions::Session;
use lanecast::WaitStrategy;
use lanecast::shm::{SubscriberRates, SubscriberReport};
use lanecast_os::process::{Identity, State};
use lanecast_stats::{CounterReport, ErrorReport, StatsReport};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use std::time::Duration;

const WINDOW: u64 = 1 << 20;
const NOW: u64 = 2_000_000_000_000;

fn subscriber(slot: usize, name: &str, lag_bytes: u64) -> SubscriberReport {
    let mut report = SubscriberReport::default();
    (report.slot, report.name, report.lag_bytes) = (slot, name.to_owned(), lag_bytes);
    report.process.pid = 4200 + slot as u32;
    (report.is_alive, report.wait) = (true, Some(WaitStrategy::SpinPark));
    report
}

fn session(number: u64, topics: &[&str], rate: f64) -> Session {
    let mut session = Session::default();
    let report = &mut session.report;
    report.session = number;
    report.topics = topics.iter().map(|&topic| topic.to_owned()).collect();
    (report.name, report.publisher.pid) = ("ticker".to_owned(), 4100 + number as u32);
    (report.is_alive, report.window_bytes) = (true, WINDOW);
    (report.messages, report.position) = (1_000_000, 64_000_000);
    (session.rates.messages, session.rates.bytes) = (rate, 64.0 * rate);
    session
}

/// Three streams: one gates its publisher, one has names with control characters.
fn sessions(rate: f64) -> Vec<Session> {
    let mut held = session(1, &["prices", "trades"], rate);
    let mut stopped = subscriber(0, "slow", WINDOW - 64);
    stopped.state = Some(State::Stopped);
    held.report.subscribers = vec![subscriber(1, "fast", 0), stopped];
    held.rates.back_pressured = 1234.5;
    let rates = |messages, sleeps| SubscriberRates { messages, sleeps };
    held.rates.subscribers = vec![rates(rate, 12.0), rates(0.0, 0.0)];
    let mut dead = session(2, &["orders"], 0.0);
    (dead.report.is_alive, dead.report.created_unix_ns) = (false, 7);
    let mut hostile = session(3, &["\u{1b}[2J\u{202e}株価株価株価株価株価株価"], 12.0);
    hostile.report.name = "a\nb\u{7}c".to_owned();
    hostile.report.subscribers = vec![subscriber(0, "half", WINDOW / 2)];
    vec![held, dead, hostile]
}

fn processes() -> Vec<Process> {
    let counter = |label: &str, value| CounterReport { label: label.to_owned(), value };
    let text = "cannot join \u{1b}[31m0000000000000009: the header is damaged".to_owned();
    let last_unix_ns = NOW - 3_200_000_000;
    let report = StatsReport {
        path: "x.stats".into(),
        process: Identity { pid: 4101, ..Identity::default() },
        name: "ticker".to_owned(),
        is_alive: true,
        counters: vec![counter("sessions joined", 12_345), counter("errors", 7)],
        errors: vec![ErrorReport { text, count: 7, first_unix_ns: 1, last_unix_ns }],
        ..StatsReport::default()
    };
    vec![Process { report, rates: Some(vec![2.0, 0.0]) }]
}

fn model() -> Model {
    let mut model = Model::new("/dev/shm/lanecast-0".into(), Duration::from_secs(1), String::new());
    for step in 0..45 {
        let sessions = sessions(25_000.0 * f64::from(step % 13));
        model.show(Seen { sessions, processes: processes(), errors: Vec::new(), unix_ns: NOW });
    }
    model
}

fn press(model: &mut Model, keys: &str) {
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        let action = action(KeyEvent::new(code, KeyModifiers::NONE), model.is_typing);
        assert!(model.apply(action.expect("a meaning")), "{c:?} ends the program");
    }
}

fn terminal(model: &Model, columns: u16, rows: u16, has_colours: bool) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    terminal.draw(|frame| draw(frame, model, Palette { has_colours })).expect("a picture");
    terminal
}

/// The screen as text, without trailing blanks.
fn screen(model: &Model, columns: u16, rows: u16) -> String {
    let terminal = terminal(model, columns, rows, false);
    let buffer = terminal.backend().buffer();
    let line = |row| {
        let mut cells = (0..columns).map(|column| buffer[(column, row)].symbol());
        let mut line = String::new();
        // A wide character covers the cell behind it.
        while let Some(symbol) = cells.next() {
            line += symbol;
            cells.by_ref().take(crate::printable::width(symbol).saturating_sub(1)).for_each(drop);
        }
        line.trim_end().to_owned() + "\n"
    };
    (0..rows).map(line).collect()
}

fn assert_golden(model: &Model, columns: u16, rows: u16, name: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let expected = std::fs::read_to_string(format!("{folder}/{name}.txt")).unwrap_or_default();
    let drawn = screen(model, columns, rows);
    assert!(drawn == expected, "{name}.txt is\n{expected}--- and was drawn as\n{drawn}---");
}

#[test]
fn streams_fill_terminals_of_many_sizes() {
    let model = model();
    assert_golden(&model, 80, 24, "top-80x24");
    assert_golden(&model, 120, 40, "top-120x40");
    assert_golden(&model, 40, 10, "top-40x10");
    assert_golden(&model, 1, 1, "top-1x1");
}

#[test]
fn counters_errors_and_help_have_their_screens() {
    let mut model = model();
    press(&mut model, "2");
    assert_golden(&model, 80, 8, "top-counters");
    press(&mut model, "3");
    assert_golden(&model, 80, 8, "top-errors");
    press(&mut model, "1?");
    assert_golden(&model, 60, 16, "top-help");
    press(&mut model, "\u{1b}");
    assert!(!model.is_helping, "Esc closes the help first");
}

#[test]
fn every_size_can_be_drawn_in_every_state() {
    let mut typing = model();
    press(&mut typing, "/pri");
    let mut helping = model();
    press(&mut helping, "?");
    let mut counters = model();
    press(&mut counters, "2");
    let empty = Model::new("x".into(), Duration::from_secs(1), String::new());
    for model in [&model(), &typing, &helping, &counters, &empty] {
        for columns in [0, 1, 2, 3, 4, 7, 11, 12, 13, 20, 24, 35, 40, 79, 80, 120] {
            for rows in (0..14).chain([24]) {
                terminal(model, columns, rows, true);
            }
        }
        for (columns, rows) in [(1, 200), (12, 200), (80, 200), (500, 1), (500, 12), (500, 50)] {
            terminal(model, columns, rows, true);
        }
    }
}

#[test]
fn nothing_hostile_reaches_a_cell() {
    let mut model = model();
    model.seen.errors = vec!["x\u{1b}]0;y\u{9b}.ring: damaged".into()];
    for view in ["1", "2", "3"] {
        press(&mut model, view);
        let drawn = screen(&model, 200, 40);
        assert!(drawn.chars().all(|c| c == '\n' || !c.is_control()), "{drawn:?}");
        assert!(drawn.contains("x\u{fffd}]0;y\u{fffd}.ring: damaged"), "{drawn}");
    }
}

fn chosen(model: &Model) -> String {
    let sheet = model.sheet();
    model.chosen(&sheet).map_or_else(String::new, |at| sheet.rows[at].name.clone())
}

#[test]
fn a_choice_stays_with_its_session() {
    let mut model = model();
    let seen = |sessions| Seen { sessions, ..Seen::default() };
    assert_eq!(chosen(&model), format!("{:016x}", 1), "the busiest");
    model.show(seen(sessions(0.0)));
    assert_eq!(chosen(&model), format!("{:016x}", 3), "still the busiest: none was chosen");
    press(&mut model, "j");
    assert_eq!(chosen(&model), format!("{:016x}", 1));
    model.show(seen(sessions(1e6)));
    assert_eq!(chosen(&model), format!("{:016x}", 1), "it is the first now");
    model.show(seen(sessions(1e6).split_off(1)));
    assert_eq!(chosen(&model), format!("{:016x}", 2), "it has gone: what stands in its place");
    press(&mut model, "kkkk");
    assert_eq!(chosen(&model), format!("{:016x}", 3));
    model.show(seen(Vec::new()));
    press(&mut model, "j");
    assert_eq!(chosen(&model), "");
}

#[test]
fn a_filter_is_typed_kept_and_dropped() {
    let mut model = model();
    press(&mut model, "/ORD\n");
    assert_eq!((model.sheet().rows.len(), chosen(&model)), (1, format!("{:016x}", 2)));
    assert!(screen(&model, 80, 24).contains("filter: ORD"));
    press(&mut model, "/q\u{1b}");
    assert_eq!((model.sheet().rows.len(), model.filter.as_str()), (3, ""));
    assert!(!model.apply(Action::Back) && !model.apply(Action::Quit));
}

#[test]
fn order_pace_and_pause_are_shown() {
    let mut model = model();
    press(&mut model, "r+p");
    assert!(screen(&model, 80, 24).contains("by rate turned, paused"));
    press(&mut model, "ps");
    assert!(screen(&model, 80, 24).contains("by bytes/s, 2s"));
    press(&mut model, "---------------");
    assert_eq!(model.interval, Duration::from_millis(100));
    press(&mut model, "+++++++++++++++");
    assert_eq!(model.interval, Duration::from_secs(60));
}

#[test]
fn without_colours_weight_alone_warns() {
    let styles = |has_colours| {
        let terminal = terminal(&model(), 120, 40, has_colours);
        let cells = terminal.backend().buffer().content().to_vec();
        let colours = cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        let bold =
            cells.iter().any(|cell| cell.symbol() == "█" && cell.modifier.contains(Modifier::BOLD));
        (colours, bold)
    };
    assert_eq!((styles(true), styles(false)), ((true, true), (false, true)));
}
