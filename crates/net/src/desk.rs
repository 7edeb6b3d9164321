//! The threads in the background, and how they are spoken to.

use crate::conductor::{Conductor, Part};
use crate::error::{OpenError, system};
use crate::finder::Finder;
use crate::presence::Attention;
use crate::publishers::{self, Lingering, PublisherEnd, Publishers};
use crate::session::Source;
use crate::settings::{Drive, Settings, nanos};
use crate::subscribers::{self, SubscriberEnd, Subscribers};
use lanecast_base::AgentRunner;
use lanecast_os::affinity;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Notices on their way to a conductor.
#[derive(Debug)]
pub(crate) struct Mailbox<N>(Mutex<Vec<N>>);

impl<N> Mailbox<N> {
    fn post(&self, notice: N) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    pub(crate) fn take(&self) -> Vec<N> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<N> Default for Mailbox<N> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// Where ends report to the conductor, or to both.
#[derive(Debug)]
pub(crate) struct Desk {
    to_send: Arc<Mailbox<publishers::Notice>>,
    to_find: Arc<Mailbox<subscribers::Notice>>,
    lingering: Arc<Lingering>,
    /// Rings whoever stands in for publishers.
    pub(crate) sending: Arc<Attention>,
    /// Rings whoever stands in for subscribers, and finds publishers; the same, unless there are
    /// two.
    pub(crate) finding: Arc<Attention>,
    _runners: Vec<AgentRunner>,
}

impl Desk {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system refuses one, or its CPU.
    pub(crate) fn open(settings: &Settings, finder: Finder) -> Result<Self, OpenError> {
        let always = settings.drive != Drive::Caller;
        let (to_send, to_find) = (Arc::default(), Arc::default());
        let lingering = Arc::default();
        let linger = nanos(settings.liveness);
        let publishers =
            Publishers::new(Arc::clone(&to_send), Arc::clone(&lingering), linger, always);
        let subscribers = Subscribers::new(Arc::clone(&to_find), finder, always);
        let (publishers, subscribers): (Box<dyn Part>, Box<dyn Part>) =
            (Box::new(publishers), Box::new(subscribers));
        let attention = || Attention::new().map(Arc::new).map_err(system("make a bell"));
        let finding = attention()?;
        let first = settings.cpus.first().copied();
        let mut runners = Vec::new();
        let sending = if settings.drive == Drive::Split {
            let sending = attention()?;
            let cpu = settings.cpus.get(1).copied().or(first);
            runners.push(start("lanecast-send", vec![publishers], &sending, always, cpu)?);
            runners.push(start("lanecast-recv", vec![subscribers], &finding, always, first)?);
            sending
        } else {
            let parts = vec![subscribers, publishers];
            runners.push(start("lanecast-net", parts, &finding, always, first)?);
            Arc::clone(&finding)
        };
        Ok(Self { to_send, to_find, lingering, sending, finding, _runners: runners })
    }

    fn send(&self, notice: publishers::Notice) {
        self.to_send.post(notice);
        self.sending.ring();
    }

    fn find(&self, notice: subscribers::Notice) {
        self.to_find.post(notice);
        self.finding.ring();
    }

    pub(crate) fn publish(&self, end: PublisherEnd) {
        self.send(publishers::Notice::Publish(end));
    }

    pub(crate) fn announce(&self, source: Source, datagram_bytes: usize, topic: &str) {
        let topic = topic.to_owned();
        self.find(subscribers::Notice::Announce { source, datagram_bytes, topic });
    }

    /// A publisher has closed.
    pub(crate) fn retire(&self, session: u64) {
        self.lingering.add();
        self.find(subscribers::Notice::Withdraw { session });
        self.send(publishers::Notice::Retire { session });
    }

    pub(crate) fn subscribe(&self, end: SubscriberEnd) {
        self.find(subscribers::Notice::Subscribe(end));
    }

    pub(crate) fn forget(&self, number: u64) {
        self.find(subscribers::Notice::Forget { number });
    }

    /// Waits until no closed publisher has anything to repair, at most `limit`.
    pub(crate) fn wait_until_settled(&self, limit: Duration) {
        self.lingering.wait_until_settled(limit);
    }
}

fn start(
    name: &'static str,
    parts: Vec<Box<dyn Part>>,
    attention: &Arc<Attention>,
    always: bool,
    cpu: Option<usize>,
) -> Result<AgentRunner, OpenError> {
    let conductor = Conductor::new(name, parts, Arc::clone(attention), always);
    let bell = Arc::clone(attention);
    let pin = move || cpu.map_or(Ok(()), affinity::pin);
    AgentRunner::start_with(pin, Box::new(conductor), move || bell.ring())
        .map_err(system("start a thread in the background, on its CPU of net.cpus if that is set"))
}
