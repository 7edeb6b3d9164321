//! The duty cycle beside the path: finds sessions, joins them for subscribers, watches lives.
//!
//! One thread per domain handle, started with the first subscriber. It sleeps until the
//! directory changes and comes by a few times per liveness time; no message waits for it.

use crate::attachment::Attachment;
use crate::error::AttachError;
use crate::lobby::{self, DomainKey};
use crate::mailbox::{Mailbox, Peer};
use crate::registry;
use crate::segment::SessionFiles;
use crate::settings::Settings;
use crate::telemetry::Telemetry;
use lanecast_base::Agent;
use lanecast_os::DirectoryWatch;
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
            last_scan: None,
            last_look: Instant::now(),
        }
    }

    fn interval(&self) -> Duration {
        (self.settings.liveness / 4).clamp(Duration::from_millis(1), Duration::from_millis(250))
    }

    /// Joins every session that any subscriber wants and does not know yet.
    fn scan(&mut self) {
        let sessions = match registry::sessions(&self.settings.directory) {
            Ok(sessions) => sessions,
            Err(error) => {
                self.telemetry
                    .error(&format!("cannot read {}: {error}", self.settings.directory.display()));
                return;
            }
        };
        for mailbox in self.living_subscribers() {
            mailbox.known().retain(|session| sessions.contains(session));
            for &session in &sessions {
                if !mailbox.known().contains(&session) && !self.lives_here(session) {
                    self.consider(session, &mailbox);
                }
            }
            if let Some(domain) = &self.domain {
                lobby::introduce(domain, &mailbox);
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

    fn consider(&mut self, session: u64, mailbox: &Arc<Mailbox>) {
        let files = SessionFiles::new(&self.settings.directory, session);
        match self.try_join(&files, mailbox) {
            Ok(true) => {
                mailbox.known().insert(session);
            }
            Ok(false) => {}
            Err(error) if error.is_gone() => {}
            Err(error) => {
                self.telemetry.error(&error.to_string());
                // A place may become free; nothing else heals by itself.
                if !matches!(error, AttachError::NoPlace { .. }) {
                    mailbox.known().insert(session);
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
        if registry::owner_of(files) != registry::Owner::Alive {
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
        if self.must_scan || self.last_scan.is_none_or(|last| now - last >= RESCAN) {
            self.must_scan = false;
            self.last_scan = Some(now);
            self.scan();
        }
        if now - self.last_look >= self.interval() {
            self.last_look = now;
            self.look_after_peers();
        }
        0
    }

    fn idle(&mut self) {
        self.must_scan |= self.watch.wait(self.interval());
    }

    fn name(&self) -> &'static str {
        "lanecast-shm"
    }
}
