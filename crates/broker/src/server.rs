//! The sockets around a hub.

use crate::Nanos;
use crate::backlog::Spooling;
use crate::checker::Checker;
use crate::client::ClientId;
use crate::connection::Connection;
use crate::delays::{Delay, Delays};
use crate::entrance::{Entrances, Speech};
use crate::hub::{Counters, Departure, Hub, LOOK, Moment};
use crate::opening::OpenError;
use crate::poller::{Interest, Poller, Ready};
use crate::settings::Settings;
use crate::spool::Spool;
use crate::tls::Tls;
use crate::users::Users;
use crate::websocket::{Farewell, Origins};
use lanecast_base::clock::Clock;
use rustls::ServerConfig;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

mod entering;

/// The number at the poller of what tells that a password has been checked.
const BELL: u64 = 1 << 32;
/// What is read at a time.
const READ_BYTES: usize = 256 << 10;

/// A content server. [`turn`](Self::turn) it until it is to end, then [`drain`](Self::drain) it.
#[derive(Debug)]
pub struct Server {
    hub: Hub,
    entrances: Entrances,
    origins: Origins,
    /// How connections are encrypted, if they are.
    tls: Option<Arc<ServerConfig>>,
    poller: Poller,
    /// By their clients' numbers.
    connections: Vec<Option<Connection>>,
    ready: Vec<Ready>,
    buffer: Box<[u8]>,
    clock: Clock,
    /// Those who have not come in yet, in the order of their coming.
    entering: VecDeque<(Nanos, ClientId)>,
    /// Queries are being answered: the next round is not to wait.
    is_answering: bool,
    /// Checks passwords, where users are known.
    checker: Option<Checker>,
    delays: Delays,
    /// Those who have to wait before more of what they send is taken.
    asking: Vec<ClientId>,
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
        if let Some(Spooling { directory, .. }) = &settings.spooling {
            Spool::create(directory, 1)
                .map_err(|error| OpenError::Spool { directory: directory.clone(), error })?;
        }
        let mut entrances = Entrances::default();
        let websocket = settings.websocket.map(|at| (at, Speech::WebSocket));
        for (at, speech) in [(settings.listen, Speech::Frames)].into_iter().chain(websocket) {
            entrances.open(at, speech).map_err(|error| OpenError::Listen { at, error })?;
        }
        let poller = Poller::new().map_err(OpenError::Poll)?;
        entrances.watch(&poller).map_err(OpenError::Poll)?;
        let tls = settings.tls.as_ref().map(Tls::load).transpose()?;
        let users = settings.users.as_deref().map(Users::read).transpose()?;
        let checker = users.as_ref().map(|_| Checker::start()).transpose();
        let checker = checker.map_err(OpenError::Poll)?;
        if let Some(checker) = &checker {
            poller.add(checker.bell(), BELL).map_err(OpenError::Poll)?;
        }
        let origins = Origins(settings.origins.as_slice().into());
        let mut hub = Hub::new(settings)?;
        hub.guard.users = users;
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
            entering: VecDeque::new(),
            is_answering: false,
            checker,
            delays: Delays::new(),
            asking: Vec::new(),
            begun: None,
        })
    }

    /// Reads again who may come in, and by what the server shows who it is. That holds for those
    /// who come from now on.
    ///
    /// # Errors
    /// If a file cannot be used: then all is as it was.
    pub fn read_again(&mut self) -> Result<(), OpenError> {
        let settings = &self.hub.settings;
        let tls = settings.tls.as_ref().map(Tls::load).transpose()?;
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
        let address = self.entrances.address(Speech::Frames);
        address.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }

    /// Where it listens for WebSockets, if it does.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn websocket_address(&self) -> io::Result<Option<SocketAddr>> {
        self.entrances.address(Speech::WebSocket).transpose()
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        self.hub.counters()
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.hub.clients()
    }

    /// A sentence about a client that was disconnected as it read too slowly, each once.
    pub fn next_word(&mut self) -> Option<String> {
        self.hub.words.pop_front()
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
        let late = self.entering.front().map(|(since, _)| self.late(*since));
        let again = (!self.asking.is_empty()).then(|| moment.now.saturating_add(LOOK));
        let due = [self.hub.next_deadline(moment), self.entrances.again(), late, again];
        let due = due.into_iter().flatten().min();
        let until = due.map(|due| Duration::from_nanos(due.saturating_sub(moment.now)));
        let until = if self.is_answering { Some(Duration::ZERO) } else { until };
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
            if Entrances::is_one(one.number) {
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
        self.resume_asking(moment);
        self.hub.on_time(moment);
        self.is_answering = self.hub.advance(moment);
        for one in ready.iter().filter(|one| !Entrances::is_one(one.number) && one.to_write) {
            self.write(ClientId(one.number as u32));
        }
        self.ready = ready;
        self.send();
        // Last, as a number that has become free may be given again.
        self.hurry(moment.now);
        self.entrances.on_time(moment.now, &self.poller);
        while has_guests
            && let Some((stream, speech)) = self.entrances.next(moment.now, &self.poller)
        {
            self.welcome(moment.now, stream, speech);
        }
        Ok(())
    }

    fn read(&mut self, moment: Moment, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let limit = self.hub.settings.frame_bytes_max;
        let (hub, delays, clock) = (&mut self.hub, &mut self.delays, &self.clock);
        // What comes is not read while it is found out who it is: this is its end.
        if hub.is_proving(id) {
            return self.close(id);
        }
        // What it has asked is being answered: its end is seen after that.
        if !hub.listens_to(id) || connection.has_unread_answers() {
            return;
        }
        let heard = connection.read(&mut self.buffer, limit, |payload| {
            if delays.is_turn() {
                let start = clock.ticks();
                hub.receive(moment, id, payload);
                delays.note_command(clock.ns(clock.ticks().wrapping_sub(start)));
            } else {
                hub.receive(moment, id, payload);
            }
            hub.listens_to(id)
        });
        self.heard(id, heard);
    }

    /// What a client sent has been taken in.
    fn heard(&mut self, id: ClientId, heard: io::Result<()>) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        if heard.is_err() {
            self.dismiss(id, Farewell::Silent);
        } else if connection.has_unsent() || !self.hub.listens_to(id) {
            // What goes on with it is here its writing, there its password.
            connection.is_unheard =
                connection.has_unread_answers() || self.hub.has_unread_answers(id);
            let is_unheard = connection.is_unheard;
            if !is_unheard && !self.hub.is_proving(id) && !self.hub.listens_to(id) {
                self.asking.push(id);
            }
            self.write(id);
        }
    }

    /// Goes on with logons whose passwords have been checked, and has the next one checked.
    fn check_passwords(&mut self, moment: Moment) {
        let Some(checker) = &mut self.checker else { return };
        let verdict = checker.verdict();
        if let Some(verdict) = verdict {
            self.hub.proved(moment, verdict);
            self.resume(moment, verdict.client);
        }
        if let Some(checker) = &mut self.checker
            && checker.is_free()
            && let Some(proof) = self.hub.next_proof()
        {
            checker.check(proof);
        }
    }

    /// Goes on with those who do not have to wait any more.
    fn resume_asking(&mut self, moment: Moment) {
        for id in std::mem::take(&mut self.asking) {
            let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { continue };
            connection.is_unheard =
                connection.has_unread_answers() || self.hub.has_unread_answers(id);
            match (connection.is_unheard, self.hub.listens_to(id)) {
                // Comes again when it has read them.
                (true, _) => {}
                (false, true) => self.resume(moment, id),
                (false, false) => self.asking.push(id),
            }
        }
    }

    /// Does what a client sent while it was not listened to.
    fn resume(&mut self, moment: Moment, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let limit = self.hub.settings.frame_bytes_max;
        let hub = &mut self.hub;
        let heard = connection.resume(limit, |payload| {
            hub.receive(moment, id, payload);
            hub.listens_to(id)
        });
        self.heard(id, heard);
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
        while let Some((id, why)) = self.hub.next_departure() {
            // A slow one would not take the rest.
            if why != Departure::Slow {
                self.write(id);
            }
            self.dismiss(id, Farewell::Refused(why.reason()));
        }
    }

    fn write(&mut self, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let sent = connection.send(&mut self.hub, id);
        let changed = sent.and_then(|is_empty| {
            let has_unread = connection.has_unread_answers() || self.hub.has_unread_answers(id);
            if !has_unread && std::mem::take(&mut connection.is_unheard) {
                self.asking.push(id);
            }
            let interest = match (!has_unread && self.hub.listens_to(id), is_empty) {
                (true, true) => Interest::Read,
                (true, false) => Interest::Both,
                (false, true) => Interest::Neither,
                (false, false) => Interest::Write,
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
    fn dismiss(&mut self, id: ClientId, why: Farewell) {
        if let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) {
            connection.say_goodbye(why);
            self.close(id);
        }
    }

    fn close(&mut self, id: ClientId) {
        self.connections[id.0 as usize] = None;
        self.hub.disconnect(id);
    }

    /// From now on the poller only knows those who may take more: what comes is not read.
    fn listen_no_more(&mut self) {
        self.entrances.close(&self.poller);
        for connection in self.connections.iter().flatten() {
            drop(self.poller.remove(&connection.channel));
        }
    }

    fn write_last(&mut self, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let sent = connection.send(&mut self.hub, id);
        let (channel, number) = (&connection.channel, id.0.into());
        match sent {
            Ok(true) => drop(self.poller.remove(channel)),
            Ok(false) => {
                // It may be there from the last time.
                drop(self.poller.add(channel, number));
                drop(self.poller.change(channel, number, Interest::Write));
            }
            Err(_) => self.close(id),
        }
    }

    /// Whether something waits to be sent to a client.
    fn has_unsent(&mut self, id: ClientId) -> bool {
        let connection = self.connections.get(id.0 as usize).and_then(Option::as_ref);
        connection.is_some_and(Connection::has_unsent) || self.hub.has_unsent(id)
    }

    /// Accepts nobody any more, and empties outboxes for as long as the settings say; whether all
    /// are empty.
    pub fn drain(mut self) -> bool {
        let start = Instant::now();
        let limit = self.hub.settings.drain;
        self.listen_no_more();
        self.hub.finish(limit);
        loop {
            let ids = (0..self.connections.len() as u32).map(ClientId);
            let full: Vec<ClientId> = ids.filter(|id| self.has_unsent(*id)).collect();
            full.iter().for_each(|id| self.write_last(*id));
            let left = limit.saturating_sub(start.elapsed());
            if full.is_empty() || left.is_zero() {
                for connection in self.connections.iter_mut().flatten() {
                    connection.say_goodbye(Farewell::Away);
                }
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
