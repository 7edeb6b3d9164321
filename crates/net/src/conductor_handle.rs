//! Handle to the conductor, shared by a network's publishers and subscribers.
//!
//! It owns the background threads and the network's context. Owners send commands through it from
//! their own threads.

use crate::conductor::{CommandQueue, Conductor, SubAgent};
use crate::conductor_waker::ConductorWaker;
use crate::context::NetContext;
use crate::discovery::Discovery;
use crate::error::{OpenError, system};
use crate::receive_share::ReceiveShare;
use crate::receive_thread::{ReceiveThread, ReportQueue};
use crate::receive_threads::{ReceiveThreads, ThreadHandle};
use crate::receiver_agent::{ReceiverAgent, ReceiverCommand, SubscriberEntry};
use crate::resolver_daemon::{DaemonSettings, ResolverDaemon};
use crate::sender_agent::{PublisherEntry, SenderAgent, SenderCommand};
use crate::settings::{NetSettings, ThreadingMode, nanos};
use crate::source::Source;
use lanecast_base::{AgentRunner, WaitStrategy};
use lanecast_os::affinity;
use std::net::SocketAddr;
use std::sync::Arc;

/// A network's background threads, and the way to send them commands.
#[derive(Debug)]
pub(crate) struct ConductorHandle {
    pub(crate) context: Arc<NetContext>,
    to_sender: Arc<CommandQueue<SenderCommand>>,
    to_receiver: Arc<CommandQueue<ReceiverCommand>>,
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
        // A receiver that is silent for that long counts as dead, and waits for no repair.
        let linger = nanos(settings.liveness);
        let lingering = Arc::clone(&context.lingering);
        let sender = SenderAgent::new(Arc::clone(&to_sender), lingering, linger, only_driver);
        let receiver_waker = waker()?;
        let (threads, mut runners) = start_receive_threads(settings, &receiver_waker)?;
        let receiver = ReceiverAgent::new(Arc::clone(&to_receiver), discovery, threads, &context);
        let (sender, receiver): (Box<dyn SubAgent>, Box<dyn SubAgent>) =
            (Box::new(sender), Box::new(receiver));
        let first = settings.cpus.first().copied();
        let sender_waker = if settings.threading == ThreadingMode::Split {
            let sender_waker = waker()?;
            // With one CPU given, both threads share it.
            let cpu = settings.cpus.get(1).copied().or(first);
            let thread = BackgroundThread { only_driver, cpu, wait: WaitStrategy::Park };
            runners.push(thread.start("lanecast-send", vec![sender], &sender_waker)?);
            let thread = BackgroundThread { cpu: first, ..thread };
            runners.push(thread.start("lanecast-recv", vec![receiver], &receiver_waker)?);
            sender_waker
        } else {
            let agents = vec![receiver, sender];
            let thread = BackgroundThread { only_driver, cpu: first, wait: WaitStrategy::Park };
            runners.push(thread.start("lanecast-net", agents, &receiver_waker)?);
            Arc::clone(&receiver_waker)
        };
        Ok(Self {
            context: Arc::new(context),
            to_sender,
            to_receiver,
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
        self.context.lingering.add();
        self.command_receiver(ReceiverCommand::RemovePublication { session });
        self.command_sender(SenderCommand::Retire { session });
    }

    /// Adds a subscriber, with its shares if receive threads serve it.
    pub(crate) fn add_subscriber(&self, subscriber: SubscriberEntry, shares: Vec<ReceiveShare>) {
        self.command_receiver(ReceiverCommand::AddSubscriber(subscriber, shares));
    }

    pub(crate) fn remove_subscriber(&self, number: u64) {
        self.command_receiver(ReceiverCommand::RemoveSubscriber { number });
    }
}

#[cfg(test)]
impl ConductorHandle {
    /// Ends the first receive thread; receive threads are the first that were started.
    pub(crate) fn end_receive_thread(&mut self) {
        drop(self._runners.remove(0));
    }
}

impl Drop for ConductorHandle {
    fn drop(&mut self) {
        // The thread may sleep without having seen the connections that closed last.
        self.receiver_waker.wake();
        // Closed publishers go on repairing until their receivers have everything, and publishers
        // learn that subscribers have left.
        self.context.lingering.wait_until_finished(self.context.settings.liveness);
    }
}

fn waker() -> Result<Arc<ConductorWaker>, OpenError> {
    ConductorWaker::new().map(Arc::new).map_err(system("make an event"))
}

/// Starts the receive threads, which report to the thread of `conductor`.
fn start_receive_threads(
    settings: &NetSettings,
    conductor: &Arc<ConductorWaker>,
) -> Result<(ReceiveThreads<ReceiveShare>, Vec<AgentRunner>), OpenError> {
    let reports: Arc<CommandQueue<_>> = Arc::default();
    let (mut handles, mut runners) = (Vec::new(), Vec::new());
    for index in 0..settings.receive_threads {
        let (commands, waker) = (Arc::default(), waker()?);
        let to_conductor =
            ReportQueue { reports: Arc::clone(&reports), waker: Arc::clone(conductor) };
        let agent = ReceiveThread::new(index, Arc::clone(&commands), to_conductor);
        let cpu = settings.receive_cpu(index);
        let thread = BackgroundThread { only_driver: true, cpu, wait: settings.subscriber_wait };
        let name = format!("lanecast-recv{}", index + 1);
        runners.push(thread.start(&name, vec![Box::new(agent)], &waker)?);
        handles.push(ThreadHandle { commands, waker });
    }
    Ok((ReceiveThreads::new(handles, reports), runners))
}

/// Settings of a background thread.
#[derive(Clone, Copy, Debug)]
struct BackgroundThread {
    only_driver: bool,
    cpu: Option<usize>,
    wait: WaitStrategy,
}

impl BackgroundThread {
    fn start(
        self,
        name: &str,
        agents: Vec<Box<dyn SubAgent>>,
        waker: &Arc<ConductorWaker>,
    ) -> Result<AgentRunner, OpenError> {
        let Self { only_driver, cpu, wait } = self;
        let conductor =
            Conductor::new(name.to_owned(), agents, Arc::clone(waker), only_driver, wait);
        let waker = Arc::clone(waker);
        let pin = move || cpu.map_or(Ok(()), affinity::pin);
        AgentRunner::start_with(pin, Box::new(conductor), move || waker.wake())
            .map_err(system("start a background thread, on its CPU of net.cpus if that is set"))
    }
}
