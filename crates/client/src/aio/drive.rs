//! The tasks of a client: one connects and reads, and for each connection one writes.

use crate::connection::ended;
use crate::conversation::{Conversation, Next};
use crate::error::ClientError;
use crate::event::Event;
use crate::question::Interest;
use crate::server_address::ServerAddress;
use crate::settings::Watcher;
use crate::tls::Tls;
use crate::tunnel::{Seal, Tunnel, hung_up};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::time::{timeout, timeout_at};

/// What is read at a time.
const READ_BYTES: usize = 64 << 10;
/// How often a connection without news is looked at.
const ROUND: Duration = Duration::from_millis(500);

/// What waits for the one who reads a subscription.
#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Event>,
    bytes: usize,
    /// Why nothing follows.
    end: Option<ClientError>,
    ready: Arc<Notify>,
}

/// The conversation, and what came of it.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) conversation: Conversation,
    queues: HashMap<String, Queue>,
}

/// What the tasks share. It is locked for moments only, never while something is awaited.
#[derive(Debug)]
pub(super) struct Shared {
    desk: Mutex<Desk>,
    watcher: Option<Watcher>,
    /// For those who wait for answers or room, and the one who connects.
    news: Notify,
    /// For the one who writes.
    work: Notify,
}

impl Desk {
    pub(super) fn subscribe(&mut self, interest: Interest) -> (u64, String, Arc<Notify>) {
        let (command, name) = self.conversation.subscribe(interest);
        let queue = Queue::default();
        let ready = Arc::clone(&queue.ready);
        self.queues.insert(name.clone(), queue);
        (command, name, ready)
    }

    pub(super) fn unsubscribe(&mut self, name: &str) {
        self.queues.remove(name);
        self.conversation.unsubscribe(name);
    }

    /// What has come of a subscription, or why nothing more will.
    pub(super) fn next(&mut self, name: &str) -> Option<Result<Event, ClientError>> {
        let queue = self.queues.get_mut(name)?;
        if let Some(event) = queue.events.pop_front() {
            queue.bytes -= event.bytes();
            return Some(Ok(event));
        }
        let end = queue.end.as_ref().or_else(|| self.conversation.failure());
        end.map(|error| Err(error.clone()))
    }

    /// Sorts what has come into queues; a subscription whose queue is full ends.
    fn sort(&mut self) {
        while let Some(event) = self.conversation.next_event() {
            if let Event::Ended { subscription, error } = &event {
                if let Some(queue) = self.queues.get_mut(subscription) {
                    queue.end = Some(error.clone());
                    queue.ready.notify_one();
                }
                continue;
            }
            for name in event.subscriptions() {
                let Some(queue) = self.queues.get_mut(name) else { continue };
                let limit = self.conversation.settings().unread_bytes_max;
                if queue.end.is_none() && queue.bytes > limit {
                    queue.end = Some(ClientError::Overrun(limit));
                    self.conversation.unsubscribe(name);
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
    pub(super) fn new(conversation: Conversation) -> Self {
        let watcher = conversation.settings().watcher.clone();
        let desk = Mutex::new(Desk { conversation, queues: HashMap::new() });
        Self { desk, watcher, news: Notify::new(), work: Notify::new() }
    }

    /// Whoever panicked has left it whole: it is changed by calls that do not.
    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something, and has what it adds to the conversation sent.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Desk) -> T) -> T {
        let done = act(&mut self.lock());
        self.work.notify_one();
        done
    }

    /// Waits until `look` sees something.
    pub(super) async fn wait<T>(&self, mut look: impl FnMut(&mut Desk) -> Option<T>) -> T {
        loop {
            // Before the look, so that nothing is missed between it and the wait.
            let news = self.news.notified();
            if let Some(seen) = self.with(&mut look) {
                return seen;
            }
            news.await;
        }
    }

    /// Tells everybody that something has happened.
    fn tell(&self) {
        self.news.notify_waiters();
        self.work.notify_one();
        let desk = self.lock();
        if desk.conversation.failure().is_some() {
            desk.queues.values().for_each(|queue| queue.ready.notify_one());
        }
        drop(desk);
        let Some(Watcher(watch)) = &self.watcher else { return };
        loop {
            let state = self.lock().conversation.next_state();
            match state {
                Some(state) => watch(&state),
                None => return,
            }
        }
    }

    pub(super) fn close(&self) {
        self.with(|desk| desk.conversation.close());
        self.news.notify_waiters();
    }
}

/// Connects, again and again if that is wanted, and reads, until it is over.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        let news = shared.news.notified();
        let next = shared.lock().conversation.next_step(Instant::now());
        match next {
            Next::End => return shared.tell(),
            // Either is a reason to look again.
            Next::Wait(until) => drop(timeout_at(until.into(), news).await),
            Next::Connect(server) => {
                shared.tell();
                let settings = shared.lock().conversation.settings().clone();
                let patience = settings.patience;
                match connect(server, patience, settings.tls.as_ref()).await {
                    Ok((stream, seal)) => talk(&shared, stream, seal, patience).await,
                    Err(error) => shared.lock().conversation.closed(Instant::now(), error),
                }
                shared.tell();
            }
        }
    }
}

async fn connect(
    server: String,
    patience: Duration,
    tls: Option<&Tls>,
) -> Result<(TcpStream, Seal), ClientError> {
    let at = ServerAddress::of_settings(&server)?;
    let made = timeout(patience, async {
        let stream = TcpStream::connect((at.host(), at.port())).await?;
        stream.set_nodelay(true)?;
        let seal = match tls {
            Some(tls) => shake_hands(&stream, tls, at.host()).await?.into(),
            None => Seal::default(),
        };
        Ok((stream, seal))
    });
    let made = made.await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
    made.map_err(|error| ClientError::Connect { server, error: Arc::new(error) })
}

/// Finds out whether the server is the one that it should be, and agrees on keys.
async fn shake_hands(stream: &TcpStream, tls: &Tls, host: &str) -> io::Result<Tunnel> {
    let mut tunnel = Tunnel::new(tls, host)?;
    let (mut out, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    let mut taken = Ok(());
    loop {
        // Also what the server is told if it is not believed.
        tunnel.put(&mut out)?;
        let sent = write_all(stream, &out).await;
        taken?;
        sent?;
        out.clear();
        if tunnel.is_open() {
            return Ok(tunnel);
        }
        stream.readable().await?;
        taken = match stream.try_read(&mut buffer) {
            Ok(0) => return Err(hung_up()),
            Ok(length) => tunnel.take(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(hung_up()),
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

/// Talks for as long as the connection lasts.
async fn talk(shared: &Arc<Shared>, stream: TcpStream, seal: Seal, patience: Duration) {
    if !shared.lock().conversation.opened(Instant::now()) {
        return;
    }
    let (from, to) = stream.into_split();
    let mut writer = tokio::spawn(write(Arc::clone(shared), to, seal.clone()));
    let error = read(shared, from, &seal).await.err().unwrap_or(ClientError::Closed);
    let is_over = shared.lock().conversation.failure().is_some();
    shared.lock().conversation.closed(Instant::now(), error);
    // At the end the rest is still sent.
    if !is_over || timeout(patience, &mut writer).await.is_err() {
        writer.abort();
    }
}

/// Reads until the connection ends, or is to end.
async fn read(shared: &Shared, from: OwnedReadHalf, seal: &Seal) -> Result<(), ClientError> {
    let (mut buffer, mut room) = (vec![0; READ_BYTES], Vec::new());
    loop {
        let readable = timeout(ROUND, from.readable()).await;
        let now = Instant::now();
        let Ok(readable) = readable else {
            shared.lock().conversation.check(now)?;
            continue;
        };
        readable?;
        match from.try_read(&mut buffer) {
            Ok(0) => return Err(ended()),
            Ok(length) => {
                let bytes = seal.open(&buffer[..length], &mut room)?;
                let mut desk = shared.lock();
                let taken = desk.conversation.receive(now, bytes);
                desk.sort();
                taken?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        }
        shared.tell();
    }
}

/// Writes what is to be sent until the connection ends, and to the end if all is over.
async fn write(shared: Arc<Shared>, to: OwnedWriteHalf, seal: Seal) -> io::Result<()> {
    let (mut out, mut room) = (Vec::new(), Vec::new());
    loop {
        let (is_needed, due) = {
            let conversation = &mut shared.lock().conversation;
            conversation.take_output(Instant::now(), &mut out);
            (conversation.has_connection(), conversation.next_beat())
        };
        if out.is_empty() {
            match due {
                _ if !is_needed => return write_all(to.as_ref(), &seal.farewell()).await,
                Some(due) => drop(timeout_at(due.into(), shared.work.notified()).await),
                None => shared.work.notified().await,
            }
        }
        write_all(to.as_ref(), seal.close(&out, &mut room)?).await?;
    }
}
