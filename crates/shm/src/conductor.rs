//! The duty cycle beside the path: finds sessions, joins them for subscribers, watches lives.
//!
//! One thread per domain handle, started with the first subscriber. It sleeps until the
//! directory changes and comes by a few times per liveness time; no message waits for it.
//!
//! A change in the directory costs a look at the session that changed, however many others there
//! are. All of them are looked at for a new subscriber, and once a second.

use crate::attachment::{Attachment, owner};
use crate::error::AttachError;
use crate::lobby::{self, DomainKey};
use crate::mailbox::{Known, Mailbox, Peer, is_owned};
use crate::registry;
use crate::segment::SessionFiles;
use crate::settings::Settings;
use crate::telemetry::Telemetry;
use lanecast_base::Agent;
use lanecast_os::DirectoryWatch;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A directory whose changes went unseen (it was removed and made anew) is found again by then.
const RESCAN: Duration = Duration::from_secs(1);

/// The subscribers of one domain handle.
pub(crate) type Subscribers = Arc<Mutex<Vec<Weak<Mailbox>>>>;

pub(crate) struct Conductor {
    settings: Settings,
    domain: Option<DomainKey>,
    watch: DirectoryWatch,
    subscribers: Subscribers,
    telemetry: Arc<Telemetry>,
    peers: Vec<Weak<Peer>>,
    must_scan: bool,
    /// Sessions whose files have changed since the last look.
    changed: BTreeSet<u64>,
    /// When the first of the sessions that were put off is due.
    retry: Option<Instant>,
    last_scan: Option<Instant>,
    last_look: Instant,
}

impl Conductor {
    pub(crate) fn new(
        settings: Settings,
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
            peers: Vec::new(),
            must_scan: true,
            changed: BTreeSet::new(),
            retry: None,
            last_scan: None,
            last_look: Instant::now(),
        }
    }

    fn interval(&self) -> Duration {
        (self.settings.liveness / 4).clamp(Duration::from_millis(1), Duration::from_millis(250))
    }

    /// Joins every session that any subscriber wants and does not know yet; false if the directory
    /// cannot be read, for want of descriptors perhaps: the next scan tries again.
    fn scan(&mut self, now: Instant) -> bool {
        let sessions = match registry::sessions(&self.settings.directory) {
            Ok(sessions) => sessions,
            Err(error) => {
                self.telemetry
                    .error(&format!("cannot read {}: {error}", self.settings.directory.display()));
                return false;
            }
        };
        let subscribers = self.living_subscribers();
        for mailbox in &subscribers {
            mailbox.known().retain(|session, _| sessions.contains(session));
        }
        self.retry = None;
        self.look_at(&sessions, &subscribers, now);
        for mailbox in &subscribers {
            let due = mailbox.known().values().filter_map(|known| known.due()).min();
            self.retry = self.retry.into_iter().chain(due).min();
            if let Some(domain) = &self.domain {
                lobby::introduce(domain, mailbox);
            }
        }
        true
    }

    /// Joins those of `sessions` that a subscriber wants and does not know yet.
    fn look_at(&mut self, sessions: &BTreeSet<u64>, subscribers: &[Arc<Mailbox>], now: Instant) {
        for &session in sessions {
            if subscribers.is_empty() || self.lives_here(session) {
                continue;
            }
            for mailbox in subscribers {
                let known = mailbox.known().get(&session).copied();
                if known.is_none_or(|known| known.due().is_some_and(|due| now >= due)) {
                    self.consider(session, mailbox, now);
                }
            }
        }
    }

    fn living_subscribers(&self) -> Vec<Arc<Mailbox>> {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|mailbox| mailbox.strong_count() > 0);
        subscribers.iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether the session is this process's own: the two meet in the lobby, not here. It is there
    /// from before it has names in the directory until after.
    fn lives_here(&self, session: u64) -> bool {
        self.domain.as_ref().is_some_and(|domain| lobby::lives_here(domain, session))
    }

    fn consider(&mut self, session: u64, mailbox: &Arc<Mailbox>, now: Instant) {
        let files = SessionFiles::new(&self.settings.directory, session);
        let joined = self.try_join(&files, mailbox);
        let mut known = mailbox.known();
        match joined {
            Ok(true) => {
                known.insert(session, Known::Settled);
            }
            Ok(false) => {
                known.remove(&session);
            }
            Err(error) if error.is_gone() => {
                known.remove(&session);
            }
            Err(error) => {
                self.telemetry.error(&error.to_string());
                match error {
                    // What the files say never changes.
                    AttachError::Header { .. } => {
                        known.insert(session, Known::Settled);
                    }
                    // A place may become free: the next scan looks.
                    AttachError::NoPlace { .. } => {
                        known.remove(&session);
                    }
                    // There may be descriptors or memory again.
                    AttachError::Io { .. } => {
                        let put_off = Known::put_off(known.get(&session).copied(), now);
                        self.telemetry.put_off();
                        self.retry = self.retry.into_iter().chain(put_off.due()).min();
                        known.insert(session, put_off);
                    }
                }
            }
        }
    }

    /// Joins the session if it has a wanted topic and its publisher lives; says whether.
    fn try_join(
        &mut self,
        files: &SessionFiles,
        mailbox: &Arc<Mailbox>,
    ) -> Result<bool, AttachError> {
        let opened = files.open_ring()?;
        let io = |error| AttachError::Io { path: files.ring.clone(), error };
        let topics = registry::topics(&opened.0, &opened.2).map_err(io)?;
        if !topics.iter().any(|topic| mailbox.topics.contains(topic)) {
            return Ok(false);
        }
        if !is_owned(&opened.0, owner(&opened.1)) {
            return Ok(false);
        }
        let (attachment, peer) = Attachment::join(files, opened, mailbox)?;
        self.peers.push(Arc::downgrade(&peer));
        mailbox.deliver(attachment);
        Ok(true)
    }

    /// Looks whether the publishers of joined sessions still live; cleans up after the dead.
    fn look_after_peers(&mut self) {
        let before = self.peers.len();
        self.peers.retain(|peer| peer.upgrade().is_some_and(|peer| !peer.look()));
        if self.peers.len() < before
            && let Ok(reclaimed) = registry::reclaim(&self.settings.directory)
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
        // Sessions that have changed are known by name also where the directory cannot be read.
        if !has_scanned && !changed.is_empty() {
            let subscribers = self.living_subscribers();
            self.look_at(&changed, &subscribers, now);
        }
        if now - self.last_look >= self.interval() {
            self.last_look = now;
            self.look_after_peers();
        }
        0
    }

    fn idle(&mut self) {
        let limit = self.interval();
        let changed = &mut self.changed;
        let note = |name: &OsStr| changed.extend(name.to_str().and_then(registry::session_of));
        self.must_scan |= self.watch.wait(limit, note);
    }

    fn name(&self) -> &'static str {
        "lanecast-shm"
    }
}
