//! NATS JetStream: three servers in a cluster, a stream of three replicas in files that are
//! synchronised always, and a publisher that speaks the text protocol by hand to the leader.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::SERVERS;
use crate::confirmations::{Said, sequence, split};
use crate::servers::{Server, free_ports};
use crate::sides::PersistentSide;

/// Longest wait for something that the server says.
const WAIT: Duration = Duration::from_millis(500);
/// Pause before the cluster is asked again.
const PAUSE: Duration = Duration::from_millis(100);
const READ: usize = 256 << 10;
const LOGON: &[u8] = b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\nSUB _INBOX.m 1\r\n";
const STREAM: &str = "KEPT";

/// Three servers with their stream, and its publisher.
#[derive(Debug)]
pub struct JetStream {
    client: Client,
    /// Messages that were sent, and confirmed.
    sent: u64,
    confirmed: u64,
    servers: Vec<Server>,
}

impl JetStream {
    /// Starts three servers of the program `nats` with their data in `data`, and waits until they
    /// have made the stream.
    ///
    /// # Errors
    /// If one cannot be started, or they do not agree for `patience`.
    pub fn start(nats: &Path, data: &Path, patience: Duration) -> Result<Self> {
        let ports: [u16; 2 * SERVERS] = free_ports()?;
        let (clients, routes) = ports.split_at(SERVERS);
        let routes_text: Vec<String> =
            routes.iter().map(|port| format!("nats-route://127.0.0.1:{port}")).collect();
        let routes_text = routes_text.join(", ");
        let mut servers = Vec::new();
        for (index, (client, route)) in clients.iter().zip(routes).enumerate() {
            let name = format!("n{index}");
            let file = data.join(format!("{name}.conf"));
            let directory = data.join(&name);
            fs::write(
                &file,
                format!(
                    "server_name: {name}\nlisten: 127.0.0.1:{client}\n\
                     jetstream {{ store_dir: {:?}, sync_interval: always }}\n\
                     cluster {{ name: kept, listen: 127.0.0.1:{route}, \
                     routes: [{routes_text}] }}\n",
                    directory.display().to_string(),
                ),
            )?;
            let mut command = Command::new(nats);
            servers.push(Server::start(&name, command.arg("-c").arg(&file), data)?);
        }
        let start = Instant::now();
        let leader = loop {
            servers.iter_mut().try_for_each(Server::check)?;
            match make_stream(clients[0]) {
                Ok(leader) => break leader,
                Err(error) if start.elapsed() >= patience => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
        };
        let port = leader.strip_prefix('n').and_then(|it| it.parse::<usize>().ok());
        let port = port.and_then(|index| clients.get(index));
        let port = port.with_context(|| format!("the stream's leader is {leader:?}"))?;
        let client = Client::connect(*port)?;
        Ok(Self { client, sent: 0, confirmed: 0, servers })
    }
}

/// Makes the stream; returns its leader.
fn make_stream(port: u16) -> Result<String> {
    let mut client = Client::connect(port)?;
    let config = json!({
        "name": STREAM, "subjects": ["kept"], "storage": "file", "num_replicas": SERVERS,
        "retention": "limits", "discard": "old",
    });
    let answer = client.ask(&format!("$JS.API.STREAM.CREATE.{STREAM}"), &config)?;
    let leader = answer["cluster"]["leader"].as_str();
    leader.map(str::to_owned).with_context(|| format!("JetStream answered {answer}"))
}

impl PersistentSide for JetStream {
    fn send(&mut self, body: &[u8], most: u64, window: u64) -> Result<u64> {
        let count = most.min(window.saturating_sub(self.sent - self.confirmed));
        for _ in 0..count {
            self.client.add("kept", body);
        }
        self.client.flush()?;
        self.sent += count;
        Ok(count)
    }

    fn confirmed(&mut self) -> Result<u64> {
        let confirmed = &mut self.confirmed;
        let is_silent = self.client.read(|answer| {
            let sequence = sequence(answer)?;
            ensure!(sequence == *confirmed + 1, "message {} is kept as {sequence}", *confirmed + 1);
            *confirmed = sequence;
            Ok(())
        })?;
        if is_silent {
            self.servers.iter_mut().try_for_each(Server::check)?;
        }
        Ok(self.confirmed)
    }

    fn check(&mut self, messages: u64) -> Result<()> {
        let info = self.client.ask(&format!("$JS.API.STREAM.INFO.{STREAM}"), &json!({}))?;
        let kept = info["state"]["messages"].as_u64();
        ensure!(kept == Some(messages), "{messages} were confirmed, and {kept:?} are kept: {info}");
        let (storage, replicas) = (&info["config"]["storage"], &info["config"]["num_replicas"]);
        ensure!(storage == "file" && replicas == SERVERS, "the stream is another: {info}");
        Ok(())
    }
}

/// A connection to a server.
#[derive(Debug)]
struct Client {
    stream: TcpStream,
    /// Bytes that are to be written.
    out: Vec<u8>,
    /// Bytes that came, and are not whole.
    bytes: Vec<u8>,
}

impl Client {
    fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WAIT))?;
        let mut client = Self { stream, out: LOGON.to_vec(), bytes: Vec::new() };
        client.flush()?;
        Ok(client)
    }

    /// Adds a message, to be answered.
    fn add(&mut self, subject: &str, body: &[u8]) {
        let head = format!("PUB {subject} _INBOX.m {}\r\n", body.len());
        self.out.extend_from_slice(head.as_bytes());
        self.out.extend_from_slice(body);
        self.out.extend_from_slice(b"\r\n");
    }

    fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Reads answers once, waiting for them; returns whether there was nothing for long.
    fn read(&mut self, mut answer: impl FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        let before = self.bytes.len();
        self.bytes.resize(before + READ, 0);
        let count = match self.stream.read(&mut self.bytes[before..]) {
            Ok(0) => bail!("the server has closed the connection"),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(error) => return Err(error.into()),
        };
        self.bytes.truncate(before + count);
        let out = &mut self.out;
        let used = split(&self.bytes, |said| {
            match said {
                Said::Message(body) => answer(body)?,
                Said::Ping => out.extend_from_slice(b"PONG\r\n"),
                Said::Other => {}
            }
            Ok(())
        })?;
        self.bytes.drain(..used);
        self.flush()?;
        Ok(count == 0)
    }

    /// Asks JetStream itself; an error if it refuses or is silent.
    fn ask(&mut self, subject: &str, request: &Value) -> Result<Value> {
        self.add(subject, request.to_string().as_bytes());
        self.flush()?;
        let mut found = None;
        let start = Instant::now();
        while found.is_none() {
            ensure!(start.elapsed() < 4 * WAIT, "JetStream does not answer");
            self.read(|answer| {
                found = Some(serde_json::from_slice::<Value>(answer)?);
                Ok(())
            })?;
        }
        let answer = found.unwrap_or_default();
        ensure!(answer["error"].is_null(), "JetStream refuses: {}", answer["error"]);
        Ok(answer)
    }
}
