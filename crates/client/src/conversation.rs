//! What a client and its server say to one another: bytes in, bytes out, and what they mean.
//!
//! There are no sockets in here, no threads and no clocks: whoever has those tells what happened,
//! and when. So both clients share it, and tests can break connections wherever they like.

mod asking;
mod hearing;
#[cfg(test)]
mod tests;

use crate::backlog::Backlog;
use crate::call::Calls;
use crate::delay::Delay;
use crate::error::ClientError;
use crate::event::{Event, State};
use crate::frames::Frames;
use crate::question::Interest;
use crate::settings::Settings;
use lanecast_wire::command::{Command, Field, HeaderWriter};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

/// So many signs of life may be missed.
const MISSED_MAX: u32 = 3;

/// How far the connection is.
#[derive(Debug)]
enum Phase {
    /// There is none; one is to be made from then on.
    Apart(Instant),
    /// There is one, and the logon is on its way, as a command of this number.
    LoggingOn { command: u64, until: Instant },
    /// The server knows who this is.
    Connected { since: Instant },
    /// There is none, and will be none.
    Over(ClientError),
}

/// What the one who has sockets is to do.
#[derive(Debug)]
pub(crate) enum Next {
    /// Connect to this server.
    Connect(String),
    /// Nothing before then.
    Wait(Instant),
    /// Nothing any more.
    End,
}

/// A subscription that the server is to know, after each connection anew.
#[derive(Debug)]
struct Placed {
    interest: Interest,
    /// Whether the server has accepted it once. Until then its command is a call.
    is_accepted: bool,
}

/// A client's side of the conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    settings: Settings,
    phase: Phase,
    /// Which server is tried, or was last.
    server: usize,
    /// Attempts since the last connection.
    attempts: usize,
    delay: Delay,
    has_been_connected: bool,
    /// What is to be sent on this connection.
    out: Vec<u8>,
    frames: Frames,
    /// When something was last heard, and last said.
    heard: Instant,
    said: Instant,
    /// The number of the last command.
    last: u64,
    /// The number of the last message that was published.
    sequence: u64,
    backlog: Backlog,
    /// How many messages may be lost, as the client has no name.
    unsure: u64,
    /// Messages of which the server said that their numbers were had before.
    duplicates: u64,
    /// Messages of which the server would have nothing, and why: the first of them.
    refused: Option<(u64, String)>,
    calls: Calls,
    placed: BTreeMap<String, Placed>,
    /// Subscriptions that are being placed again, by the numbers of the commands.
    replacing: HashMap<u64, String>,
    events: VecDeque<Event>,
    event_bytes: usize,
    states: VecDeque<State>,
}

impl Conversation {
    /// With a seed for what is random, and a number below all that its messages get.
    pub(crate) fn new(settings: Settings, now: Instant, seed: u64, sequence: u64) -> Self {
        let backlog = Backlog::new(settings.unacknowledged_bytes_max);
        Self {
            settings,
            phase: Phase::Apart(now),
            server: 0,
            attempts: 0,
            delay: Delay::new(seed),
            has_been_connected: false,
            out: Vec::new(),
            frames: Frames::default(),
            heard: now,
            said: now,
            last: 0,
            sequence,
            backlog,
            unsure: 0,
            duplicates: 0,
            refused: None,
            calls: Calls::default(),
            placed: BTreeMap::new(),
            replacing: HashMap::new(),
            events: VecDeque::new(),
            event_bytes: 0,
            states: VecDeque::new(),
        }
    }

    /// How many messages the server has had before, as their numbers tell.
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

    /// What is to be done about the connection when there is none.
    pub(crate) fn next_step(&mut self, now: Instant) -> Next {
        match self.phase {
            Phase::Apart(from) if from <= now => {
                self.note(State::Connecting { server: self.server() });
                Next::Connect(self.server())
            }
            Phase::Apart(from) => Next::Wait(from),
            Phase::LoggingOn { .. } | Phase::Connected { .. } => Next::Wait(now),
            Phase::Over(_) => Next::End,
        }
    }

    /// A connection has been made. False if it is not wanted any more.
    pub(crate) fn opened(&mut self, now: Instant) -> bool {
        if matches!(self.phase, Phase::Over(_)) {
            return false;
        }
        self.frames = Frames::default();
        self.heard = now;
        self.said = now;
        let until = now + self.settings.patience;
        let command = self.log_on();
        self.phase = Phase::LoggingOn { command, until };
        true
    }

    /// The connection has ended, or could not be made.
    pub(crate) fn closed(&mut self, now: Instant, error: ClientError) {
        self.out.clear();
        self.replacing.clear();
        match self.phase {
            Phase::Over(_) => return,
            Phase::Connected { since } => {
                self.attempts = 0;
                let long = self.settings.reconnect.map(|wait| wait.delay_max).unwrap_or_default();
                if now.saturating_duration_since(since) >= long {
                    self.delay.reset();
                }
                if !self.has_name() {
                    self.unsure += self.backlog.len() as u64;
                    self.backlog.clear();
                }
            }
            Phase::LoggingOn { .. } | Phase::Apart(_) => {
                self.attempts += 1;
                self.server = (self.server + 1) % self.settings.servers.len();
            }
        }
        self.calls.interrupt();
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
        let delay = if is_round { self.delay.next(reconnect) } else { Default::default() };
        self.phase = Phase::Apart(now + delay);
        self.note(State::Waiting { delay, error });
    }

    /// It is over.
    pub(crate) fn fail(&mut self, error: ClientError) {
        if matches!(self.phase, Phase::Over(_)) {
            return;
        }
        self.out.clear();
        self.calls.fail(&error);
        self.note(State::Failed(error.clone()));
        self.phase = Phase::Over(error);
    }

    /// Ends well: what is to be sent still is, and nothing else happens.
    pub(crate) fn close(&mut self) {
        if !matches!(self.phase, Phase::Over(_)) {
            self.calls.fail(&ClientError::Closed);
            self.phase = Phase::Over(ClientError::Closed);
        }
    }

    /// Why it is over, if it is.
    pub(crate) fn failure(&self) -> Option<&ClientError> {
        match &self.phase {
            Phase::Over(error) => Some(error),
            _ => None,
        }
    }

    /// Whether there is somebody to write to; what is left at the end still goes there.
    pub(crate) fn has_connection(&self) -> bool {
        matches!(self.phase, Phase::LoggingOn { .. } | Phase::Connected { .. })
    }

    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.phase, Phase::Connected { .. })
    }

    /// Whether the connection is still good: something has come in time.
    pub(crate) fn check(&mut self, now: Instant) -> Result<(), ClientError> {
        let silence = now.saturating_duration_since(self.heard);
        match (&self.phase, self.settings.heartbeat) {
            (Phase::Over(error), _) => Err(error.clone()),
            (Phase::LoggingOn { until, .. }, _) if *until <= now => {
                let seconds = self.settings.patience.as_secs();
                Err(ClientError::NoAnswer { what: "cannot log on".to_owned(), seconds })
            }
            (Phase::Connected { .. }, Some(beat)) if silence > beat * MISSED_MAX => {
                Err(ClientError::Silent { seconds: silence.as_secs() })
            }
            _ => Ok(()),
        }
    }

    /// Silence until now was not the server's: nobody listened.
    pub(crate) fn excuse(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Gives what is to be sent in exchange for an empty buffer; it may be nothing.
    pub(crate) fn take_output(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.out.is_empty() && self.next_beat().is_some_and(|due| due <= now) {
            self.put(|out| {
                HeaderWriter::command(out, Command::Heartbeat).text(Field::Options, "beat").end();
            });
        }
        out.clear();
        std::mem::swap(&mut self.out, out);
        if !out.is_empty() {
            self.said = now;
        }
    }

    /// When something is to be said at the latest.
    pub(crate) fn next_beat(&self) -> Option<Instant> {
        let beat = self.settings.heartbeat.filter(|_| self.is_connected())?;
        Some(self.said + beat)
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.event_bytes -= event.bytes();
        Some(event)
    }

    /// Whether more waits to be read than may.
    pub(crate) fn is_full(&self) -> bool {
        self.event_bytes > self.settings.unread_bytes_max
    }

    pub(crate) fn next_state(&mut self) -> Option<State> {
        self.states.pop_front()
    }

    /// For whoever watches.
    fn note(&mut self, state: State) {
        if self.settings.watcher.is_some() {
            self.states.push_back(state);
        }
    }

    fn tell(&mut self, event: Event) {
        self.event_bytes += event.bytes();
        self.events.push_back(event);
    }
}
