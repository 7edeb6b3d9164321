//! Tasks of the asynchronous client: one connects and reads, and one per connection writes.

use crate::connection::{ended, no_address};
use crate::error::ClientError;
use crate::event::Event;
use crate::query::SubscribeRequest;
use crate::session::{Next, Session};
use crate::settings::{StateHandler, parse_server};
use crate::tls::Tls;
use crate::tls_session::{SharedTls, TlsSession, handshake_ended};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{timeout, timeout_at};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Interval of liveness checks on a silent connection.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Unread events of a subscription.
#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Event>,
    bytes: usize,
    /// The error that ended the subscription.
    end: Option<ClientError>,
    ready: Arc<Notify>,
}

/// The session and the queues of its subscriptions.
#[derive(Debug)]
pub(super) struct ClientState {
    pub(super) session: Session,
    queues: HashMap<String, Queue>,
    /// Whether the task that drives the session has ended.
    pub(super) has_ended: bool,
}

/// State shared by the tasks and the calls. The lock is never held across an await.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<ClientState>,
    watcher: Option<StateHandler>,
    /// Wakes calls that wait for answers or room, and the connecting task.
    changed: Notify,
    /// Wakes the writing task.
    output_ready: Notify,
}

impl ClientState {
    pub(super) fn subscribe(&mut self, request: SubscribeRequest) -> (u64, String, Arc<Notify>) {
        let (command, name) = self.session.subscribe(request);
        let queue = Queue::default();
        let ready = Arc::clone(&queue.ready);
        self.queues.insert(name.clone(), queue);
        (command, name, ready)
    }

    pub(super) fn unsubscribe(&mut self, name: &str) {
        self.queues.remove(name);
        self.session.unsubscribe(name);
    }

    /// The next event of a subscription, or the error that ended it.
    pub(super) fn next(&mut self, name: &str) -> Option<Result<Event, ClientError>> {
        let queue = self.queues.get_mut(name)?;
        if let Some(event) = queue.events.pop_front() {
            queue.bytes -= event.bytes();
            return Some(Ok(event));
        }
        let end = queue.end.as_ref().or_else(|| self.session.failure());
        end.map(|error| Err(error.clone()))
    }

    /// Moves events into the queues of their subscriptions; a full queue ends its subscription.
    fn dispatch(&mut self) {
        while let Some(event) = self.session.next_event() {
            if let Event::Ended { subscription, error } = &event {
                if let Some(queue) = self.queues.get_mut(subscription) {
                    queue.end = Some(error.clone());
                    queue.ready.notify_one();
                }
                continue;
            }
            for name in event.subscriptions() {
                let Some(queue) = self.queues.get_mut(name) else { continue };
                let limit = self.session.settings().unread_bytes_max;
                if queue.end.is_none() && queue.bytes > limit {
                    queue.end = Some(ClientError::Overrun(limit));
                    self.session.unsubscribe(name);
                } else if queue.end.is_none() {
                    queue.bytes += event.bytes();
                    queue.events.push_back(event.clone());
                }
                queue.ready.notify_one();
            }
        }
    }
}

impl Shared {
    pub(super) fn new(session: Session) -> Self {
        let watcher = session.settings().watcher.clone();
        let state = ClientState { session, queues: HashMap::new(), has_ended: false };
        let state = Mutex::new(state);
        Self { state, watcher, changed: Notify::new(), output_ready: Notify::new() }
    }

    /// A poisoned lock is fine: no call leaves the state half changed.
    fn lock(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` and wakes the writing task.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut ClientState) -> T) -> T {
        let done = act(&mut self.lock());
        self.output_ready.notify_one();
        done
    }

    /// Waits until `look` returns a value.
    pub(super) async fn wait<T>(&self, mut look: impl FnMut(&mut ClientState) -> Option<T>) -> T {
        loop {
            // Register before looking: a change between the look and the wait must wake it.
            let changed = self.changed.notified();
            if let Some(seen) = self.with(&mut look) {
                return seen;
            }
            changed.await;
        }
    }

    /// Wakes all waiters and reports state changes.
    fn push_event(&self) {
        self.wake_all();
        let Some(watcher) = &self.watcher else { return };
        loop {
            let Some(state) = self.lock().session.next_state() else { return };
            if let Err(error) = watcher.call(&state) {
                self.fail(error);
            }
        }
    }

    fn wake_all(&self) {
        let state = self.lock();
        if state.session.failure().is_some() {
            state.queues.values().for_each(|queue| queue.ready.notify_one());
        }
        drop(state);
        self.changed.notify_waiters();
        self.output_ready.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().session.close();
        self.wake_all();
    }

    fn fail(&self, error: ClientError) {
        self.lock().session.fail(error);
        self.wake_all();
    }
}

/// Ends the session with its task, which may panic or be dropped with its runtime: calls that wait
/// would wait for ever.
struct TaskGuard<'a>(&'a Shared);

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.fail(if thread::panicking() {
            let message = "see the message of the panic".to_owned();
            ClientError::Panicked { what: "the client's task", message }
        } else {
            ClientError::RuntimeEnded
        });
    }
}

/// Connects, reads, and reconnects until the session ends.
pub(super) async fn run(shared: Arc<Shared>) {
    let _guard = TaskGuard(&shared);
    loop {
        let changed = shared.changed.notified();
        let next = shared.lock().session.next_step(Instant::now());
        match next {
            Next::End => return shared.push_event(),
            // Look again after the time or a change.
            Next::Wait(until) => drop(timeout_at(until.into(), changed).await),
            Next::Connect(server) => {
                shared.push_event();
                let settings = shared.lock().session.settings().clone();
                let patience = settings.patience;
                match connect(server, patience, settings.tls.as_ref()).await {
                    Ok((stream, tls_layer)) => talk(&shared, stream, tls_layer, patience).await,
                    Err(error) => shared.lock().session.closed(Instant::now(), error),
                }
                shared.push_event();
            }
        }
    }
}

async fn connect(
    server: String,
    patience: Duration,
    tls: Option<&Tls>,
) -> Result<(TcpStream, SharedTls), ClientError> {
    let at = parse_server(&server)?;
    let made = async {
        let addresses = timeout(patience, lookup_host((at.host(), at.port()))).await??;
        let (stream, until) = dial(addresses, patience).await?;
        let tls_layer = match tls {
            Some(tls) => {
                let shaken = handshake(&stream, tls, at.host(), patience);
                timeout_at(until.into(), shaken).await??.into()
            }
            None => SharedTls::default(),
        };
        Ok((stream, tls_layer))
    };
    made.await.map_err(|error: io::Error| ClientError::Connect { server, error: Arc::new(error) })
}

/// Connects to the first address that answers, each of which has `patience`; returns also the
/// deadline of the handshake with it.
async fn dial(
    addresses: impl Iterator<Item = SocketAddr>,
    patience: Duration,
) -> io::Result<(TcpStream, Instant)> {
    let mut last = no_address();
    for address in addresses {
        let until = Instant::now() + patience;
        let dialled = timeout_at(until.into(), TcpStream::connect(address)).await;
        match dialled.unwrap_or_else(|late| Err(late.into())) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok((stream, until));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Performs the TLS handshake, which authenticates the server.
async fn handshake(
    stream: &TcpStream,
    tls: &Tls,
    host: &str,
    patience: Duration,
) -> io::Result<TlsSession> {
    let mut tls_session = TlsSession::new(tls, host)?;
    let (mut out, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    let mut consumed = Ok(());
    loop {
        // Send first, even after a failed verification: the alert tells the server.
        tls_session.write_frame(&mut out)?;
        let sent = write_all(stream, &out, patience).await;
        consumed?;
        sent?;
        out.clear();
        if tls_session.is_open() {
            return Ok(tls_session);
        }
        stream.readable().await?;
        consumed = match stream.try_read(&mut buffer) {
            Ok(0) => return Err(handshake_ended()),
            Ok(length) => tls_session.take(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                return Err(handshake_ended());
            }
            Err(error) => return Err(error),
        };
    }
}

/// Writes everything, as long as the peer takes some of it within `patience`.
async fn write_all(stream: &TcpStream, mut rest: &[u8], patience: Duration) -> io::Result<()> {
    while !rest.is_empty() {
        timeout(patience, stream.writable()).await??;
        match stream.try_write(rest) {
            Ok(length) => rest = &rest[length..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Runs one connection until it ends.
async fn talk(shared: &Arc<Shared>, stream: TcpStream, tls_layer: SharedTls, patience: Duration) {
    if !shared.lock().session.opened(Instant::now()) {
        return;
    }
    let (from, to) = stream.into_split();
    let mut writer = tokio::spawn(write(Arc::clone(shared), to, tls_layer.clone(), patience));
    let error = read_or_write(shared, &from, &tls_layer, &mut writer).await;
    // At the end of a closed session the writer still sends the pending bytes.
    if shared.lock().session.is_closing() {
        drop(timeout(patience, linger(&from)).await);
    }
    shared.lock().session.closed(Instant::now(), error);
    writer.abort();
    // Until it has ended it could take the first bytes of the next connection.
    if !writer.is_finished() {
        drop(writer.await);
    }
}

/// At the end of a closed session: reads on, and drops what it reads, until the server has read
/// everything and ends the connection, too. Closing a socket with unread bytes would reset the
/// connection, and what the server has not read yet would be lost.
async fn linger(from: &OwnedReadHalf) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        from.readable().await?;
        match from.try_read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads, while `writer` writes, until one of them fails or the connection must be closed.
async fn read_or_write(
    shared: &Shared,
    from: &OwnedReadHalf,
    tls_layer: &SharedTls,
    writer: &mut JoinHandle<io::Result<()>>,
) -> ClientError {
    let mut reading = pin!(read(shared, from, tls_layer));
    let mut is_writing = true;
    std::future::poll_fn(|context| {
        if is_writing && let Poll::Ready(written) = Pin::new(&mut *writer).poll(context) {
            is_writing = false;
            match written {
                // The session has ended, and the reader notices.
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Poll::Ready(error.into()),
                Err(error) => {
                    let error = writer_failed(error);
                    shared.fail(error.clone());
                    return Poll::Ready(error);
                }
            }
        }
        let read = reading.as_mut().poll(context);
        read.map(|read| read.err().unwrap_or(ClientError::Closed))
    })
    .await
}

fn writer_failed(error: JoinError) -> ClientError {
    match error.try_into_panic() {
        Ok(panic) => ClientError::panicked("the client's writing task", &*panic),
        Err(_cancelled) => ClientError::RuntimeEnded,
    }
}

/// Reads until the connection ends or must be closed.
async fn read(
    shared: &Shared,
    from: &OwnedReadHalf,
    tls_layer: &SharedTls,
) -> Result<(), ClientError> {
    let (mut buffer, mut scratch) = (vec![0; READ_BYTES], Vec::new());
    loop {
        let readable = timeout(CHECK_INTERVAL, from.readable()).await;
        let now = Instant::now();
        let Ok(readable) = readable else {
            shared.lock().session.check(now)?;
            continue;
        };
        readable?;
        match from.try_read(&mut buffer) {
            Ok(0) => return Err(ended()),
            Ok(length) => {
                let bytes = tls_layer.open(&buffer[..length], &mut scratch)?;
                let mut state = shared.lock();
                let consumed = state.session.receive(now, bytes);
                state.dispatch();
                consumed?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        }
        shared.push_event();
    }
}

/// Writes pending bytes until the connection ends, and the last ones after the session's end. A
/// server that takes none for `patience` ends it.
async fn write(
    shared: Arc<Shared>,
    to: OwnedWriteHalf,
    tls_layer: SharedTls,
    patience: Duration,
) -> io::Result<()> {
    let (mut out, mut scratch) = (Vec::new(), Vec::new());
    loop {
        let (is_needed, due) = {
            let session = &mut shared.lock().session;
            session.take_output(Instant::now(), &mut out);
            (session.has_connection(), session.next_heartbeat())
        };
        if out.is_empty() {
            match due {
                _ if !is_needed => {
                    return write_all(to.as_ref(), &tls_layer.close_notify(), patience).await;
                }
                Some(due) => drop(timeout_at(due.into(), shared.output_ready.notified()).await),
                None => shared.output_ready.notified().await,
            }
        }
        write_all(to.as_ref(), tls_layer.close(&out, &mut scratch)?, patience).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{SHARE, dead_address};
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn each_address_has_its_share_of_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let (dead, _connections) = dead_address();
            let live = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            let live = live.local_addr().expect("an address");
            let start = Instant::now();
            let dialled = dial([dead, live].into_iter(), SHARE).await;
            let (stream, until) = dialled.expect("the second one answers");
            assert_eq!(stream.peer_addr().expect("connected"), live);
            assert!(until >= start + 2 * SHARE, "the handshake has a share, too");
        });
    }
}
