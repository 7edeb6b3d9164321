//! A server on a thread of its own, and clients that speak to it in bytes.

use lanecast_broker::{Server, Settings};
use lanecast_wire::command::{LENGTH_BYTES, begin_frame, end_frame, frame_bytes};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server on a thread of its own.
pub(crate) struct Served {
    at: SocketAddr,
    web: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<bool>>,
}

impl Served {
    pub(crate) fn new(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::at((Ipv4Addr::LOCALHOST, 0).into());
        change(&mut settings);
        let mut server = Server::open(settings).expect("a server");
        let at = server.address().expect("an address");
        let web = server.websocket_address().expect("an address");
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                server.turn(Duration::from_millis(20)).expect("it goes on");
            }
            server.drain()
        });
        Self { at, web, stop, thread: Some(thread) }
    }

    pub(crate) fn client(&self) -> Client {
        Client::of(self.at)
    }

    /// A connection to where WebSockets are spoken.
    #[allow(dead_code, reason = "not all tests speak it")]
    pub(crate) fn web_stream(&self) -> TcpStream {
        let stream = TcpStream::connect(self.web.expect("an address")).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Ends it; whether everybody got everything.
    pub(crate) fn end(mut self) -> bool {
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
        let stream = TcpStream::connect(at).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self { stream, bytes: Vec::new() }
    }

    pub(crate) fn send(&mut self, frame: &str) {
        let mut out = Vec::new();
        let start = begin_frame(&mut out);
        out.extend_from_slice(frame.as_bytes());
        end_frame(&mut out, start);
        self.stream.write_all(&out).expect("it listens");
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
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing comes: {error}"),
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
}
