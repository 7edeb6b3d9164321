//! The client's session as a state machine: bytes in, bytes out, and events.
//!
//! It has no sockets, threads or clocks: the blocking client's threads and the asynchronous
//! client's tasks drive it and pass the time. Tests can cut connections at any byte.

mod command_writer;
mod event_queue;
mod phase;
mod published;
mod reconnection;
mod subscriptions;
#[cfg(test)]
mod tests;

use self::command_writer::{CommandWriter, build_frame};
use self::event_queue::EventQueue;
pub(crate) use self::phase::Next;
use self::phase::Phase;
use self::published::Published;
use self::reconnection::Reconnection;
use self::subscriptions::{Subscriptions, text};
use crate::error::ClientError;
use crate::event::{Event, Record, State};
use crate::frames::Frames;
use crate::pending::{Answer, PendingRequest, PendingRequests};
use crate::publication::{Deletion, Publication};
use crate::query::{Query, SubscribeRequest};
use crate::settings::Settings;
use lanecast_wire::command::{
    Ack, Acks, Command, Field, Header, HeaderWriter, PROTOCOL_VERSION, Records,
};
use std::collections::VecDeque;
use std::time::Instant;

/// Missed heartbeats after which the server counts as silent.
const MISSED_MAX: u32 = 3;

/// The session of a client across its connections.
#[derive(Debug)]
pub(crate) struct Session {
    settings: Settings,
    phase: Phase,
    reconnection: Reconnection,
    writer: CommandWriter,
    frames: Frames,
    /// Times of the last received and sent bytes.
    last_receive: Instant,
    last_send: Instant,
    published: Published,
    pending: PendingRequests,
    subscriptions: Subscriptions,
    events: EventQueue,
    states: VecDeque<State>,
}

impl Session {
    /// A session with a seed for jitter and a sequence number below those of its messages.
    pub(crate) fn new(settings: Settings, now: Instant, seed: u64, sequence: u64) -> Self {
        Self {
            phase: Phase::Disconnected(now),
            reconnection: Reconnection::new(seed),
            writer: CommandWriter::default(),
            frames: Frames::default(),
            last_receive: now,
            last_send: now,
            published: Published::new(&settings, sequence),
            pending: PendingRequests::default(),
            subscriptions: Subscriptions::default(),
            events: EventQueue::new(settings.unread_bytes_max),
            states: VecDeque::new(),
            settings,
        }
    }

    /// Number of messages that the server acknowledged as duplicates.
    pub(crate) fn duplicates(&self) -> u64 {
        self.published.duplicates()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn server(&self) -> String {
        self.reconnection.server(&self.settings)
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
        let command = self.writer.log_on(&self.settings.identity);
        self.phase = Phase::LoggingOn { command, until };
        true
    }

    /// Handles the end of a connection or a failed attempt.
    pub(crate) fn closed(&mut self, now: Instant, error: ClientError) {
        self.writer.out.clear();
        self.subscriptions.connection_lost();
        match self.phase {
            Phase::Ended(_) => return,
            Phase::Connected { since } => {
                let lasted = now.saturating_duration_since(since);
                self.reconnection.disconnected(&self.settings, lasted);
                self.published.connection_lost();
            }
            Phase::LoggingOn { .. } | Phase::Disconnected(_) => {
                self.reconnection.failed(&self.settings);
            }
        }
        self.pending.connection_lost();
        let Some(backoff) = self.reconnection.next_delay(&self.settings) else {
            return self.fail(error);
        };
        self.phase = Phase::Disconnected(now + backoff);
        self.push_state(State::Waiting { backoff, error });
    }

    /// Ends the session with an error.
    pub(crate) fn fail(&mut self, error: ClientError) {
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        self.writer.out.clear();
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

    /// Whether the application has closed the session: its last bytes are still to be sent.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Ended(ClientError::Closed))
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
        let is_due = self.next_heartbeat().is_some_and(|due| due <= now);
        if self.writer.out.is_empty() && is_due {
            self.writer.heartbeat("heartbeat");
        }
        out.clear();
        std::mem::swap(&mut self.writer.out, out);
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
        self.events.pop()
    }

    /// Whether too many bytes of events are unread.
    pub(crate) fn is_full(&self) -> bool {
        self.events.is_full()
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

    /// Publishes a message, now or with the next connection.
    ///
    /// # Errors
    /// If it exceeds the limit or an earlier one was refused; it is then not published.
    pub(crate) fn publish(&mut self, publication: &Publication<'_>) -> Result<(), ClientError> {
        self.take_refusal()?;
        let is_connected = self.is_connected();
        self.published.publish(publication, &mut self.writer, is_connected)
    }

    /// Whether the server has acknowledged all published messages.
    ///
    /// # Errors
    /// If it refused one, or some may be lost.
    pub(crate) fn is_flushed(&mut self) -> Result<bool, ClientError> {
        self.take_refusal()?;
        Ok(self.published.is_flushed())
    }

    /// Returns the refusal or possible loss of earlier messages, once.
    pub(crate) fn take_refusal(&mut self) -> Result<(), ClientError> {
        self.published.take_refusal()?;
        self.failure().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Subscribes. Returns the command id, for its answer, and the subscription's name.
    pub(crate) fn subscribe(&mut self, request: SubscribeRequest) -> (u64, String) {
        let name = self.writer.peek_id().to_string();
        let kind = request.command();
        let command = self.request("cannot subscribe", kind, Ack::Processed, &[], |header| {
            request.write(header, &name)
        });
        self.subscriptions.insert(name.clone(), request);
        (command, name)
    }

    /// Ends a subscription; its later events are dropped.
    pub(crate) fn unsubscribe(&mut self, name: &str) {
        if self.subscriptions.remove(name) && self.is_connected() {
            self.writer.unsubscribe(name);
        }
    }

    /// Queries records.
    pub(crate) fn query(&mut self, topic: &str, query: &Query) -> u64 {
        self.request("cannot query", Command::Sow, Ack::Completed, &[], |header| {
            query.write(header.text(Field::Topic, topic), Vec::new())
        })
    }

    /// Deletes records.
    pub(crate) fn delete(&mut self, topic: &str, deletion: &Deletion<'_>) -> u64 {
        self.request("cannot delete", Command::SowDelete, Ack::Stats, deletion.body(), |header| {
            deletion.write(header.text(Field::Topic, topic))
        })
    }

    /// Takes the answer to a command, once it is complete.
    pub(crate) fn take_answer(&mut self, command: u64) -> Option<Result<Answer, ClientError>> {
        self.pending.take(command)
    }

    /// Drops a request that its caller no longer waits for.
    pub(crate) fn abandon(&mut self, command: u64) {
        self.pending.abandon(command);
    }

    /// Sends a request, now or with the next connection; returns its command id.
    fn request(
        &mut self,
        what: &'static str,
        command: Command,
        ack: Ack,
        body: &[u8],
        fill: impl FnOnce(HeaderWriter<'_>) -> HeaderWriter<'_>,
    ) -> u64 {
        let id = self.writer.next_id();
        let frame = build_frame(|out| {
            let header = HeaderWriter::command(out, command).number(Field::CommandId, id);
            fill(header).acks(Acks::NONE.with(ack)).end();
            out.extend_from_slice(body);
        });
        let done = self.failure().map(|error| Err(error.clone()));
        let (may_repeat, answer) = (command != Command::SowDelete, Answer::default());
        self.pending.insert(
            id,
            PendingRequest { what, ack, frame, may_repeat, is_sent: false, answer, done },
        );
        if self.is_connected() {
            self.pending.send(&mut self.writer.out);
        }
        id
    }

    /// Repeats the state of the session after a logon. Subscriptions come first, so that they match
    /// this client's own messages; then unacknowledged messages; then pending requests.
    fn resume(&mut self) {
        if let Some(heartbeat) = self.settings.heartbeat {
            self.writer.heartbeat(&format!("start,{}", heartbeat.as_secs()));
        }
        self.subscriptions.resume(&mut self.writer);
        self.published.resume(&mut self.writer);
        self.pending.send(&mut self.writer.out);
    }

    /// Processes bytes of the connection.
    ///
    /// # Errors
    /// If they are invalid, the logon is refused, or its deadline has passed: the caller must close
    /// the connection.
    pub(crate) fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<(), ClientError> {
        self.last_receive = now;
        let mut frames = std::mem::take(&mut self.frames);
        let consumed = frames.take(bytes, |payload| self.process(now, payload));
        self.frames = frames;
        consumed?;
        // Bytes other than the logon's answer, such as heartbeats, do not extend its deadline.
        self.check(now)
    }

    fn process(&mut self, now: Instant, payload: &[u8]) -> Result<(), ClientError> {
        let header = Header::parse(payload)?;
        match header.command()? {
            Command::Ack => self.acknowledged(now, &header)?,
            Command::Publish | Command::DeltaPublish => {
                if let Some(message) = self.subscriptions.message(&header)? {
                    self.events.push(Event::Message(message));
                }
            }
            Command::Oof => {
                if let Some(message) = self.subscriptions.message(&header)? {
                    let reason = text(&header, Field::Reason).unwrap_or_default();
                    self.events.push(Event::OutOfFocus { message, reason });
                }
            }
            Command::Sow => self.records(&header)?,
            Command::GroupEnd => {
                let subscription = text(&header, Field::QueryId).unwrap_or_default();
                if self.subscriptions.contains(&subscription) {
                    self.events.push(Event::Current { subscription });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn records(&mut self, header: &Header<'_>) -> Result<(), ClientError> {
        let subscription = text(header, Field::QueryId).unwrap_or_default();
        let query =
            subscription.parse().ok().filter(|_| !self.subscriptions.contains(&subscription));
        for record in Records::new(header.body()) {
            let (header, body) = record?;
            let key = header.number(Field::SowKey)?.unwrap_or(0);
            let record = Record { key, body: body.to_vec() };
            if self.subscriptions.contains(&subscription) {
                self.events.push(Event::Record { subscription: subscription.clone(), record });
            } else if let Some(command) = query {
                self.pending.add_record(command, record, self.settings.unread_bytes_max);
            }
        }
        Ok(())
    }

    fn acknowledged(&mut self, now: Instant, header: &Header<'_>) -> Result<(), ClientError> {
        let has_failed = header.text(Field::Status).as_deref() == Some("failure");
        let reason = text(header, Field::Reason).unwrap_or_else(|| "no reason".to_owned());
        let is_duplicate = !has_failed && reason.starts_with("duplicate");
        let reason = has_failed.then_some(reason);
        let Some(command) = header.number(Field::CommandId)? else {
            // A TLS server refuses a client without TLS with an acknowledgement that has no command
            // id.
            if reason.is_some() && matches!(self.phase, Phase::LoggingOn { .. }) {
                self.logged_on(now, reason, 0);
                return Ok(());
            }
            // All messages up to this sequence number are persisted.
            if let Some(sequence) = header.number(Field::Sequence)? {
                self.published.acknowledge_sequence(sequence);
            }
            return Ok(());
        };
        if let Phase::LoggingOn { command: logon, .. } = self.phase {
            if logon == command {
                let sequence = header.number(Field::Sequence)?.unwrap_or(0);
                // A server that leaves it out speaks the first version.
                let server = header.number(Field::ProtocolVersion)?.unwrap_or(1);
                if reason.is_none() && server != PROTOCOL_VERSION {
                    self.fail(ClientError::ProtocolVersion { server });
                } else {
                    self.logged_on(now, reason, sequence);
                }
            }
        } else if !self.published.acknowledge(command, is_duplicate, reason.as_ref()) {
            match self.subscriptions.resumed(command, reason) {
                Ok(event) => event.into_iter().for_each(|event| self.events.push(event)),
                Err(reason) => self.answered(command, header, reason)?,
            }
        }
        Ok(())
    }

    /// Handles the answer to a request, or the late failure of a subscription's query.
    fn answered(
        &mut self,
        command: u64,
        header: &Header<'_>,
        reason: Option<String>,
    ) -> Result<(), ClientError> {
        if let Some(is_refused) = self.pending.acknowledge(command, header, reason.clone())? {
            self.subscriptions.answered(command, is_refused);
        } else if let Some(reason) = reason {
            let event = self.subscriptions.query_failed(header, reason);
            event.into_iter().for_each(|event| self.events.push(event));
        }
        Ok(())
    }

    /// Handles the answer to the logon: the server has all messages up to `sequence`.
    fn logged_on(&mut self, now: Instant, reason: Option<String>, sequence: u64) {
        if let Some(reason) = reason {
            return self.fail(ClientError::Refused { what: "cannot log on".to_owned(), reason });
        }
        if !self.published.logged_on(sequence, self.reconnection.has_been_connected()) {
            let name = self.settings.identity.name.clone();
            return self.fail(ClientError::NameTaken { name });
        }
        self.reconnection.connected();
        self.phase = Phase::Connected { since: now };
        self.push_state(State::Connected { server: self.server() });
        self.resume();
    }
}
