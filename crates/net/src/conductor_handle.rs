//! Handle to the conductor, shared by a network's publishers and subscribers.
//!
//! It owns the background threads and the network's context. Owners send commands through it from
//! their own threads.

use crate::conductor::{CommandQueue, Conductor, SubAgent};
use crate::conductor_waker::ConductorWaker;
use crate::context::NetContext;
use crate::discovery::Discovery;
use crate::error::{OpenError, system};
use crate::receiver_agent::{ReceiverAgent, ReceiverCommand, SubscriberEntry};
use crate::resolver_daemon::{DaemonSettings, ResolverDaemon};
use crate::sender_agent::{Lingering, PublisherEntry, SenderAgent, SenderCommand};
use crate::settings::{ThreadingMode, nanos};
use crate::source::Source;
use lanecast_base::AgentRunner;
use lanecast_os::affinity;
use std::net::SocketAddr;
use std::sync::Arc;

/// A network's background threads, and the way to send them commands.
#[derive(Debug)]
pub(crate) struct ConductorHandle {
    pub(crate) context: Arc<NetContext>,
    to_sender: Arc<CommandQueue<SenderCommand>>,
    to_receiver: Arc<CommandQueue<ReceiverCommand>>,
    lingering: Arc<Lingering>,
    /// Wakes the thread that serves publishers.
    pub(crate) sender_waker: Arc<ConductorWaker>,
    /// Wakes the thread that serves subscribers and discovery; the same thread, unless
    /// [`ThreadingMode::Split`].
    pub(crate) receiver_waker: Arc<ConductorWaker>,
    // Declared in the order in which the threads have to end.
    _runners: Vec<AgentRunner>,
    daemon: Option<(AgentRunner, SocketAddr)>,
}

impl ConductorHandle {
    /// Starts the threads.
    ///
    /// # Errors
    /// If a socket cannot be opened, or the system refuses a thread or its CPU.
    pub(crate) fn start(context: NetContext) -> Result<Self, OpenError> {
        let settings = &context.settings;
        // The daemon starts first: discovery connects to its port, which may be any free one.
        let daemon = settings.resolver_port.map(|port| {
            let listen = SocketAddr::new(context.address, port);
            let tls = settings.tls.clone();
            ResolverDaemon::start(&DaemonSettings { tls, ..DaemonSettings::at(listen) })
        });
        let daemon = daemon.transpose()?;
        let discovery = Discovery::open(&context, daemon.as_ref().map(|(_, address)| *address))?;
        let only_driver = settings.threading != ThreadingMode::Caller;
        let (to_sender, to_receiver) = (Arc::default(), Arc::default());
        let lingering = Arc::default();
        // A receiver that is silent for that long counts as dead, and waits for no repair.
        let linger = nanos(settings.liveness);
        let sender =
            SenderAgent::new(Arc::clone(&to_sender), Arc::clone(&lingering), linger, only_driver);
        let receiver = ReceiverAgent::new(Arc::clone(&to_receiver), discovery, &context);
        let (sender, receiver): (Box<dyn SubAgent>, Box<dyn SubAgent>) =
            (Box::new(sender), Box::new(receiver));
        let waker = || ConductorWaker::new().map(Arc::new).map_err(system("make an event"));
        let receiver_waker = waker()?;
        let first = settings.cpus.first().copied();
        let mut runners = Vec::new();
        let sender_waker = if settings.threading == ThreadingMode::Split {
            let sender_waker = waker()?;
            // With one CPU given, both threads share it.
            let cpu = settings.cpus.get(1).copied().or(first);
            runners.push(start("lanecast-send", vec![sender], &sender_waker, only_driver, cpu)?);
            runners.push(start(
                "lanecast-recv",
                vec![receiver],
                &receiver_waker,
                only_driver,
                first,
            )?);
            sender_waker
        } else {
            let agents = vec![receiver, sender];
            runners.push(start("lanecast-net", agents, &receiver_waker, only_driver, first)?);
            Arc::clone(&receiver_waker)
        };
        Ok(Self {
            context: Arc::new(context),
            to_sender,
            to_receiver,
            lingering,
            sender_waker,
            receiver_waker,
            _runners: runners,
            daemon,
        })
    }

    /// The address of the daemon that [`NetSettings::resolver_port`] asks for.
    ///
    /// [`NetSettings::resolver_port`]: crate::NetSettings::resolver_port
    pub(crate) fn resolver_address(&self) -> Option<SocketAddr> {
        self.daemon.as_ref().map(|(_, address)| *address)
    }

    fn command_sender(&self, command: SenderCommand) {
        // Queued before the wake-up: the thread that wakes finds it.
        self.to_sender.push(command);
        self.sender_waker.wake();
    }

    fn command_receiver(&self, command: ReceiverCommand) {
        // Queued before the wake-up, as above.
        self.to_receiver.push(command);
        self.receiver_waker.wake();
    }

    pub(crate) fn add_publisher(&self, publisher: PublisherEntry) {
        self.command_sender(SenderCommand::Add(publisher));
    }

    pub(crate) fn add_publication(&self, source: Source, datagram_bytes: usize, topic: &str) {
        let topic = topic.to_owned();
        self.command_receiver(ReceiverCommand::AddPublication { source, datagram_bytes, topic });
    }

    /// A publisher has closed; its session lingers until all receivers have everything.
    pub(crate) fn retire_publisher(&self, session: u64) {
        // Counted here, not by the thread: a network that closes right now must wait for it.
        self.lingering.add();
        self.command_receiver(ReceiverCommand::RemovePublication { session });
        self.command_sender(SenderCommand::Retire { session });
    }

    pub(crate) fn add_subscriber(&self, subscriber: SubscriberEntry) {
        self.command_receiver(ReceiverCommand::AddSubscriber(subscriber));
    }

    pub(crate) fn remove_subscriber(&self, number: u64) {
        self.command_receiver(ReceiverCommand::RemoveSubscriber { number });
    }
}

impl Drop for ConductorHandle {
    fn drop(&mut self) {
        // Closed publishers go on repairing until their receivers have everything.
        self.lingering.wait_until_finished(self.context.settings.liveness);
    }
}

fn start(
    name: &'static str,
    agents: Vec<Box<dyn SubAgent>>,
    waker: &Arc<ConductorWaker>,
    only_driver: bool,
    cpu: Option<usize>,
) -> Result<AgentRunner, OpenError> {
    let conductor = Conductor::new(name, agents, Arc::clone(waker), only_driver);
    let waker = Arc::clone(waker);
    let pin = move || cpu.map_or(Ok(()), affinity::pin);
    AgentRunner::start_with(pin, Box::new(conductor), move || waker.wake())
        .map_err(system("start a background thread, on its CPU of net.cpus if that is set"))
}
