//! The server of the demonstration: a thread of this process, reached over TCP.

use anyhow::Context;
use lanecast_broker::{Server, ServerConfig, TopicDefinition};
use lanecast_client::{Client, Event, Identity, Message};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::ViewDefinition;
use std::net::Ipv4Addr;
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest delay until the server notices its end.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Nothing comes for so long: is it all?
const PAUSE: Duration = Duration::from_millis(100);

/// A server that runs until it is [ended](Self::end), or dropped.
#[derive(Debug)]
pub(super) struct DemoServer {
    address: String,
    /// When this goes, the server ends.
    running: Sender<()>,
    thread: JoinHandle<anyhow::Result<()>>,
}

/// A client that speaks FIX.
pub(super) fn connect(server: &str) -> anyhow::Result<Client> {
    connect_as(server, MessageType::Fix)
}

/// Connects a client for messages of one type. A broken connection is an error: the client does not
/// reconnect.
pub(super) fn connect_as(server: &str, kind: MessageType) -> anyhow::Result<Client> {
    let identity = Identity { message_type: kind.to_string(), ..Identity::default() };
    Ok(Client::connect_with(lanecast_client::Settings::once(server, identity))?)
}

/// The next message; none if none comes for a moment.
pub(super) fn next(client: &mut Client) -> anyhow::Result<Option<Message>> {
    loop {
        match client.next(Some(PAUSE))? {
            Some(Event::Message(message)) => return Ok(Some(message)),
            // Nothing has been published before.
            Some(Event::Current { .. }) => {}
            Some(other) => anyhow::bail!("the subscription has not gone on: {other:?}"),
            None => return Ok(None),
        }
    }
}

impl DemoServer {
    /// Starts the server with a topic that keeps the last execution of each order, indexed by
    /// customer and by symbol, and `view` over these.
    pub(super) fn start(view: ViewDefinition) -> anyhow::Result<Self> {
        let mut settings = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
        let executions = TopicDefinition::new("executions", MessageType::Fix);
        settings.topics = vec![executions.key("/37")?.index("/1")?.index("/55")?];
        settings.views = vec![view];
        let mut server = Server::open(settings)?;
        let address = server.address().context("cannot look at a socket")?.to_string();
        let (running, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            while ended.try_recv() == Err(TryRecvError::Empty) {
                server.turn(CHECK_INTERVAL).context("cannot wait for clients")?;
            }
            server.drain();
            Ok(())
        });
        Ok(Self { address, running, thread })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Ends it; says what went wrong with it, if anything did.
    pub(super) fn end(self) -> anyhow::Result<()> {
        drop(self.running);
        self.thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the server has failed")))
    }
}
