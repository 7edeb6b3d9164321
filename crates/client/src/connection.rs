//! The threads of a client: one connects and reads, and for each connection one writes.
//!
//! They and the application's threads share the conversation. None holds it while it waits for
//! the network.

use crate::conversation::{Conversation, Next};
use crate::error::ClientError;
use crate::server_address::ServerAddress;
use crate::settings::Watcher;
use crate::tls::Tls;
use crate::tunnel::{Seal, Tunnel, hung_up};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What is read at a time.
const READ_BYTES: usize = 64 << 10;
/// How often a connection without news is looked at.
const ROUND: Duration = Duration::from_millis(500);

/// What the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    conversation: Mutex<Conversation>,
    watcher: Option<Watcher>,
    /// For those who wait for answers, messages or room, and the one who reads.
    news: Condvar,
    /// For the one who writes.
    work: Condvar,
}

impl Shared {
    pub(crate) fn new(conversation: Conversation) -> Self {
        let watcher = conversation.settings().watcher.clone();
        let conversation = Mutex::new(conversation);
        Self { conversation, watcher, news: Condvar::new(), work: Condvar::new() }
    }

    /// Whoever panicked has left it whole: it is changed by calls that do not.
    fn lock(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the conversation, and has what it adds sent.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Conversation) -> T) -> T {
        let done = act(&mut self.lock());
        self.work.notify_one();
        done
    }

    /// Waits until `look` sees something; none if it does not by `until`.
    pub(crate) fn wait<T>(
        &self,
        until: Option<Instant>,
        mut look: impl FnMut(&mut Conversation) -> Option<T>,
    ) -> Option<T> {
        let mut conversation = self.lock();
        loop {
            if let Some(seen) = look(&mut conversation) {
                drop(conversation);
                // There may be room for more, or something to say about it.
                self.news.notify_all();
                self.work.notify_one();
                return Some(seen);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            conversation = wait_on(&self.news, conversation, left);
        }
    }

    /// Tells everybody that something has happened.
    fn tell(&self) {
        self.news.notify_all();
        self.work.notify_all();
        let Some(Watcher(watch)) = &self.watcher else { return };
        loop {
            let state = self.lock().next_state();
            match state {
                Some(state) => watch(&state),
                None => return,
            }
        }
    }

    pub(crate) fn close(&self) {
        self.lock().close();
        self.news.notify_all();
        self.work.notify_all();
    }

    /// Connects, again and again if that is wanted, and reads, until it is over.
    pub(crate) fn run(self: &Arc<Self>) {
        loop {
            let next = self.lock().next_step(Instant::now());
            match next {
                Next::End => return self.tell(),
                Next::Wait(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    let conversation = self.lock();
                    if conversation.failure().is_none() {
                        drop(wait_on(&self.news, conversation, Some(left)));
                    }
                }
                Next::Connect(server) => {
                    self.tell();
                    let settings = self.lock().settings().clone();
                    match connect(&server, settings.patience, settings.tls.as_ref()) {
                        Ok((stream, seal)) => self.talk(&stream, &seal),
                        Err(error) => self.lock().closed(Instant::now(), error),
                    }
                    self.tell();
                }
            }
        }
    }

    /// Talks for as long as the connection lasts.
    fn talk(self: &Arc<Self>, stream: &TcpStream, seal: &Seal) {
        if !self.lock().opened(Instant::now()) {
            return;
        }
        let writer = self.begin_to_write(stream, seal);
        let error = match &writer {
            Ok(_) => self.read(stream, seal).err().unwrap_or(ClientError::Closed),
            Err(error) => ClientError::ended(error.kind(), &error.to_string()),
        };
        self.lock().closed(Instant::now(), error);
        // It may have ended already; if not, the writer is to notice.
        drop(stream.shutdown(Shutdown::Both));
        self.work.notify_all();
        if let Ok(writer) = writer {
            drop(writer.join());
        }
    }

    fn begin_to_write(
        self: &Arc<Self>,
        stream: &TcpStream,
        seal: &Seal,
    ) -> io::Result<JoinHandle<()>> {
        let (shared, stream, seal) = (Arc::clone(self), stream.try_clone()?, seal.clone());
        thread::Builder::new().name("lanecast-write".into()).spawn(move || {
            // Whether it went well or not: there is no more to say, and whoever reads is to notice.
            drop(shared.write(&stream, &seal));
            drop((&stream).write_all(&seal.farewell()));
            drop(stream.shutdown(Shutdown::Both));
        })
    }

    /// Reads until the connection ends, or is to end.
    fn read(&self, mut stream: &TcpStream, seal: &Seal) -> Result<(), ClientError> {
        stream.set_read_timeout(Some(ROUND))?;
        let (mut buffer, mut room) = (vec![0; READ_BYTES], Vec::new());
        loop {
            self.wait_for_room();
            let read = stream.read(&mut buffer);
            // Before the conversation is held, as this takes a while.
            let read = match read {
                Ok(0) => return Err(ended()),
                Ok(length) => Ok(seal.open(&buffer[..length], &mut room)?),
                Err(error) => Err(error),
            };
            let mut conversation = self.lock();
            let now = Instant::now();
            match read {
                Ok(bytes) => conversation.receive(now, bytes)?,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => conversation.check(now)?,
                    ErrorKind::Interrupted => continue,
                    _ => return Err(error.into()),
                },
            }
            drop(conversation);
            self.tell();
        }
    }

    /// While the application does not read, neither is the network, so that the server knows.
    fn wait_for_room(&self) {
        let mut conversation = self.lock();
        while conversation.is_full() && conversation.failure().is_none() {
            conversation = wait_on(&self.news, conversation, None);
            conversation.excuse(Instant::now());
        }
    }

    /// Writes what is to be sent until the connection ends, and to the end if all is over.
    fn write(&self, mut stream: &TcpStream, seal: &Seal) -> io::Result<()> {
        let (mut out, mut room) = (Vec::new(), Vec::new());
        loop {
            let mut conversation = self.lock();
            conversation.take_output(Instant::now(), &mut out);
            while out.is_empty() {
                if !conversation.has_connection() {
                    return Ok(());
                }
                let due = conversation.next_beat();
                let left = due.map(|due| due.saturating_duration_since(Instant::now()));
                conversation = wait_on(&self.work, conversation, left);
                conversation.take_output(Instant::now(), &mut out);
            }
            drop(conversation);
            stream.write_all(seal.close(&out, &mut room)?)?;
        }
    }
}

fn wait_on<'a>(
    condition: &Condvar,
    conversation: MutexGuard<'a, Conversation>,
    limit: Option<Duration>,
) -> MutexGuard<'a, Conversation> {
    match limit {
        None => condition.wait(conversation).unwrap_or_else(PoisonError::into_inner),
        Some(limit) => {
            let waited = condition.wait_timeout(conversation, limit);
            waited.unwrap_or_else(PoisonError::into_inner).0
        }
    }
}

pub(crate) fn ended() -> ClientError {
    ClientError::ended(ErrorKind::UnexpectedEof, "the server has closed it")
}

fn connect(
    server: &str,
    patience: Duration,
    tls: Option<&Tls>,
) -> Result<(TcpStream, Seal), ClientError> {
    let until = Instant::now() + patience;
    let at = ServerAddress::of_settings(server)?;
    let made = dial(&at, patience).and_then(|stream| {
        let tunnel = tls.map(|tls| shake_hands(&stream, tls, at.host(), until)).transpose()?;
        Ok((stream, tunnel.map(Seal::from).unwrap_or_default()))
    });
    let server = server.to_owned();
    made.map_err(|error| ClientError::Connect { server, error: Arc::new(error) })
}

fn dial(at: &ServerAddress, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "no such host");
    for address in (at.host(), at.port()).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(patience))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Finds out whether the server is the one that it should be, and agrees on keys.
fn shake_hands(
    mut stream: &TcpStream,
    tls: &Tls,
    host: &str,
    until: Instant,
) -> io::Result<Tunnel> {
    let mut tunnel = Tunnel::new(tls, host)?;
    let (mut out, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    let mut taken = Ok(());
    loop {
        // Also what the server is told if it is not believed.
        tunnel.put(&mut out)?;
        let sent = stream.write_all(&out);
        taken?;
        sent?;
        out.clear();
        if tunnel.is_open() {
            return Ok(tunnel);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        taken = match stream.read(&mut buffer) {
            Ok(0) => return Err(hung_up()),
            Ok(length) => tunnel.take(&buffer[..length]),
            Err(error) => match error.kind() {
                ErrorKind::ConnectionReset => return Err(hung_up()),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(()),
                _ => return Err(error),
            },
        };
    }
}
