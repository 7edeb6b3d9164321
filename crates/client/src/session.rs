//! The client's session as a state machine: bytes in, bytes out, and events.
//!
//! It has no sockets, threads or clocks: the blocking client's threads and the asynchronous
//! client's tasks drive it and pass the time. Tests can cut connections at any byte.

mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

use crate::backlog::Backlog;
use crate::backoff::Backoff;
use crate::error::ClientError;
use crate::event::{Event, State};
use crate::frames::Frames;
use crate::pending::PendingRequests;
use crate::query::SubscribeRequest;
use crate::settings::Settings;
use lanecast_wire::command::{Command, Field, HeaderWriter};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

/// Missed heartbeats after which the server counts as silent.
const MISSED_MAX: u32 = 3;

/// State of the connection.
#[derive(Debug)]
enum Phase {
    /// No connection; the next attempt is due at this time.
    Disconnected(Instant),
    /// Connected; the logon with this command id waits for its acknowledgement.
    LoggingOn { command: u64, until: Instant },
    /// Logged on.
    Connected { since: Instant },
    /// Ended for good.
    Ended(ClientError),
}

/// The next step of the driver.
#[derive(Debug)]
pub(crate) enum Next {
    /// Connect to this server.
    Connect(String),
    /// Wait until this time.
    Wait(Instant),
    /// Stop.
    End,
}

/// A subscription that is placed anew on each connection.
#[derive(Debug)]
struct ActiveSubscription {
    request: SubscribeRequest,
    /// Whether the server has accepted it once. Until then its command is a pending request.
    is_accepted: bool,
}

/// The session of a client across its connections.
#[derive(Debug)]
pub(crate) struct Session {
    settings: Settings,
    phase: Phase,
    /// Index of the current or last server.
    server: usize,
    /// Attempts since the last connection.
    attempts: usize,
    backoff: Backoff,
    has_been_connected: bool,
    /// Bytes to send on this connection.
    out: Vec<u8>,
    frames: Frames,
    /// Times of the last received and sent bytes.
    last_receive: Instant,
    last_send: Instant,
    /// Id of the last command.
    last: u64,
    /// Sequence number of the last published message.
    sequence: u64,
    backlog: Backlog,
    /// Messages that may be lost, for a client without a name.
    uncertain: u64,
    /// Messages that the server acknowledged as duplicates.
    duplicates: u64,
    /// The first refused message, with the reason.
    refused: Option<(u64, String)>,
    pending: PendingRequests,
    active: BTreeMap<String, ActiveSubscription>,
    /// Subscriptions being placed anew, by command id.
    replacing: HashMap<u64, String>,
    events: VecDeque<Event>,
    event_bytes: usize,
    states: VecDeque<State>,
}

impl Session {
    /// A session with a seed for jitter and a sequence number below those of its messages.
    pub(crate) fn new(settings: Settings, now: Instant, seed: u64, sequence: u64) -> Self {
        let backlog = Backlog::new(settings.unacknowledged_bytes_max);
        Self {
            settings,
            phase: Phase::Disconnected(now),
            server: 0,
            attempts: 0,
            backoff: Backoff::new(seed),
            has_been_connected: false,
            out: Vec::new(),
            frames: Frames::default(),
            last_receive: now,
            last_send: now,
            last: 0,
            sequence,
            backlog,
            uncertain: 0,
            duplicates: 0,
            refused: None,
            pending: PendingRequests::default(),
            active: BTreeMap::new(),
            replacing: HashMap::new(),
            events: VecDeque::new(),
            event_bytes: 0,
            states: VecDeque::new(),
        }
    }

    /// Number of messages that the server acknowledged as duplicates.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn has_name(&self) -> bool {
        !self.settings.identity.name.is_empty()
    }

    fn server(&self) -> String {
        self.settings.servers[self.server].clone()
    }

    /// The next step while there is no connection.
    pub(crate) fn next_step(&mut self, now: Instant) -> Next {
        match self.phase {
            Phase::Disconnected(from) if from <= now => {
                self.push_state(State::Connecting { server: self.server() });
                Next::Connect(self.server())
            }
            Phase::Disconnected(from) => Next::Wait(from),
            Phase::LoggingOn { .. } | Phase::Connected { .. } => Next::Wait(now),
            Phase::Ended(_) => Next::End,
        }
    }

    /// Starts the logon on a new connection. False if the session has ended.
    pub(crate) fn opened(&mut self, now: Instant) -> bool {
        if matches!(self.phase, Phase::Ended(_)) {
            return false;
        }
        self.frames = Frames::default();
        self.last_receive = now;
        self.last_send = now;
        let until = now + self.settings.patience;
        let command = self.log_on();
        self.phase = Phase::LoggingOn { command, until };
        true
    }

    /// Handles the end of a connection or a failed attempt.
    pub(crate) fn closed(&mut self, now: Instant, error: ClientError) {
        self.out.clear();
        self.replacing.clear();
        match self.phase {
            Phase::Ended(_) => return,
            Phase::Connected { since } => {
                self.attempts = 0;
                let long = self.settings.reconnect.map(|wait| wait.delay_max).unwrap_or_default();
                if now.saturating_duration_since(since) >= long {
                    self.backoff.reset();
                }
                if !self.has_name() {
                    self.uncertain += self.backlog.len() as u64;
                    self.backlog.clear();
                }
            }
            Phase::LoggingOn { .. } | Phase::Disconnected(_) => {
                self.attempts += 1;
                self.server = (self.server + 1) % self.settings.servers.len();
            }
        }
        self.pending.connection_lost();
        self.retry(now, error);
    }

    /// Decides whether, and when, to connect again.
    fn retry(&mut self, now: Instant, error: ClientError) {
        let has_tried_all = self.attempts >= self.settings.servers.len();
        let is_hopeless = !self.has_been_connected && has_tried_all;
        let reconnect = match self.settings.reconnect {
            None if !has_tried_all && self.attempts > 0 => Default::default(),
            Some(reconnect) if !is_hopeless => reconnect,
            _ => return self.fail(error),
        };
        // Each server is tried before any a second time.
        let is_round = self.attempts.is_multiple_of(self.settings.servers.len());
        let backoff = if is_round { self.backoff.next(reconnect) } else { Default::default() };
        self.phase = Phase::Disconnected(now + backoff);
        self.push_state(State::Waiting { backoff, error });
    }

    /// Ends the session with an error.
    pub(crate) fn fail(&mut self, error: ClientError) {
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        self.out.clear();
        self.pending.fail(&error);
        self.push_state(State::Failed(error.clone()));
        self.phase = Phase::Ended(error);
    }

    /// Ends the session; pending bytes are still sent.
    pub(crate) fn close(&mut self) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.pending.fail(&ClientError::Closed);
            self.phase = Phase::Ended(ClientError::Closed);
        }
    }

    /// The error that ended the session.
    pub(crate) fn failure(&self) -> Option<&ClientError> {
        match &self.phase {
            Phase::Ended(error) => Some(error),
            _ => None,
        }
    }

    /// Whether there is a connection; at the end it still takes the pending bytes.
    pub(crate) fn has_connection(&self) -> bool {
        matches!(self.phase, Phase::LoggingOn { .. } | Phase::Connected { .. })
    }

    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.phase, Phase::Connected { .. })
    }

    /// Checks the deadlines of the logon and of heartbeats.
    pub(crate) fn check(&mut self, now: Instant) -> Result<(), ClientError> {
        let silence = now.saturating_duration_since(self.last_receive);
        match (&self.phase, self.settings.heartbeat) {
            (Phase::Ended(error), _) => Err(error.clone()),
            (Phase::LoggingOn { until, .. }, _) if *until <= now => {
                let seconds = self.settings.patience.as_secs();
                Err(ClientError::NoAnswer { what: "cannot log on".to_owned(), seconds })
            }
            (Phase::Connected { .. }, Some(heartbeat)) if silence > heartbeat * MISSED_MAX => {
                Err(ClientError::Silent { seconds: silence.as_secs() })
            }
            _ => Ok(()),
        }
    }

    /// Restarts the heartbeat deadline: the client itself had stopped reading.
    pub(crate) fn extend_deadline(&mut self, now: Instant) {
        self.last_receive = now;
    }

    /// Swaps the pending bytes, possibly none, with the buffer `out`.
    pub(crate) fn take_output(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.out.is_empty() && self.next_heartbeat().is_some_and(|due| due <= now) {
            self.write_frame(|out| {
                HeaderWriter::command(out, Command::Heartbeat)
                    .text(Field::Options, "heartbeat")
                    .end();
            });
        }
        out.clear();
        std::mem::swap(&mut self.out, out);
        if !out.is_empty() {
            self.last_send = now;
        }
    }

    /// Deadline of the next heartbeat to send.
    pub(crate) fn next_heartbeat(&self) -> Option<Instant> {
        let heartbeat = self.settings.heartbeat.filter(|_| self.is_connected())?;
        Some(self.last_send + heartbeat)
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.event_bytes -= event.bytes();
        Some(event)
    }

    /// Whether too many bytes of events are unread.
    pub(crate) fn is_full(&self) -> bool {
        self.event_bytes > self.settings.unread_bytes_max
    }

    pub(crate) fn next_state(&mut self) -> Option<State> {
        self.states.pop_front()
    }

    /// Queues a state for the callback.
    fn push_state(&mut self, state: State) {
        if self.settings.watcher.is_some() {
            self.states.push_back(state);
        }
    }

    fn push_event(&mut self, event: Event) {
        self.event_bytes += event.bytes();
        self.events.push_back(event);
    }
}
