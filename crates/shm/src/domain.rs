//! A domain of sessions, as one process uses it: opens publishers and subscribers.

use crate::directory;
use crate::domain_state::DomainState;
use crate::error::{OpenError, TopicError};
use crate::local_session::DomainKey;
use crate::publisher::Publisher;
use crate::settings::{DomainSettings, Visibility};
use crate::subscriber::Subscriber;
use crate::telemetry::Telemetry;
use lanecast_os::{barrier, private_directory};
use lanecast_transport::{SessionId, TopicSelection, Transport};
use lanecast_wire::shm::TOPIC_NAME_MAX;
use std::sync::Arc;

/// The shared-memory transport. Publishers and subscribers with the same directory find each other
/// in any order of starting, without a daemon; within a process they join at once.
#[derive(Clone, Debug)]
pub struct Domain {
    state: Arc<DomainState>,
}

impl Domain {
    /// Opens the domain: creates its directory if absent, checks its permissions, and removes the
    /// files of dead publishers. A domain visible within the process only has no directory.
    ///
    /// # Errors
    /// If the settings are out of bounds or the directory cannot be used.
    pub fn open(settings: DomainSettings) -> Result<Self, OpenError> {
        settings.check()?;
        barrier::register();
        let (key, reclaimed) = match settings.visibility {
            Visibility::Host => prepare_directory(&settings)?,
            Visibility::Process => (DomainKey::Name(settings.directory.clone()), 0),
        };
        let telemetry = Telemetry::open(&settings);
        telemetry.reclaimed(reclaimed);
        Ok(Self { state: Arc::new(DomainState::new(settings, key, telemetry)) })
    }

    /// The settings of the domain.
    pub fn settings(&self) -> &DomainSettings {
        self.state.settings()
    }
}

/// Prepares the directory; returns the domain's key and the number of stale sessions removed.
fn prepare_directory(settings: &DomainSettings) -> Result<(DomainKey, usize), OpenError> {
    private_directory(&settings.directory, settings.access)?;
    let read = OpenError::system("read the domain's directory");
    let reclaimed = directory::reclaim(&settings.directory).map_err(&read)?.len();
    let path = settings.directory.canonicalize().map_err(read)?;
    Ok((DomainKey::Directory(path), reclaimed))
}

impl Transport for Domain {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    type Error = OpenError;

    fn name(&self) -> &'static str {
        match self.settings().visibility {
            Visibility::Host => "shm",
            Visibility::Process => "thread",
        }
    }

    fn keeps_order_across_topics(&self) -> bool {
        true
    }

    fn publisher(&self, topic: &str) -> Result<Publisher, OpenError> {
        Publisher::open(&self.state, topic)
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, OpenError> {
        self.subscriber_of(&TopicSelection::of_names(topics))
    }

    fn subscriber_of(&self, selection: &TopicSelection) -> Result<Subscriber, OpenError> {
        self.subscribe(selection, None)
    }

    fn subscriber_except(
        &self,
        topics: &[&str],
        session: SessionId,
    ) -> Result<Subscriber, OpenError> {
        self.subscribe(&TopicSelection::of_names(topics), Some(session.0))
    }
}

impl Domain {
    fn subscribe(
        &self,
        topics: &TopicSelection,
        except: Option<u64>,
    ) -> Result<Subscriber, OpenError> {
        if topics.is_empty() {
            return Err(OpenError::NoTopics);
        }
        if let Some(bad) = topics.names().find(|t| t.is_empty() || t.len() > TOPIC_NAME_MAX) {
            return Err(TopicError::Name(bad.len()).into());
        }
        let subscription = self.state.subscribe(topics.clone(), except)?;
        Ok(Subscriber::new(subscription, Arc::clone(&self.state)))
    }
}
