//! A server on a thread of its own, and clients that speak to it in bytes.
#![allow(dead_code, reason = "no test needs all of it")]

use lanecast_broker::{Counters, Server, ServerConfig};
use lanecast_wire::command::{Field, Header, LENGTH_BYTES, Records};
use lanecast_wire::command::{begin_frame, end_frame, frame_bytes};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than anything takes here, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Sends `bytes` again and again until no more is taken, or so many have gone; how many those are.
pub(crate) fn send_until_full(stream: &TcpStream, bytes: &[u8], most: usize) -> usize {
    let mut sent = 0;
    stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a socket");
    while sent < most {
        match (&mut &*stream).write(&bytes[sent % bytes.len()..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("after {sent} bytes: {error}"),
        }
    }
    stream.set_write_timeout(None).expect("a socket");
    sent
}

/// Counters and log lines of a server that ended.
#[allow(dead_code, reason = "not all tests look at all of it")]
pub(crate) struct Ended {
    pub(crate) all_taken: bool,
    pub(crate) counters: Counters,
    pub(crate) words: Vec<String>,
}

/// A server on a thread of its own.
pub(crate) struct Served {
    at: SocketAddr,
    web: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    again: Sender<Sender<Option<String>>>,
    thread: Option<JoinHandle<Ended>>,
}

impl Served {
    pub(crate) fn new(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut settings = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
        change(&mut settings);
        let mut server = Server::open(settings).expect("a server");
        let at = server.address().expect("an address");
        let web = server.websocket_address().expect("an address");
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let (again, wishes) = channel::<Sender<Option<String>>>();
        let thread = std::thread::spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                server.turn(Duration::from_millis(20)).expect("it goes on");
                for wish in wishes.try_iter() {
                    let error = server.reload().err().map(|error| error.to_string());
                    wish.send(error).expect("it waits");
                }
            }
            let words = std::iter::from_fn(|| server.next_log_line()).collect();
            let counters = server.counters();
            Ended { all_taken: server.drain(), counters, words }
        });
        Self { at, web, stop, again, thread: Some(thread) }
    }

    /// Has users and certificates read again; what is wrong with them, if something is.
    pub(crate) fn reload(&self) -> Option<String> {
        let (wish, answer) = channel();
        self.again.send(wish).expect("it runs");
        answer.recv_timeout(PATIENCE).expect("it answers")
    }

    pub(crate) fn client(&self) -> Client {
        Client::of(self.at)
    }

    /// A client that has logged on with that name, and the last sequence number known of it.
    pub(crate) fn named_client(&self, name: &str) -> (Client, u64) {
        let mut client = self.client();
        let sequence = client.log_on(name);
        (client, sequence)
    }

    /// A client at another address of this host.
    pub(crate) fn client_from(&self, address: [u8; 4]) -> Client {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from((address, 0)).into()).expect("an address of this host");
        socket.connect(&self.at.into()).expect("it listens");
        Client::on(socket.into())
    }

    /// A connection to where WebSockets are spoken.
    pub(crate) fn web_stream(&self) -> TcpStream {
        let stream = TcpStream::connect(self.web.expect("an address")).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Ends it; whether everybody got everything.
    pub(crate) fn end(self) -> bool {
        self.ended().all_taken
    }

    /// Ends it.
    pub(crate) fn ended(mut self) -> Ended {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("it runs").join().expect("it ended well")
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    bytes: Vec<u8>,
}

impl Client {
    /// One of the server that listens there.
    pub(crate) fn of(at: SocketAddr) -> Self {
        Self::on(TcpStream::connect(at).expect("it listens"))
    }

    /// One that has such a connection.
    pub(crate) fn on(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self { stream, bytes: Vec::new() }
    }

    pub(crate) fn send(&mut self, frame: &str) {
        self.try_send(frame).expect("it listens");
    }

    /// Sends the beginning of a frame that is to have so many bytes.
    pub(crate) fn begin(&mut self, whole: u32, begun: usize) {
        let length = [24, 16, 8, 0].map(|shift| (whole >> shift) as u8);
        let bytes = [&length[..], &vec![b' '; begun]].concat();
        self.stream.write_all(&bytes).expect("it listens");
    }

    /// Whether the server has hung up; at once, unlike `next`.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket");
        let has_ended = match self.stream.peek(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        self.stream.set_nonblocking(false).expect("a socket");
        has_ended
    }

    /// Whether something has come.
    pub(crate) fn has_heard(&mut self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket");
        let has_heard = matches!(self.stream.peek(&mut [0]), Ok(1));
        self.stream.set_nonblocking(false).expect("a socket");
        has_heard
    }

    /// Sends a frame, if the connection has not ended.
    pub(crate) fn try_send(&mut self, frame: &str) -> std::io::Result<()> {
        let mut out = Vec::new();
        put_frame(&mut out, frame);
        self.stream.write_all(&out)
    }

    /// The payload of the next frame; none if the connection has ended.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            if let Some(total) = frame_bytes(&self.bytes, 1 << 20).expect("a length") {
                let payload = self.bytes[LENGTH_BYTES..total].to_vec();
                self.bytes.drain(..total);
                return Some(String::from_utf8(payload).expect("text"));
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => self.bytes.extend_from_slice(&buffer[..length]),
                Err(error) => match error.kind() {
                    ErrorKind::ConnectionReset => return None,
                    // The process was stopped and goes on: a read with a timeout is not repeated
                    // by the system.
                    ErrorKind::Interrupted => {}
                    _ => panic!("nothing comes: {error}"),
                },
            }
        }
    }

    pub(crate) fn expect(&mut self, payload: &str) {
        assert_eq!(self.next().as_deref(), Some(payload));
    }

    /// Waits until all before has been done.
    pub(crate) fn flush(&mut self) {
        self.send(r#"{"c":"flush","cid":"f","a":"completed"}"#);
        self.expect(r#"{"c":"ack","a":"completed","status":"success","cid":"f"}"#);
    }

    /// Logs on under a name; the number of the last message that the server has of it.
    pub(crate) fn log_on(&mut self, name: &str) -> u64 {
        self.send(&format!(r#"{{"c":"logon","a":"processed","client_name":"{name}"}}"#));
        let answer = self.next().expect("an answer");
        let header = Header::parse(answer.as_bytes()).expect("a header");
        header.number(Field::Sequence).expect("a number").expect("there")
    }

    /// Says what its messages are.
    pub(crate) fn speak(&mut self, kind: &str) {
        self.send(&format!(r#"{{"c":"logon","cid":"0","a":"processed","mt":"{kind}"}}"#));
        assert!(self.next().expect("an answer").contains("success"));
    }

    /// The bodies of an answer, which comes next, of the query of that name.
    pub(crate) fn answer(&mut self, query_id: &str) -> Vec<String> {
        self.expect(&format!(r#"{{"c":"group_begin","query_id":"{query_id}"}}"#));
        let end = format!(r#"{{"c":"group_end","query_id":"{query_id}"}}"#);
        let mut bodies = Vec::new();
        loop {
            let payload = self.next().expect("it goes on");
            if payload == end {
                return bodies;
            }
            let header = Header::parse(payload.as_bytes()).expect("a header");
            let records: Vec<_> = Records::new(header.body()).collect();
            let said = header.number(Field::BatchSize).expect("a number").expect("there");
            assert_eq!(said, records.len() as u64);
            for record in records {
                let (header, body) = record.expect("whole");
                assert!(header.number(Field::SowKey).expect("a number").is_some());
                bodies.push(String::from_utf8(body.to_vec()).expect("text"));
            }
        }
    }

    /// The next message.
    pub(crate) fn told(&mut self) -> Told {
        let payload = self.next().expect("it is told");
        let header = Header::parse(payload.as_bytes()).expect("a header");
        let text = |field| header.text(field).unwrap_or_default().into_owned();
        Told {
            command: text(Field::Command),
            correlation_id: text(Field::CorrelationId),
            subscriptions: text(Field::SubscriptionIds),
            reason: text(Field::Reason),
            body: String::from_utf8(header.body().to_vec()).expect("text"),
        }
    }
}

/// Puts a frame with that payload behind others.
pub(crate) fn put_frame(out: &mut Vec<u8>, payload: &str) {
    let start = begin_frame(out);
    out.extend_from_slice(payload.as_bytes());
    end_frame(out, start);
}

/// A message, or that a record has left; what is not said is empty.
pub(crate) struct Told {
    pub(crate) command: String,
    pub(crate) correlation_id: String,
    pub(crate) subscriptions: String,
    pub(crate) reason: String,
    pub(crate) body: String,
}
