//! What a network tells about itself to whoever looks: counters files.
//!
//! State machines count for themselves; whoever drives an end copies that into its [`Board`] now
//! and then. No message costs anything.

use crate::counters::{PUBLISHER, PublisherCounters, Row, SUBSCRIBER, SubscriberCounters};
use crate::session::Source;
use lanecast_base::sync::{AtomicUsize, Ordering};
use lanecast_protocol::{MILLISECOND, Nanos};
use lanecast_stats::{CounterLayout, CounterOwner, Counters, Loss, Role};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often files are brought up to date: so often that rates between two looks mean something.
pub(crate) const TELL_EVERY: Nanos = 50 * MILLISECOND;
/// Who may look: the user alone.
const MODE: u32 = 0o600;
/// The most sessions with files of their own.
const BOARDS_MAX: usize = 128;
/// The most losses of the log.
const LOSSES: u32 = 256;

const LABELS: [&str; 4] = [
    "network sessions published",
    "network sessions joined",
    "network sessions without a file",
    "network errors",
];
const PUBLISHED: usize = 0;
const JOINED: usize = 1;
const WITHOUT: usize = 2;
const ERRORS: usize = 3;

/// A network's counters files; without them (the disk is full, say) nothing is told, and the
/// transports work all the same.
#[derive(Debug)]
pub(crate) struct Telemetry {
    files: Option<Arc<Files>>,
}

#[derive(Debug)]
struct Files {
    directory: PathBuf,
    process: Counters,
    /// How many boards there are.
    boards: AtomicUsize,
}

impl Telemetry {
    /// Tells nobody anything.
    pub(crate) const fn silent() -> Self {
        Self { files: None }
    }

    /// Tells in `directory`, if there is one.
    pub(crate) fn open(directory: Option<&Path>) -> Self {
        let files = directory.and_then(|directory| {
            let process =
                Counters::create(directory, MODE, &CounterLayout::process(&LABELS, LOSSES)).ok()?;
            Some(Arc::new(Files {
                directory: directory.to_owned(),
                process,
                boards: AtomicUsize::new(0),
            }))
        });
        Self { files }
    }

    pub(crate) fn error(&self, text: &str) {
        if let Some(files) = &self.files {
            files.process.add(ERRORS, 1);
            files.process.error(text);
        }
    }

    /// For a session that this process publishes.
    pub(crate) fn publisher(&self, source: &Source) -> Board<PublisherCounters> {
        self.board(Role::Publisher, source, PUBLISHED, &PUBLISHER)
    }

    /// For a session that a subscriber has begun to join.
    pub(crate) fn subscriber(&self, source: &Source) -> Board<SubscriberCounters> {
        self.board(Role::Subscriber, source, JOINED, &SUBSCRIBER)
    }

    fn board<C>(
        &self,
        role: Role,
        source: &Source,
        counter: usize,
        rows: &'static [Row<C>],
    ) -> Board<C> {
        let Some(files) = &self.files else { return Board::silent() };
        files.process.add(counter, 1);
        let place = Place::take(files);
        let (address, group) = (source.address.to_string(), source.group.map(|g| g.to_string()));
        let owner = CounterOwner {
            role,
            session: source.session,
            transport: source.kind.name(),
            address: &address,
            group: group.as_deref().unwrap_or_default(),
        };
        let labels: Vec<&str> = rows.iter().map(|(label, _)| *label).collect();
        let plan = CounterLayout::session(&labels, owner);
        let shown = place
            .and_then(|place| Some((Counters::create(&files.directory, MODE, &plan).ok()?, place)));
        let due = if shown.is_some() { 0 } else { Nanos::MAX };
        if shown.is_none() {
            files.process.add(WITHOUT, 1);
        }
        Board { files: Some(Arc::clone(files)), shown, rows, due }
    }
}

/// One of [`BOARDS_MAX`].
#[derive(Debug)]
struct Place(Arc<Files>);

impl Place {
    fn take(files: &Arc<Files>) -> Option<Self> {
        let place = Self(Arc::clone(files));
        let others = files.boards.fetch_add(1, Ordering::Relaxed);
        (others < BOARDS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.boards.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where one session's counters are shown, and when next.
#[derive(Debug)]
pub(crate) struct Board<C: 'static> {
    files: Option<Arc<Files>>,
    shown: Option<(Counters, Place)>,
    rows: &'static [Row<C>],
    due: Nanos,
}

impl<C> Board<C> {
    /// Shows nothing to anybody.
    pub(crate) const fn silent() -> Self {
        Self { files: None, shown: None, rows: &[], due: Nanos::MAX }
    }

    /// Whether it is time to [`show`](Self::show).
    #[inline]
    pub(crate) const fn is_due(&self, now: Nanos) -> bool {
        self.due <= now
    }

    /// When it is time; `Nanos::MAX` if nobody can look.
    pub(crate) const fn due(&self) -> Nanos {
        self.due
    }

    /// Brings the file up to date.
    pub(crate) fn show(&mut self, now: Nanos, counters: &C) {
        let Some((file, _)) = &self.shown else { return };
        for (index, (_, value)) in self.rows.iter().enumerate() {
            file.set(index, value(counters));
        }
        self.due = now.saturating_add(TELL_EVERY);
    }

    pub(crate) fn add_topic(&self, name: &str) {
        if let Some((file, _)) = &self.shown {
            file.add_topic(name);
        }
    }

    /// Whether losses are logged.
    pub(crate) const fn logs(&self) -> bool {
        self.files.is_some()
    }

    pub(crate) fn loss(&self, loss: &Loss<'_>) {
        if let Some(files) = &self.files {
            files.process.loss(loss);
        }
    }
}
