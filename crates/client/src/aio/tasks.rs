//! Tasks of the asynchronous client: one connects and reads, and one per connection writes.

use crate::connection::ended;
use crate::error::ClientError;
use crate::event::Event;
use crate::query::SubscribeRequest;
use crate::session::{Next, Session};
use crate::settings::{StateHandler, parse_server};
use crate::tls::Tls;
use crate::tls_session::{SharedTls, TlsSession, handshake_ended};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
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
        let state = Mutex::new(ClientState { session, queues: HashMap::new() });
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
        self.changed.notify_waiters();
        self.output_ready.notify_one();
        let state = self.lock();
        if state.session.failure().is_some() {
            state.queues.values().for_each(|queue| queue.ready.notify_one());
        }
        drop(state);
        let Some(StateHandler(watch)) = &self.watcher else { return };
        loop {
            let state = self.lock().session.next_state();
            match state {
                Some(state) => watch(&state),
                None => return,
            }
        }
    }

    pub(super) fn close(&self) {
        self.with(|state| state.session.close());
        self.changed.notify_waiters();
    }
}

/// Connects, reads, and reconnects until the session ends.
pub(super) async fn run(shared: Arc<Shared>) {
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
    let made = timeout(patience, async {
        let stream = TcpStream::connect((at.host(), at.port())).await?;
        stream.set_nodelay(true)?;
        let tls_layer = match tls {
            Some(tls) => handshake(&stream, tls, at.host()).await?.into(),
            None => SharedTls::default(),
        };
        Ok((stream, tls_layer))
    });
    let made = made.await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
    made.map_err(|error| ClientError::Connect { server, error: Arc::new(error) })
}

/// Performs the TLS handshake, which authenticates the server.
async fn handshake(stream: &TcpStream, tls: &Tls, host: &str) -> io::Result<TlsSession> {
    let mut tls_session = TlsSession::new(tls, host)?;
    let (mut out, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    let mut consumed = Ok(());
    loop {
        // Send first, even after a failed verification: the alert tells the server.
        tls_session.write_frame(&mut out)?;
        let sent = write_all(stream, &out).await;
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

async fn write_all(stream: &TcpStream, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        stream.writable().await?;
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
    let mut writer = tokio::spawn(write(Arc::clone(shared), to, tls_layer.clone()));
    let error = read(shared, from, &tls_layer).await.err().unwrap_or(ClientError::Closed);
    let is_over = shared.lock().session.failure().is_some();
    shared.lock().session.closed(Instant::now(), error);
    // At the end of the session the writer still sends the pending bytes.
    if !is_over || timeout(patience, &mut writer).await.is_err() {
        writer.abort();
    }
}

/// Reads until the connection ends or must be closed.
async fn read(
    shared: &Shared,
    from: OwnedReadHalf,
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

/// Writes pending bytes until the connection ends, and the last ones after the session's end.
async fn write(shared: Arc<Shared>, to: OwnedWriteHalf, tls_layer: SharedTls) -> io::Result<()> {
    let (mut out, mut scratch) = (Vec::new(), Vec::new());
    loop {
        let (is_needed, due) = {
            let session = &mut shared.lock().session;
            session.take_output(Instant::now(), &mut out);
            (session.has_connection(), session.next_heartbeat())
        };
        if out.is_empty() {
            match due {
                _ if !is_needed => return write_all(to.as_ref(), &tls_layer.close_notify()).await,
                Some(due) => drop(timeout_at(due.into(), shared.output_ready.notified()).await),
                None => shared.output_ready.notified().await,
            }
        }
        write_all(to.as_ref(), tls_layer.close(&out, &mut scratch)?).await?;
    }
}
