//! State of `top`: the last snapshot, and the user's selection.

use crate::counters::Process;
use crate::sessions::Session;
use crate::top::keys::Action;
use crate::top::processes::{COUNTER_PID, ERROR_AGE, counters, errors};
use crate::top::sheet::{Sheet, Sort};
use crate::top::streams::{STREAM_RATE, streams};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The views, in the order of their numbers.
pub(crate) const VIEWS: [&str; 3] = ["streams", "counters", "errors"];
/// The intervals to choose from.
const INTERVALS: [Duration; 8] = [
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(60),
];
/// Rates kept for each session: as many as the widest terminal shows.
const HISTORY: usize = 400;
/// The longest filter.
const FILTER_MAX: usize = 60;

/// One snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) sessions: Vec<Session>,
    pub(crate) processes: Vec<Process>,
    /// Errors of reading.
    pub(crate) errors: Vec<String>,
    /// When, in nanoseconds since 1970.
    pub(crate) unix_ns: u64,
}

/// Selection, order and scroll position of one view.
#[derive(Clone, Debug)]
struct Pane {
    sort: Sort,
    /// The chosen row, and where it was when it was chosen.
    chosen: Option<(String, usize)>,
}

/// The state of the program.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) directory: String,
    pub(crate) interval: Duration,
    pub(crate) view: usize,
    pub(crate) is_paused: bool,
    pub(crate) is_typing: bool,
    pub(crate) is_helping: bool,
    pub(crate) filter: String,
    pub(crate) seen: Seen,
    panes: [Pane; VIEWS.len()],
    history: BTreeMap<u64, VecDeque<f64>>,
}

impl Model {
    pub(crate) fn new(directory: String, interval: Duration, filter: String) -> Self {
        let pane = |column| Pane { sort: Sort { column, is_reversed: false }, chosen: None };
        Self {
            directory,
            interval,
            view: 0,
            is_paused: false,
            is_typing: false,
            is_helping: false,
            filter,
            seen: Seen::default(),
            panes: [pane(STREAM_RATE), pane(COUNTER_PID), pane(ERROR_AGE)],
            history: BTreeMap::new(),
        }
    }

    /// Takes in a look.
    pub(crate) fn show(&mut self, seen: Seen) {
        let mut history = BTreeMap::new();
        for session in &seen.sessions {
            let mut rates = self.history.remove(&session.report.session).unwrap_or_default();
            if rates.len() == HISTORY {
                rates.pop_front();
            }
            rates.push_back(session.rates.messages);
            history.insert(session.report.session, rates);
        }
        self.history = history;
        self.seen = seen;
    }

    /// The table of the present view.
    pub(crate) fn sheet(&self) -> Sheet {
        let mut sheet = match self.view {
            0 => streams(&self.seen.sessions),
            1 => counters(&self.seen.processes),
            _ => errors(&self.seen.processes, self.seen.unix_ns),
        };
        sheet.filter(&self.filter);
        sheet.sort(self.sort());
        sheet
    }

    pub(crate) const fn sort(&self) -> Sort {
        self.panes[self.view].sort
    }

    /// The chosen row of `sheet`, which is the present view's. If it has gone, the one that
    /// stands in its place; if none was chosen, the first.
    pub(crate) fn chosen(&self, sheet: &Sheet) -> Option<usize> {
        let last = sheet.rows.len().checked_sub(1)?;
        let chosen = self.panes[self.view].chosen.as_ref();
        Some(chosen.map_or(0, |(name, at)| sheet.position(name).unwrap_or((*at).min(last))))
    }

    /// The session of the chosen row, in the view of streams.
    pub(crate) fn chosen_session(&self, sheet: &Sheet) -> Option<&Session> {
        let row = &sheet.rows[self.chosen(sheet)?];
        let mut sessions = self.seen.sessions.iter().filter(|_| self.view == 0);
        sessions.find(|session| session.number() == row.name)
    }

    /// The last rates of a session, the latest last.
    pub(crate) fn history(&self, session: &Session) -> impl DoubleEndedIterator<Item = f64> + '_ {
        self.history.get(&session.report.session).into_iter().flatten().copied()
    }

    /// Does what the user wants; says whether to go on.
    pub(crate) fn apply(&mut self, action: Action) -> bool {
        match action {
            Action::Quit => return false,
            Action::Back if self.is_helping => self.is_helping = false,
            Action::Back if self.is_typing => {
                self.is_typing = false;
                self.filter.clear();
            }
            Action::Back => return false,
            Action::Move(rows) => self.choose(rows),
            Action::View(view) => self.view = view.min(VIEWS.len() - 1),
            Action::NextView => self.view = (self.view + 1) % VIEWS.len(),
            Action::NextSort => {
                let columns = self.sheet().columns.len();
                let sort = &mut self.panes[self.view].sort;
                *sort = Sort { column: (sort.column + 1) % columns, is_reversed: false };
            }
            Action::Reverse => self.panes[self.view].sort.is_reversed ^= true,
            Action::EditFilter => self.is_typing = true,
            Action::Type(c) if self.filter.len() < FILTER_MAX => self.filter.push(c),
            Action::Type(_) => {}
            Action::Erase => drop(self.filter.pop()),
            Action::Keep => self.is_typing = false,
            Action::Pause => self.is_paused ^= true,
            Action::Slower => {
                let longer = INTERVALS.into_iter().find(|&interval| interval > self.interval);
                self.interval = longer.unwrap_or(self.interval);
            }
            Action::Faster => {
                let shorter = INTERVALS.into_iter().rfind(|&interval| interval < self.interval);
                self.interval = shorter.unwrap_or(self.interval);
            }
            Action::Help => self.is_helping ^= true,
        }
        true
    }

    fn choose(&mut self, rows: isize) {
        let sheet = self.sheet();
        let Some(at) = self.chosen(&sheet) else { return };
        let at = at.saturating_add_signed(rows).min(sheet.rows.len() - 1);
        self.panes[self.view].chosen = Some((sheet.rows[at].name.clone(), at));
    }
}
