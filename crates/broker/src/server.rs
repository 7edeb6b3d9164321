//! The sockets around a hub.

use crate::Nanos;
use crate::client::ClientId;
use crate::connection::Connection;
use crate::delays::{Delay, Delays};
use crate::hub::{Counters, Departure, Hub, Moment};
use crate::poller::{Interest, Poller, Ready};
use crate::settings::{Settings, SettingsError};
use crate::world::WorldError;
use lanecast_base::clock::Clock;
use lanecast_os::{direct, tcp};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant, SystemTime};

/// The listener's number at the poller; those of connections are their clients'.
const LISTENER: u64 = u64::MAX;
/// What is read at a time.
const READ_BYTES: usize = 256 << 10;
/// When so much has been written for outboxes to share, it is sent before more is read: it is
/// still in the cache then.
const ROUND_BYTES: usize = 64 << 10;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1_024;
/// When nothing can be accepted, for want of descriptors say, it is tried again after this.
const ACCEPT_AGAIN: Nanos = 100_000_000;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The settings make no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// What is to be kept cannot be.
    #[error(transparent)]
    World(#[from] WorldError),
    /// It cannot listen there.
    #[error("cannot listen on {at}: {error}")]
    Listen {
        /// Where.
        at: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The system has no means to wait for sockets.
    #[error("cannot wait for sockets: {0}")]
    Poll(io::Error),
}

/// A content server. [`turn`](Self::turn) it until it is to end, then [`drain`](Self::drain) it.
#[derive(Debug)]
pub struct Server {
    hub: Hub,
    listener: TcpListener,
    poller: Poller,
    /// By their clients' numbers.
    connections: Vec<Option<Connection>>,
    ready: Vec<Ready>,
    buffer: Box<[u8]>,
    clock: Clock,
    accept_again: Option<Nanos>,
    /// Queries are being answered: the next round is not to wait.
    is_answering: bool,
    delays: Delays,
    /// When what is to be sent began to be read.
    begun: Option<Nanos>,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        settings.check()?;
        let at = settings.listen;
        let listener = tcp::listen(at, BACKLOG).map_err(|error| OpenError::Listen { at, error })?;
        let poller = Poller::new().map_err(OpenError::Poll)?;
        poller.add(&listener, LISTENER).map_err(OpenError::Poll)?;
        Ok(Self {
            hub: Hub::new(settings)?,
            listener,
            poller,
            connections: Vec::new(),
            ready: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            clock: Clock::host(),
            accept_again: None,
            is_answering: false,
            delays: Delays::new(),
            begun: None,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        self.hub.counters()
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.hub.clients()
    }

    /// How long it takes from when a command is taken up until what follows from it is written for
    /// those whom it is for; of one command in 64.
    pub fn command_delay(&self) -> Delay {
        self.delays.commands()
    }

    /// How long it takes from when bytes were read until the system has all that followed.
    pub fn round_delay(&self) -> Delay {
        self.delays.rounds()
    }

    fn moment(&self) -> Moment {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX);
        Moment { now: self.clock.ns(self.clock.ticks()), unix_ns }
    }

    /// One round: waits for something to do, at most `limit`, and does it.
    ///
    /// # Errors
    /// If the system cannot wait for sockets.
    pub fn turn(&mut self, limit: Duration) -> io::Result<()> {
        let moment = self.moment();
        let due = [self.hub.next_deadline(moment), self.accept_again].into_iter().flatten().min();
        let until = due.map(|due| Duration::from_nanos(due.saturating_sub(moment.now)));
        let until = if self.is_answering { Some(Duration::ZERO) } else { until };
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        self.poller.wait(Some(until.map_or(limit, |until| until.min(limit))), &mut ready)?;
        let moment = self.moment();
        let mut has_guests = false;
        for one in &ready {
            if one.number == LISTENER {
                has_guests = true;
            } else if one.to_read {
                self.begun.get_or_insert_with(|| self.clock.ns(self.clock.ticks()));
                self.read(moment, ClientId(one.number as u32));
                if self.hub.shared_bytes() >= ROUND_BYTES {
                    self.send();
                }
            }
        }
        self.hub.on_time(moment);
        self.is_answering = self.hub.advance(moment);
        for one in ready.iter().filter(|one| one.number != LISTENER && one.to_write) {
            self.write(ClientId(one.number as u32));
        }
        self.ready = ready;
        self.send();
        // Last, as a number that has become free may be given again.
        if has_guests || self.accept_again.is_some_and(|at| at <= moment.now) {
            self.accept(moment.now);
        }
        Ok(())
    }

    fn read(&mut self, moment: Moment, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let limit = self.hub.settings.frame_bytes_max;
        let (hub, delays, clock) = (&mut self.hub, &mut self.delays, &self.clock);
        let heard = connection.read(&mut self.buffer, limit, |payload| {
            if delays.is_turn() {
                let start = clock.ticks();
                hub.receive(moment, id, payload);
                delays.note_command(clock.ns(clock.ticks().wrapping_sub(start)));
            } else {
                hub.receive(moment, id, payload);
            }
        });
        if heard.is_err() {
            self.close(id);
        }
    }

    /// Hands outboxes to the system; lets those go who have to.
    fn send(&mut self) {
        let begun = self.begun.take();
        let mut has_sent = false;
        while let Some(id) = self.hub.next_dirty() {
            self.write(id);
            has_sent = true;
        }
        self.hub.end_round();
        if has_sent && let Some(begun) = begun {
            self.delays.note_round(self.clock.ns(self.clock.ticks()).saturating_sub(begun));
        }
        while let Some((id, why)) = self.hub.next_departure() {
            // A slow one would not take the rest.
            if why != Departure::Slow {
                self.write(id);
            }
            self.close(id);
        }
    }

    fn write(&mut self, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let Some((outbox, sheets)) = self.hub.outbox(id) else { return };
        let stream = &connection.stream;
        let sent = outbox.send(sheets, |slices| direct::write_vectored(stream, slices));
        let changed = sent.and_then(|is_empty| {
            if connection.wants_write == is_empty {
                connection.wants_write = !is_empty;
                let what = if is_empty { Interest::Read } else { Interest::Both };
                self.poller.change(stream, id.0.into(), what)?;
            }
            Ok(())
        });
        if changed.is_err() {
            self.close(id);
        }
    }

    fn close(&mut self, id: ClientId) {
        self.connections[id.0 as usize] = None;
        self.hub.disconnect(id);
    }

    fn accept(&mut self, now: Nanos) {
        if self.accept_again.take().is_some() && self.poller.add(&self.listener, LISTENER).is_err()
        {
            self.accept_again = Some(now.saturating_add(ACCEPT_AGAIN));
            return;
        }
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.welcome(now, stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Or the poller would report it again at once, for as long as it lasts.
                    if self.poller.remove(&self.listener).is_ok() {
                        self.accept_again = Some(now.saturating_add(ACCEPT_AGAIN));
                    }
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, now: Nanos, stream: std::net::TcpStream) {
        // Whom it cannot serve it hangs up on.
        let Ok(connection) = Connection::new(stream) else { return };
        let Some(id) = self.hub.connect(now) else { return };
        let at = id.0 as usize;
        if self.connections.len() <= at {
            self.connections.resize_with(at + 1, || None);
        }
        let added = self.poller.add(&connection.stream, id.0.into());
        self.connections[at] = Some(connection);
        if added.is_err() {
            self.close(id);
        }
    }

    /// From now on the poller only knows those who may take more: what comes is not read.
    fn listen_no_more(&mut self) {
        // What it still knows in spite of this would only make it wake more often.
        drop(self.poller.remove(&self.listener));
        for connection in self.connections.iter().flatten() {
            drop(self.poller.remove(&connection.stream));
        }
    }

    fn write_last(&mut self, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let Some((outbox, sheets)) = self.hub.outbox(id) else { return };
        let stream = &connection.stream;
        match outbox.send(sheets, |slices| direct::write_vectored(stream, slices)) {
            Ok(true) => drop(self.poller.remove(stream)),
            Ok(false) => {
                let number = id.0.into();
                // It may be there from the last time.
                drop(self.poller.add(stream, number));
                drop(self.poller.change(stream, number, Interest::Write));
            }
            Err(_) => self.close(id),
        }
    }

    /// Accepts nobody any more, and empties outboxes for as long as the settings say; whether all
    /// are empty.
    pub fn drain(mut self) -> bool {
        let start = Instant::now();
        let limit = self.hub.settings.drain;
        self.listen_no_more();
        loop {
            let ids = (0..self.connections.len() as u32).map(ClientId);
            let full: Vec<ClientId> = ids
                .filter(|id| self.hub.outbox(*id).is_some_and(|(it, _)| !it.is_empty()))
                .collect();
            full.iter().for_each(|id| self.write_last(*id));
            let left = limit.saturating_sub(start.elapsed());
            if full.is_empty() || left.is_zero() {
                return full.is_empty();
            }
            let mut ready = Vec::new();
            let nap = left.min(Duration::from_millis(10));
            if self.poller.wait(Some(nap), &mut ready).is_err() {
                return false;
            }
        }
    }
}
