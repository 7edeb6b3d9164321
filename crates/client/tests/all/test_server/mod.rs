//! A server on a thread of its own, and a wire to it that can be cut.

// Each test uses a part of this.
#![allow(dead_code)]

use lanecast_broker::{Server, ServerConfig};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A server that keeps the topic `stock` by its field `id`.
pub(crate) struct Served {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut settings = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
        settings.topics =
            vec![TopicDefinition::new("stock", MessageType::Json).key("/id").expect("a path")];
        change(&mut settings);
        let mut server = Server::open(settings).expect("a server");
        let at = server.address().expect("an address");
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                server.turn(Duration::from_millis(20)).expect("it goes on");
            }
        });
        Self { at, stop, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> String {
        self.at.to_string()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ended well");
        }
    }
}

/// Hands bytes on between clients and a server, and hangs up on both at any byte.
pub(crate) struct Wire {
    at: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    server: String,
    bytes_max: usize,
    is_over: AtomicBool,
    is_cutting: AtomicBool,
    cuts: AtomicU64,
    chance: AtomicU64,
}

impl Wire {
    /// One that lets fewer bytes through than `bytes_max` before each cut.
    pub(crate) fn new(server: &str, seed: u64, bytes_max: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let at = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            server: server.to_owned(),
            bytes_max,
            is_over: AtomicBool::new(false),
            is_cutting: AtomicBool::new(false),
            cuts: AtomicU64::new(0),
            chance: AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        });
        let known = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if known.is_over.load(Ordering::Relaxed) {
                    return;
                }
                known.hand_on(&client.expect("a client"));
            }
        });
        Self { at, shared, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> String {
        self.at.to_string()
    }

    pub(crate) fn begin_to_cut(&self) {
        self.shared.is_cutting.store(true, Ordering::Relaxed);
    }

    pub(crate) fn cut_no_more(&self) {
        self.shared.is_cutting.store(false, Ordering::Relaxed);
    }

    pub(crate) fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::Relaxed)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // It is waiting for a client, or for bytes with a limit of time.
        drop(TcpStream::connect(self.at));
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ended well");
        }
    }
}

impl Shared {
    fn draw(&self, limit: usize) -> usize {
        let mut chance = self.chance.load(Ordering::Relaxed);
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        self.chance.store(chance, Ordering::Relaxed);
        (chance >> 20) as usize % limit
    }

    /// Hands on what one client and the server say, until one of them ends it, or it is cut.
    fn hand_on(&self, client: &TcpStream) {
        let server = TcpStream::connect(&self.server).expect("it listens");
        let left = AtomicU64::new(self.draw(self.bytes_max) as u64);
        thread::scope(|scope| {
            scope.spawn(|| self.copy(client, &server, &left));
            self.copy(&server, client, &left);
        });
    }

    fn copy(&self, mut from: &TcpStream, mut to: &TcpStream, left: &AtomicU64) {
        let mut buffer = [0; 4096];
        from.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket");
        while !self.is_over.load(Ordering::Relaxed) {
            let length = match from.read(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Ok(0) | Err(_) => break,
                Ok(length) => length as u64,
            };
            let before = left.load(Ordering::Relaxed);
            let may = if self.is_cutting.load(Ordering::Relaxed) { before } else { length };
            left.store(before.saturating_sub(length), Ordering::Relaxed);
            if to.write_all(&buffer[..length.min(may) as usize]).is_err() {
                break;
            }
            if may < length {
                self.cuts.fetch_add(1, Ordering::Relaxed);
                break;
            }
        }
        // Either may have gone already.
        drop(from.shutdown(Shutdown::Both));
        drop(to.shutdown(Shutdown::Both));
    }
}
