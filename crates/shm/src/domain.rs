//! One directory of sessions, as one process uses it.

use crate::conductor::{Conductor, Subscribers};
use crate::error::OpenError;
use crate::mailbox::Mailbox;
use crate::publisher::Publisher;
use crate::registry;
use crate::session::system;
use crate::settings::Settings;
use crate::subscriber::Subscriber;
use crate::telemetry::Telemetry;
use lanecast_base::Runner;
use lanecast_carrier::Carrier;
use lanecast_os::{DirectoryWatch, barrier, private_directory};
use lanecast_wire::shm::TOPIC_NAME_MAX;
use std::sync::{Arc, Mutex, PoisonError};

/// The shared-memory carrier: publishers and subscribers with the same directory find each
/// other, in any order of starting, without a daemon.
#[derive(Clone, Debug)]
pub struct Domain {
    shared: Arc<Shared>,
}

/// What a domain's ends share; it lives as long as any of them.
pub(crate) struct Shared {
    settings: Settings,
    subscribers: Subscribers,
    telemetry: Arc<Telemetry>,
    conductor: Mutex<Option<Runner>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Makes the conductor look for sessions now.
    pub(crate) fn look_again(&self) {
        let conductor = self.conductor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runner) = &*conductor {
            runner.wake();
        }
    }

    /// Starts the conductor if it is not running yet.
    fn conduct(&self) -> Result<(), OpenError> {
        let mut conductor = self.conductor.lock().unwrap_or_else(PoisonError::into_inner);
        if conductor.is_none() {
            let watch = DirectoryWatch::new(&self.settings.directory)
                .map_err(system("watch the domain's directory"))?;
            let bell = watch.bell();
            let agent = Conductor::new(
                self.settings.clone(),
                watch,
                Arc::clone(&self.subscribers),
                Arc::clone(&self.telemetry),
            );
            let runner = Runner::start(Box::new(agent), move || bell.ring())
                .map_err(system("start the conductor's thread"))?;
            *conductor = Some(runner);
        }
        Ok(())
    }
}

impl Domain {
    /// Opens the domain: makes its directory if need be, checks who may write in it, and
    /// removes what dead publishers left there.
    ///
    /// # Errors
    /// If the settings are out of bounds or the directory cannot be used.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        settings.check()?;
        private_directory(&settings.directory, settings.access)?;
        barrier::register();
        let reclaimed = registry::reclaim(&settings.directory)
            .map_err(system("read the domain's directory"))?;
        let telemetry = Telemetry::open(&settings);
        telemetry.reclaimed(reclaimed.len());
        let shared = Shared {
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

impl Carrier for Domain {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    type Error = OpenError;

    fn name(&self) -> &'static str {
        "shm"
    }

    fn publisher(&self, topic: &str) -> Result<Publisher, OpenError> {
        Publisher::open(&self.shared.settings, topic)
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, OpenError> {
        if topics.is_empty() {
            return Err(OpenError::NoTopics);
        }
        if let Some(bad) = topics.iter().find(|t| t.is_empty() || t.len() > TOPIC_NAME_MAX) {
            return Err(crate::TopicError::Name(bad.len()).into());
        }
        let mailbox = Arc::new(Mailbox::new(topics.iter().map(|&t| t.to_owned()).collect()));
        let subscribers = &self.shared.subscribers;
        subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&mailbox));
        self.shared.conduct()?;
        self.shared.look_again();
        Ok(Subscriber::new(mailbox, Arc::clone(&self.shared)))
    }
}
