//! State of a domain that its publishers and subscribers share: settings, counters, conductor.

use crate::conductor::{Conductor, Subscribers};
use crate::error::OpenError;
use crate::local_session::DomainKey;
use crate::settings::{DomainSettings, Visibility};
use crate::subscription::Subscription;
use crate::telemetry::Telemetry;
use crate::wake_pipe::{OpenPipes, WakePipe};
use crate::wakeup_thread::Wakeups;
use lanecast_base::AgentRunner;
use lanecast_os::DirectoryWatch;
use lanecast_transport::TopicSelection;
use std::sync::{Arc, Mutex, PoisonError};

/// A domain's shared state; lives as long as the domain or any of its subscribers.
pub(crate) struct DomainState {
    settings: DomainSettings,
    key: Option<DomainKey>,
    subscribers: Subscribers,
    telemetry: Arc<Telemetry>,
    conductor: Mutex<Option<AgentRunner>>,
    wakeups: Arc<Wakeups>,
    pipes: Arc<OpenPipes>,
}

impl std::fmt::Debug for DomainState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DomainState").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl DomainState {
    pub(crate) fn new(settings: DomainSettings, key: DomainKey, telemetry: Telemetry) -> Self {
        Self {
            key: settings.local_join.then_some(key),
            pipes: Arc::new(OpenPipes::new(&settings.directory)),
            settings,
            subscribers: Subscribers::default(),
            telemetry: Arc::new(telemetry),
            conductor: Mutex::new(None),
            wakeups: Arc::default(),
        }
    }

    pub(crate) const fn settings(&self) -> &DomainSettings {
        &self.settings
    }

    /// Key of the in-process registry; `None` without local joins.
    pub(crate) const fn key(&self) -> Option<&DomainKey> {
        self.key.as_ref()
    }

    /// The wake-up thread of descriptors.
    pub(crate) const fn wakeups(&self) -> &Arc<Wakeups> {
        &self.wakeups
    }

    /// The pipes that publishers have opened.
    pub(crate) const fn pipes(&self) -> &Arc<OpenPipes> {
        &self.pipes
    }

    /// A pipe for the descriptor of a subscriber, if publishers of other processes can use one.
    /// Without it they wake the subscriber by the slots' words.
    pub(crate) fn make_pipe(&self) -> Option<WakePipe> {
        if self.settings.visibility == Visibility::Process {
            return None;
        }
        WakePipe::make(&self.settings.directory, self.settings.access.write_mode()).ok()
    }

    /// A new subscription, for which the conductor joins other processes' sessions.
    pub(crate) fn subscribe(
        &self,
        topics: TopicSelection,
        except: Option<u64>,
    ) -> Result<Arc<Subscription>, OpenError> {
        let (wait, telemetry) = (self.settings.subscriber_wait, Arc::clone(&self.telemetry));
        let subscription = Arc::new(Subscription::new(topics, except, wait, telemetry));
        let weak = Arc::downgrade(&subscription);
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(weak);
        self.start_conductor()?;
        self.wake_conductor();
        Ok(subscription)
    }

    /// Wakes the conductor for a scan of the directory.
    pub(crate) fn wake_conductor(&self) {
        let conductor = self.conductor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runner) = &*conductor {
            runner.wake();
        }
    }

    /// Starts the conductor if it does not run yet and the domain is visible to other processes.
    fn start_conductor(&self) -> Result<(), OpenError> {
        if self.settings.visibility == Visibility::Process {
            return Ok(());
        }
        let mut conductor = self.conductor.lock().unwrap_or_else(PoisonError::into_inner);
        if conductor.is_none() {
            let watch = DirectoryWatch::new(&self.settings.directory)
                .map_err(OpenError::system("watch the domain's directory"))?;
            let bell = watch.waker();
            let agent = Conductor::new(
                self.settings.clone(),
                self.key.clone(),
                watch,
                Arc::clone(&self.subscribers),
                Arc::clone(&self.telemetry),
            );
            let runner = AgentRunner::start(Box::new(agent), move || bell.wake())
                .map_err(OpenError::system("start the conductor's thread"))?;
            *conductor = Some(runner);
        }
        Ok(())
    }
}
