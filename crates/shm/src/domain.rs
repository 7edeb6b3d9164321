//! One domain of sessions, as one process uses it.

use crate::conductor::{Conductor, Subscribers};
use crate::error::OpenError;
use crate::lobby::DomainKey;
use crate::mailbox::Mailbox;
use crate::publisher::Publisher;
use crate::registry;
use crate::session::system;
use crate::settings::{Reach, Settings};
use crate::subscriber::Subscriber;
use crate::telemetry::Telemetry;
use lanecast_base::AgentRunner;
use lanecast_os::{DirectoryWatch, barrier, private_directory};
use lanecast_transport::Transport;
use lanecast_wire::shm::TOPIC_NAME_MAX;
use std::sync::{Arc, Mutex, PoisonError};

/// The transport over shared memory: publishers and subscribers with the same directory find each
/// other, in any order of starting, without a daemon. Within a process they meet at once.
#[derive(Clone, Debug)]
pub struct Domain {
    shared: Arc<Shared>,
}

/// What a domain's ends share; it lives as long as any of them.
pub(crate) struct Shared {
    settings: Settings,
    key: Option<DomainKey>,
    subscribers: Subscribers,
    telemetry: Arc<Telemetry>,
    conductor: Mutex<Option<AgentRunner>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Shared {
    /// What ends in one process find each other by.
    pub(crate) const fn key(&self) -> Option<&DomainKey> {
        self.key.as_ref()
    }

    /// Makes the conductor look for sessions now.
    pub(crate) fn look_again(&self) {
        let conductor = self.conductor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runner) = &*conductor {
            runner.wake();
        }
    }

    /// Starts the conductor if it is not running yet, and there is anybody outside to look for.
    fn conduct(&self) -> Result<(), OpenError> {
        if self.settings.reach == Reach::Process {
            return Ok(());
        }
        let mut conductor = self.conductor.lock().unwrap_or_else(PoisonError::into_inner);
        if conductor.is_none() {
            let watch = DirectoryWatch::new(&self.settings.directory)
                .map_err(system("watch the domain's directory"))?;
            let bell = watch.bell();
            let agent = Conductor::new(
                self.settings.clone(),
                self.key.clone(),
                watch,
                Arc::clone(&self.subscribers),
                Arc::clone(&self.telemetry),
            );
            let runner = AgentRunner::start(Box::new(agent), move || bell.ring())
                .map_err(system("start the conductor's thread"))?;
            *conductor = Some(runner);
        }
        Ok(())
    }
}

impl Domain {
    /// Opens the domain: makes its directory if need be, checks who may write in it, and
    /// removes what dead publishers left there. A domain within one process has none of this.
    ///
    /// # Errors
    /// If the settings are out of bounds or the directory cannot be used.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        settings.check()?;
        barrier::register();
        let (key, reclaimed) = match settings.reach {
            Reach::Host => prepare(&settings)?,
            Reach::Process => (DomainKey::Name(settings.directory.clone()), 0),
        };
        let telemetry = Telemetry::open(&settings);
        telemetry.reclaimed(reclaimed);
        let shared = Shared {
            key: settings.direct.then_some(key),
            settings,
            subscribers: Subscribers::default(),
            telemetry: Arc::new(telemetry),
            conductor: Mutex::new(None),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }
}

/// Makes the directory ready; what it is known by, and how many sessions were removed from it.
fn prepare(settings: &Settings) -> Result<(DomainKey, usize), OpenError> {
    private_directory(&settings.directory, settings.access)?;
    let read = system("read the domain's directory");
    let reclaimed = registry::reclaim(&settings.directory).map_err(&read)?.len();
    let path = settings.directory.canonicalize().map_err(read)?;
    Ok((DomainKey::Directory(path), reclaimed))
}

impl Transport for Domain {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    type Error = OpenError;

    fn name(&self) -> &'static str {
        match self.shared.settings.reach {
            Reach::Host => "shm",
            Reach::Process => "thread",
        }
    }

    fn publisher(&self, topic: &str) -> Result<Publisher, OpenError> {
        Publisher::open(&self.shared.settings, self.shared.key.clone(), topic)
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, OpenError> {
        if topics.is_empty() {
            return Err(OpenError::NoTopics);
        }
        if let Some(bad) = topics.iter().find(|t| t.is_empty() || t.len() > TOPIC_NAME_MAX) {
            return Err(crate::TopicError::Name(bad.len()).into());
        }
        let (wait, telemetry) = (self.shared.settings.subscriber_wait, &self.shared.telemetry);
        let mailbox = Arc::new(Mailbox::new(topics, wait, Arc::clone(telemetry)));
        let subscribers = &self.shared.subscribers;
        subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&mailbox));
        self.shared.conduct()?;
        self.shared.look_again();
        Ok(Subscriber::new(mailbox, Arc::clone(&self.shared)))
    }
}
