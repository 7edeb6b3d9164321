//! Threads of the blocking client: one connects and reads, and one per connection writes.
//!
//! They share the session with the application's threads. No thread holds its lock while it waits
//! for the network.

use crate::error::ClientError;
use crate::session::{Next, Session};
use crate::settings::{StateHandler, parse_server};
use crate::tls::Tls;
use crate::tls_session::{SharedTls, TlsSession, handshake_ended};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Interval of liveness checks on a silent connection.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// State shared by the threads.
#[derive(Debug)]
pub(crate) struct Shared {
    session: Mutex<Session>,
    watcher: Option<StateHandler>,
    /// Wakes calls that wait for answers, events or room, and the reading thread.
    changed: Condvar,
    /// Wakes the writing thread.
    output_ready: Condvar,
}

impl Shared {
    pub(crate) fn new(session: Session) -> Self {
        let watcher = session.settings().watcher.clone();
        let session = Mutex::new(session);
        Self { session, watcher, changed: Condvar::new(), output_ready: Condvar::new() }
    }

    /// A poisoned lock is fine: no call leaves the session half changed.
    fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` and wakes the writing thread.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Session) -> T) -> T {
        let done = act(&mut self.lock());
        self.output_ready.notify_one();
        done
    }

    /// Waits until `look` returns a value; `None` at `until`.
    pub(crate) fn wait<T>(
        &self,
        until: Option<Instant>,
        mut look: impl FnMut(&mut Session) -> Option<T>,
    ) -> Option<T> {
        let mut session = self.lock();
        loop {
            if let Some(seen) = look(&mut session) {
                drop(session);
                // `look` may have made room or queued output.
                self.changed.notify_all();
                self.output_ready.notify_one();
                return Some(seen);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            session = wait_on(&self.changed, session, left);
        }
    }

    /// Wakes all waiters and reports state changes.
    fn push_event(&self) {
        self.wake_all();
        let Some(watcher) = &self.watcher else { return };
        loop {
            let Some(state) = self.lock().next_state() else { return };
            if let Err(error) = watcher.call(&state) {
                self.fail(error);
            }
        }
    }

    fn wake_all(&self) {
        self.changed.notify_all();
        self.output_ready.notify_all();
    }

    pub(crate) fn close(&self) {
        self.lock().close();
        self.wake_all();
    }

    fn fail(&self, error: ClientError) {
        self.lock().fail(error);
        self.wake_all();
    }

    /// Does the work of a thread; a panic ends the session, which fails all calls that wait.
    fn guard(&self, thread: &'static str, work: impl FnOnce()) {
        if let Err(panic) = panic::catch_unwind(AssertUnwindSafe(work)) {
            self.fail(ClientError::panicked(thread, &*panic));
        }
    }

    /// Connects, reads, and reconnects until the session ends.
    pub(crate) fn run(self: &Arc<Self>) {
        self.guard("the client's reading thread", || self.drive());
    }

    fn drive(self: &Arc<Self>) {
        loop {
            let next = self.lock().next_step(Instant::now());
            match next {
                Next::End => return self.push_event(),
                Next::Wait(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    let session = self.lock();
                    if session.failure().is_none() {
                        drop(wait_on(&self.changed, session, Some(left)));
                    }
                }
                Next::Connect(server) => {
                    self.push_event();
                    let settings = self.lock().settings().clone();
                    match connect(&server, settings.patience, settings.tls.as_ref()) {
                        Ok((stream, tls_layer)) => self.talk(&stream, &tls_layer),
                        Err(error) => self.lock().closed(Instant::now(), error),
                    }
                    self.push_event();
                }
            }
        }
    }

    /// Runs one connection until it ends.
    fn talk(self: &Arc<Self>, stream: &TcpStream, tls_layer: &SharedTls) {
        if !self.lock().opened(Instant::now()) {
            return;
        }
        let writer = self.begin_to_write(stream, tls_layer);
        let error = match &writer {
            Ok(_) => self.read(stream, tls_layer).err().unwrap_or(ClientError::Closed),
            Err(error) => ClientError::ended(error.kind(), &error.to_string()),
        };
        self.linger(stream);
        self.lock().closed(Instant::now(), error);
        // Shutting the socket down makes the writer notice, if it has not ended yet.
        drop(stream.shutdown(Shutdown::Both));
        self.output_ready.notify_all();
        if let Ok(writer) = writer {
            drop(writer.join());
        }
    }

    fn begin_to_write(
        self: &Arc<Self>,
        stream: &TcpStream,
        tls_layer: &SharedTls,
    ) -> io::Result<JoinHandle<()>> {
        let (shared, stream, tls_layer) =
            (Arc::clone(self), stream.try_clone()?, tls_layer.clone());
        thread::Builder::new().name("lanecast-write".into()).spawn(move || {
            let mut end = Shutdown::Both;
            shared.guard("the client's writing thread", || {
                if shared.write(&stream, &tls_layer).is_ok() {
                    drop((&stream).write_all(&tls_layer.close_notify()));
                    // The server answers with its own end, after reading everything.
                    end = Shutdown::Write;
                }
            });
            // After success or failure alike: end the stream, so that the reader notices.
            drop(stream.shutdown(end));
        })
    }

    /// At the end of a closed session: reads on, and drops what it reads, until the server has read
    /// everything and ends the connection, too, for at most `patience`. Closing a socket with
    /// unread bytes would reset the connection, and what the server has not read yet would be lost.
    fn linger(&self, mut stream: &TcpStream) {
        let patience = self.lock().settings().patience;
        let (until, mut buffer) = (Instant::now() + patience, vec![0; READ_BYTES]);
        while self.lock().is_closing() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
                return;
            }
            match stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return,
                },
            }
        }
    }

    /// Reads until the connection ends or must be closed.
    fn read(&self, mut stream: &TcpStream, tls_layer: &SharedTls) -> Result<(), ClientError> {
        stream.set_read_timeout(Some(CHECK_INTERVAL))?;
        let (mut buffer, mut scratch) = (vec![0; READ_BYTES], Vec::new());
        loop {
            self.wait_for_room();
            let read = stream.read(&mut buffer);
            // Decrypt before taking the lock, because it takes a while.
            let read = match read {
                Ok(0) => return Err(ended()),
                Ok(length) => Ok(tls_layer.open(&buffer[..length], &mut scratch)?),
                Err(error) => Err(error),
            };
            let mut session = self.lock();
            let now = Instant::now();
            match read {
                Ok(bytes) => session.receive(now, bytes)?,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => session.check(now)?,
                    ErrorKind::Interrupted => continue,
                    _ => return Err(error.into()),
                },
            }
            drop(session);
            self.push_event();
        }
    }

    /// Stops reading while too many events are unread, so that TCP slows the server down.
    fn wait_for_room(&self) {
        let mut session = self.lock();
        while session.is_full() && session.failure().is_none() {
            session = wait_on(&self.changed, session, None);
            session.extend_deadline(Instant::now());
        }
    }

    /// Writes pending bytes until the connection ends, and the last ones after the session's end.
    fn write(&self, mut stream: &TcpStream, tls_layer: &SharedTls) -> io::Result<()> {
        let (mut out, mut scratch) = (Vec::new(), Vec::new());
        loop {
            let mut session = self.lock();
            session.take_output(Instant::now(), &mut out);
            while out.is_empty() {
                if !session.has_connection() {
                    return Ok(());
                }
                let due = session.next_heartbeat();
                let left = due.map(|due| due.saturating_duration_since(Instant::now()));
                session = wait_on(&self.output_ready, session, left);
                session.take_output(Instant::now(), &mut out);
            }
            drop(session);
            stream.write_all(tls_layer.close(&out, &mut scratch)?)?;
        }
    }
}

fn wait_on<'a>(
    condition: &Condvar,
    session: MutexGuard<'a, Session>,
    limit: Option<Duration>,
) -> MutexGuard<'a, Session> {
    match limit {
        None => condition.wait(session).unwrap_or_else(PoisonError::into_inner),
        Some(limit) => {
            let waited = condition.wait_timeout(session, limit);
            waited.unwrap_or_else(PoisonError::into_inner).0
        }
    }
}

pub(crate) fn no_address() -> io::Error {
    io::Error::new(ErrorKind::NotFound, "no such host")
}

pub(crate) fn ended() -> ClientError {
    ClientError::ended(ErrorKind::UnexpectedEof, "the server has closed it")
}

fn connect(
    server: &str,
    patience: Duration,
    tls: Option<&Tls>,
) -> Result<(TcpStream, SharedTls), ClientError> {
    let at = parse_server(server)?;
    let addresses = (at.host(), at.port()).to_socket_addrs();
    let dialled = addresses.and_then(|addresses| dial(addresses, patience));
    let made = dialled.and_then(|(stream, until)| {
        let tls_session = tls.map(|tls| handshake(&stream, tls, at.host(), until)).transpose()?;
        Ok((stream, tls_session.map(SharedTls::from).unwrap_or_default()))
    });
    let server = server.to_owned();
    made.map_err(|error| ClientError::Connect { server, error: Arc::new(error) })
}

/// Connects to the first address that answers, each of which has `patience`; returns also the
/// deadline of the handshake with it.
fn dial(
    addresses: impl Iterator<Item = SocketAddr>,
    patience: Duration,
) -> io::Result<(TcpStream, Instant)> {
    let mut last = no_address();
    for address in addresses {
        let until = Instant::now() + patience;
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(patience))?;
                return Ok((stream, until));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Performs the TLS handshake, which authenticates the server.
fn handshake(
    mut stream: &TcpStream,
    tls: &Tls,
    host: &str,
    until: Instant,
) -> io::Result<TlsSession> {
    let mut tls_session = TlsSession::new(tls, host)?;
    let (mut out, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    let mut consumed = Ok(());
    loop {
        // Send first, even after a failed verification: the alert tells the server.
        tls_session.write_frame(&mut out)?;
        let sent = stream.write_all(&out);
        consumed?;
        sent?;
        out.clear();
        if tls_session.is_open() {
            return Ok(tls_session);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        consumed = match stream.read(&mut buffer) {
            Ok(0) => return Err(handshake_ended()),
            Ok(length) => tls_session.take(&buffer[..length]),
            Err(error) => match error.kind() {
                ErrorKind::ConnectionReset => return Err(handshake_ended()),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(()),
                _ => return Err(error),
            },
        };
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    /// Time for each address.
    pub(crate) const SHARE: Duration = Duration::from_millis(200);

    /// An address that does not answer, and the connections that keep it so: more are not accepted.
    pub(crate) fn dead_address() -> (SocketAddr, (TcpListener, Vec<TcpStream>)) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut connections = Vec::new();
        while let Ok(connection) = TcpStream::connect_timeout(&address, SHARE) {
            connections.push(connection);
        }
        (address, (listener, connections))
    }

    #[test]
    fn each_address_has_its_share_of_time() {
        let (dead, _connections) = dead_address();
        let live = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let live = live.local_addr().expect("an address");
        let start = Instant::now();
        let (stream, until) = dial([dead, live].into_iter(), SHARE).expect("the second answers");
        assert_eq!(stream.peer_addr().expect("connected"), live);
        assert!(until >= start + 2 * SHARE, "the handshake has a share, too");
    }
}
