//! The sockets around a hub.

mod drain;
#[cfg(test)]
mod tests;

use crate::Nanos;
use crate::auth::password_worker::PasswordWorker;
use crate::auth::users::Users;
use crate::client::ClientId;
use crate::config::server_config::ServerConfig;
use crate::config::storage::OnFailure;
use crate::config::tls::TlsFiles;
use crate::engine::{DisconnectReason, Engine, Now};
use crate::net::connection::Connection;
use crate::net::listeners::{Framing, Listeners};
use crate::net::pending::PendingConnections;
use crate::net::poller::{Interest, Poller, Ready};
use crate::net::websocket::{CloseReason, Origins};
use crate::open_error::OpenError;
use crate::queue::disk_ring::DiskRing;
use crate::queue::offline_queue::OfflineSettings;
use crate::stats::counters::Counters;
use crate::stats::latency::{Latency, LatencyRecorder};
use lanecast_base::clock::Clock;
use rustls::ServerConfig as TlsConfig;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

mod entering;

use self::entering::STRANGERS_READ;

/// The number at the poller of what tells that a password has been checked.
const BELL: u64 = 1 << 32;
/// The same of what tells that the disk has come further.
const DISK: u64 = BELL + 1;
/// What is read at a time.
const READ_BYTES: usize = 256 << 10;

/// A content server. [`turn`](Self::turn) it until it is to end, then [`drain`](Self::drain) it.
#[derive(Debug)]
pub struct Server {
    hub: Engine,
    entrances: Listeners,
    origins: Origins,
    /// How connections are encrypted, if they are.
    tls: Option<Arc<TlsConfig>>,
    poller: Poller,
    /// By their clients' numbers.
    connections: Vec<Option<Connection>>,
    ready: Vec<Ready>,
    buffer: Box<[u8]>,
    clock: Clock,
    pending: PendingConnections,
    /// How much is here of frames that have begun, and when it is looked how old they are.
    partial_bytes: usize,
    partials_due: Nanos,
    /// Queries are being answered: the next round is not to wait.
    is_answering: bool,
    /// Checks passwords, where users are known.
    checker: Option<PasswordWorker>,
    delays: LatencyRecorder,
    /// When what is to be sent began to be read.
    begun: Option<Nanos>,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(settings: ServerConfig) -> Result<Self, OpenError> {
        settings.check()?;
        if let Some(OfflineSettings { directory, .. }) = &settings.spooling {
            DiskRing::create(directory, 1)
                .map_err(|error| OpenError::DiskRing { directory: directory.clone(), error })?;
        }
        let mut entrances = Listeners::default();
        let websocket = settings.websocket.map(|at| (at, Framing::WebSocket));
        for (at, speech) in [(settings.listen, Framing::Frames)].into_iter().chain(websocket) {
            entrances.open(at, speech).map_err(|error| OpenError::Listen { at, error })?;
        }
        let poller = Poller::new().map_err(OpenError::Poll)?;
        entrances.watch(&poller).map_err(OpenError::Poll)?;
        let tls = settings.tls.as_ref().map(TlsFiles::load).transpose()?;
        let users = settings.users.as_deref().map(Users::read).transpose()?;
        let checker = users.as_ref().map(|_| PasswordWorker::start()).transpose();
        let checker = checker.map_err(OpenError::Poll)?;
        if let Some(checker) = &checker {
            poller.add(checker.bell(), BELL).map_err(OpenError::Poll)?;
        }
        let origins = Origins(settings.origins.as_slice().into());
        let mut hub = Engine::new(settings)?;
        hub.guard.users = users;
        if let Some(disk) = &hub.world.disk {
            poller.add(disk.bell(), DISK).map_err(OpenError::Poll)?;
        }
        Ok(Self {
            origins,
            tls,
            hub,
            entrances,
            poller,
            connections: Vec::new(),
            ready: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            clock: Clock::host(),
            pending: PendingConnections::default(),
            partial_bytes: 0,
            partials_due: 0,
            is_answering: false,
            checker,
            delays: LatencyRecorder::new(),
            begun: None,
        })
    }

    /// Reads again who may come in, and by what the server shows who it is. That holds for those
    /// who come from now on.
    ///
    /// # Errors
    /// If a file cannot be used: then all is as it was.
    pub fn reload(&mut self) -> Result<(), OpenError> {
        let settings = &self.hub.settings;
        let tls = settings.tls.as_ref().map(TlsFiles::load).transpose()?;
        let users = settings.users.as_deref().map(Users::read).transpose()?;
        self.tls = tls;
        self.hub.guard.users = users;
        Ok(())
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        let address = self.entrances.address(Framing::Frames);
        address.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }

    /// Where it listens for WebSockets, if it does.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn websocket_address(&self) -> io::Result<Option<SocketAddr>> {
        self.entrances.address(Framing::WebSocket).transpose()
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        self.hub.counters()
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.hub.clients()
    }

    /// A sentence about a client that was disconnected as it read too slowly, or about the disk of
    /// durable topics, each once.
    pub fn next_log_line(&mut self) -> Option<String> {
        self.hub.words.pop_front()
    }

    /// Why nothing is durable any more, if so, and the settings say that the server is to end then:
    /// [`drain`](Self::drain) it. Otherwise it goes on with what is not durable.
    pub fn failure(&self) -> Option<String> {
        let disk = self.hub.world.disk.as_ref()?;
        let on_failure = self.hub.settings.storage.as_ref()?.on_failure;
        if on_failure == OnFailure::Stop && disk.has_failed() { disk.failure() } else { None }
    }

    /// How long it takes from when a command is taken up until what follows from it is written for
    /// those whom it is for; of one command in 64.
    pub fn command_latency(&self) -> Latency {
        self.delays.commands()
    }

    /// How long it takes from when bytes were read until the system has all that followed.
    pub fn turn_latency(&self) -> Latency {
        self.delays.rounds()
    }

    fn moment(&self) -> Now {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX);
        Now { now: self.clock.ns(self.clock.ticks()), unix_ns }
    }

    /// One round: waits for something to do, at most `limit`, and does it.
    ///
    /// # Errors
    /// If the system cannot wait for sockets.
    pub fn turn(&mut self, limit: Duration) -> io::Result<()> {
        let moment = self.moment();
        let late = self.pending.next_due();
        let partials = (self.partial_bytes > 0).then_some(self.partials_due);
        let is_free = self.checker.as_ref().is_some_and(PasswordWorker::is_free);
        let logon = self.hub.guard.logons.next_due().filter(|_| is_free);
        let deadline = self.hub.next_deadline(moment);
        let due = [deadline, self.entrances.again(), late, partials, logon];
        let due = due.into_iter().flatten().min();
        let until = due.map(|due| Duration::from_nanos(due.saturating_sub(moment.now)));
        let is_due = self.hub.has_progress() || self.is_answering;
        let until = if is_due { Some(Duration::ZERO) } else { until };
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        self.poller.wait(Some(until.map_or(limit, |until| until.min(limit))), &mut ready)?;
        let moment = self.moment();
        self.hub.look_after_slow(moment.now);
        let mut has_guests = false;
        for one in &ready {
            if one.number == BELL {
                continue;
            }
            if one.number == DISK {
                // Before all looks at the disk in this turn.
                self.hub.hush_disk();
                continue;
            }
            if Listeners::is_one(one.number) {
                has_guests = true;
            } else if one.to_read {
                self.begun.get_or_insert_with(|| self.clock.ns(self.clock.ticks()));
                self.read(moment, ClientId(one.number as u32));
                if self.hub.is_round_full() {
                    self.send();
                }
            }
        }
        self.check_passwords(moment);
        self.resume_stopped(moment);
        self.hub.on_time(moment);
        self.is_answering = self.hub.advance(moment);
        for one in ready.iter().filter(|one| one.number < BELL && one.to_write) {
            self.write(ClientId(one.number as u32));
        }
        self.ready = ready;
        self.send();
        // Last, as a number that has become free may be given again.
        self.hurry(moment.now);
        self.entrances.on_time(moment.now, &self.poller);
        while has_guests
            && let Some((stream, from, speech)) = self.entrances.next(moment.now, &self.poller)
        {
            self.welcome(moment.now, stream, from, speech);
        }
        Ok(())
    }

    fn read(&mut self, moment: Now, id: ClientId) {
        let is_known = self.hub.is_admitted(id);
        let limit = self.frame_limit(is_known);
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let (hub, delays, clock) = (&mut self.hub, &mut self.delays, &self.clock);
        // What comes is not read while it is found out who it is: this is its end.
        if hub.is_proving(id) {
            return self.close(id);
        }
        // Its end is seen when it has resumed.
        if hub.is_stopped(id) {
            return;
        }
        if !hub.goes_on(id) {
            return self.write(id);
        }
        let most = if is_known { READ_BYTES } else { STRANGERS_READ };
        let heard = connection.read(&mut self.buffer[..most], limit, |payload| {
            if delays.is_turn() {
                let start = clock.ticks();
                hub.receive(moment, id, payload);
                delays.note_command(clock.ns(clock.ticks().wrapping_sub(start)));
            } else {
                hub.receive(moment, id, payload);
            }
            hub.goes_on(id)
        });
        self.heard(moment.now, id, heard);
    }

    /// What a client sent has been taken in.
    fn heard(&mut self, now: Nanos, id: ClientId, heard: io::Result<()>) {
        if let Err(error) = heard {
            if error.kind() == ErrorKind::InvalidData {
                self.refuse_frame(id);
            }
            return self.dismiss(id, CloseReason::Silent);
        }
        self.look_whether_in(id);
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        if connection.has_unsent() || self.hub.is_stopped(id) {
            self.hub.note_pongs(id, connection.has_unread_answers());
            self.write(id);
        }
        self.count_partial(now, id);
    }

    /// Goes on with logons whose passwords have been checked, and has the next one checked.
    fn check_passwords(&mut self, moment: Now) {
        let Some(checker) = &mut self.checker else { return };
        let verdict = checker.verdict();
        if let Some(verdict) = verdict {
            let id = verdict.client;
            self.hub.proved(moment, verdict);
            if !self.hub.is_proving(id) {
                // If it was wrong, for another try.
                self.pending.restart_clock(id, self.late(moment.now));
            }
            self.look_whether_in(id);
        }
        if let Some(checker) = &mut self.checker
            && checker.is_free()
            && let Some(proof) = self.hub.next_proof(moment.now)
        {
            checker.check(proof);
        }
    }

    /// Goes on with those who do not have to wait any more.
    fn resume_stopped(&mut self, moment: Now) {
        for id in self.hub.take_stopped() {
            // One by one: what the first has sent may be too much for the second.
            if self.hub.resumes(id) {
                self.resume(moment, id);
            }
        }
    }

    /// Does what a client sent before it was stopped.
    fn resume(&mut self, moment: Now, id: ClientId) {
        let limit = self.frame_limit(self.hub.is_admitted(id));
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let hub = &mut self.hub;
        hub.receive_held(moment, id);
        if hub.goes_on(id) {
            let heard = connection.resume(limit, |payload| {
                hub.receive(moment, id, payload);
                hub.goes_on(id)
            });
            self.heard(moment.now, id, heard);
        }
        self.write(id);
    }

    /// Hands outboxes to the system; lets those go who have to.
    fn send(&mut self) {
        let begun = self.begun.take();
        let mut has_sent = false;
        while let Some(id) = self.hub.next_dirty() {
            self.write(id);
            has_sent = true;
        }
        self.is_answering |= self.hub.end_round();
        if has_sent && let Some(begun) = begun {
            self.delays.note_round(self.clock.ns(self.clock.ticks()).saturating_sub(begun));
        }
        while let Some((id, why)) = self.hub.next_disconnect() {
            // A slow one would not take the rest.
            if why != DisconnectReason::Slow {
                self.write(id);
            }
            self.dismiss(id, CloseReason::Refused(why.reason()));
        }
    }

    fn write(&mut self, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let sent = connection.send(&mut self.hub, id);
        let changed = sent.and_then(|is_empty| {
            self.hub.note_pongs(id, connection.has_unread_answers());
            let interest = match (self.hub.is_stopped(id), is_empty) {
                (false, true) => Interest::Read,
                (false, false) => Interest::Both,
                (true, true) => Interest::Neither,
                (true, false) => Interest::Write,
            };
            if connection.interest != interest {
                connection.interest = interest;
                self.poller.change(&connection.channel, id.0.into(), interest)?;
            }
            Ok(())
        });
        if changed.is_err() {
            self.close(id);
        }
    }

    /// Ends a connection, and says why as far as that can be done at once.
    fn dismiss(&mut self, id: ClientId, why: CloseReason) {
        if let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) {
            connection.say_goodbye(why);
            self.close(id);
        }
    }

    fn close(&mut self, id: ClientId) {
        if let Some(connection) = self.connections[id.0 as usize].take() {
            self.partial_bytes -= connection.partial;
            if connection.is_pending {
                self.pending.remove(id);
            }
        }
        self.hub.disconnect(id);
    }
}
