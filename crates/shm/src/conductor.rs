//! Conductor: finds other processes' sessions in the directory, joins them for subscribers, and
//! detects dead publishers.
//!
//! One thread per domain handle, started with the first subscriber. It sleeps until the directory
//! changes or a publisher's process ends, and runs four times a second besides; no message passes
//! through it.
//!
//! A change in the directory costs one check of the changed session, regardless of the number of
//! sessions. A new subscriber causes a full scan, as does every second.

use crate::directory;
use crate::error::JoinError;
use crate::image::Image;
use crate::liveness::{is_publisher_alive, publisher_process};
use crate::local_registry;
use crate::local_session::DomainKey;
use crate::publisher_watch::PublisherWatch;
use crate::segment::SessionFiles;
use crate::settings::DomainSettings;
use crate::subscription::{JoinState, Subscription};
use crate::telemetry::Telemetry;
use lanecast_base::Agent;
use lanecast_os::DirectoryWatch;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Interval of full scans. They find a directory that was removed and created again, whose changes
/// the watch does not see.
const RESCAN: Duration = Duration::from_secs(1);

/// The subscribers of one domain handle.
pub(crate) type Subscribers = Arc<Mutex<Vec<Weak<Subscription>>>>;

pub(crate) struct Conductor {
    settings: DomainSettings,
    domain: Option<DomainKey>,
    watch: DirectoryWatch,
    subscribers: Subscribers,
    telemetry: Arc<Telemetry>,
    publishers: PublisherWatch,
    must_scan: bool,
    /// Sessions whose files have changed since the last duty cycle.
    changed: BTreeSet<u64>,
    /// Time of the earliest retry of a deferred join.
    retry: Option<Instant>,
    last_scan: Option<Instant>,
    last_liveness_check: Instant,
}

/// Outcome of an attempt to join a session.
enum Attempt {
    Joined,
    /// No wanted topic, or a dead publisher.
    Unwanted,
    /// Patterns match topics, and have no room for another one.
    NoRoom,
}

impl Conductor {
    pub(crate) fn new(
        settings: DomainSettings,
        domain: Option<DomainKey>,
        watch: DirectoryWatch,
        subscribers: Subscribers,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        Self {
            settings,
            domain,
            watch,
            subscribers,
            telemetry,
            publishers: PublisherWatch::default(),
            must_scan: true,
            changed: BTreeSet::new(),
            retry: None,
            last_scan: None,
            last_liveness_check: Instant::now(),
        }
    }

    /// Longest time between two checks of all publishers.
    fn interval(&self) -> Duration {
        self.publishers.interval(self.settings.liveness)
    }

    /// Joins every session that a subscriber wants and has not joined. False if the directory
    /// cannot be read, for example for want of file descriptors; the next scan tries again.
    fn scan(&mut self, now: Instant) -> bool {
        let sessions = match directory::sessions(&self.settings.directory) {
            Ok(sessions) => sessions,
            Err(error) => {
                self.telemetry
                    .error(&format!("cannot read {}: {error}", self.settings.directory.display()));
                return false;
            }
        };
        let subscribers = self.living_subscribers();
        for subscription in &subscribers {
            subscription.join_states().retain(|session, _| sessions.contains(session));
        }
        self.retry = None;
        self.join_sessions(&sessions, &subscribers, now);
        for subscription in &subscribers {
            if subscription.awaits_room() {
                self.telemetry.error(&subscription.request.topics.refusal());
            }
            let due = subscription.join_states().values().filter_map(|state| state.due()).min();
            self.retry = self.retry.into_iter().chain(due).min();
            if let Some(domain) = &self.domain {
                local_registry::retry_joins(domain, subscription);
            }
        }
        true
    }

    /// Joins those of `sessions` that a subscriber wants and has not joined.
    fn join_sessions(
        &mut self,
        sessions: &BTreeSet<u64>,
        subscribers: &[Arc<Subscription>],
        now: Instant,
    ) {
        for &session in sessions {
            if subscribers.is_empty() || self.is_local(session) {
                continue;
            }
            let wanting = |it: &&Arc<Subscription>| it.request.except != Some(session);
            for subscription in subscribers.iter().filter(wanting) {
                let state = subscription.join_states().get(&session).copied();
                if state.is_none_or(|state| state.is_due(now)) {
                    self.join_session(session, subscription, now);
                }
            }
        }
    }

    fn living_subscribers(&self) -> Vec<Arc<Subscription>> {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscription| subscription.strong_count() > 0);
        subscribers.iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether the session belongs to this process and is joined through the in-process registry,
    /// which has it from before its files get names until after their removal.
    fn is_local(&self, session: u64) -> bool {
        self.domain.as_ref().is_some_and(|domain| local_registry::is_local(domain, session))
    }

    /// Joins the session if wanted, and notes its state for the subscription.
    fn join_session(&mut self, session: u64, subscription: &Arc<Subscription>, now: Instant) {
        let files = SessionFiles::new(&self.settings.directory, session);
        let joined = self.try_join(&files, subscription);
        let mut states = subscription.join_states();
        match joined {
            Ok(Attempt::Joined) => {
                states.insert(session, JoinState::Settled);
            }
            Ok(Attempt::Unwanted) => {
                states.remove(&session);
            }
            Ok(Attempt::NoRoom) => {
                if states.insert(session, JoinState::NoRoom) != Some(JoinState::NoRoom) {
                    subscription.request.topics.refuse();
                }
            }
            Err(error) if error.is_gone() => {
                states.remove(&session);
            }
            Err(error) => {
                self.telemetry.error(&error.to_string());
                match error {
                    // A header never changes.
                    JoinError::Header { .. } => {
                        states.insert(session, JoinState::Settled);
                    }
                    // A slot may become free: the next scan tries again.
                    JoinError::NoSlot { .. } => {
                        states.remove(&session);
                    }
                    // Descriptors or memory may become available.
                    JoinError::Io { .. } => {
                        let backoff = JoinState::backoff(states.get(&session).copied(), now);
                        self.telemetry.join_deferred();
                        self.retry = self.retry.into_iter().chain(backoff.due()).min();
                        states.insert(session, backoff);
                    }
                }
            }
        }
    }

    /// Joins the session if it has a wanted topic, there is room for it, and its publisher lives.
    fn try_join(
        &mut self,
        files: &SessionFiles,
        subscription: &Arc<Subscription>,
    ) -> Result<Attempt, JoinError> {
        let opened = files.open_ring()?;
        let io = |error| JoinError::Io { path: files.ring.clone(), error };
        let topics = directory::topics(&opened.0, &opened.2).map_err(io)?;
        let wanted = &subscription.request.topics;
        if !topics.iter().any(|topic| wanted.selects(topic)) {
            return Ok(Attempt::Unwanted);
        }
        if !is_publisher_alive(&opened.0, publisher_process(&opened.1)) {
            return Ok(Attempt::Unwanted);
        }
        if !topics.iter().any(|topic| wanted.takes(topic)) {
            return Ok(Attempt::NoRoom);
        }
        let (image, publisher) = Image::join(files, opened, &subscription.request)?;
        self.publishers.add(&publisher);
        subscription.push(image);
        Ok(Attempt::Joined)
    }

    /// Checks that the publishers of joined sessions live, `all` of them or those that the kernel
    /// tells of; removes the files of dead ones.
    fn check_publishers(&mut self, all: bool) {
        if self.publishers.check(all)
            && let Ok(reclaimed) = directory::reclaim(&self.settings.directory)
        {
            self.telemetry.reclaimed(reclaimed.len());
        }
    }
}

impl Agent for Conductor {
    fn do_work(&mut self) -> usize {
        let now = Instant::now();
        let changed = core::mem::take(&mut self.changed);
        let is_due = self.last_scan.is_none_or(|last| now - last >= RESCAN);
        let mut has_scanned = false;
        if self.must_scan || is_due || self.retry.is_some_and(|due| now >= due) {
            self.must_scan = false;
            self.last_scan = Some(now);
            has_scanned = self.scan(now);
        }
        // The watch names changed sessions even where the directory cannot be read.
        if !has_scanned && !changed.is_empty() {
            let subscribers = self.living_subscribers();
            self.join_sessions(&changed, &subscribers, now);
        }
        let is_check_due = now - self.last_liveness_check >= self.interval();
        if is_check_due {
            self.last_liveness_check = now;
        }
        self.check_publishers(is_check_due);
        0
    }

    fn idle(&mut self) {
        let limit = self.interval();
        let changed = &mut self.changed;
        let note = |name: &OsStr| changed.extend(name.to_str().and_then(directory::session_of));
        self.must_scan |= self.watch.wait_beside(self.publishers.descriptor(), limit, note);
    }

    fn name(&self) -> &'static str {
        "lanecast-shm"
    }
}
