//! The engine: executes commands of clients, without sockets and without a clock of its own.
//! Results and messages go into the clients' send queues.
//!
//! The server's thread owns it, and calls [`Engine::execute`] for each command, [`Engine::on_time`]
//! once per turn, and [`Engine::send`] for each client with bytes to send.
//!
//! # Pausing clients
//!
//! Whether a client's next command is executed depends on values that change at any time, one of
//! them on the journal's thread. So each decision is taken once and kept:
//! [`Engine::continue_or_pause`] decides before a client is read and after each of its commands,
//! and `Client::is_paused` holds the result until [`Engine::resume`] decides again, once per turn.
//! Before the server sleeps, [`Engine::has_progress`] requests a wakeup from the journal and checks
//! paused clients once more.

pub(crate) mod authentication;
pub(crate) mod delete;
pub(crate) mod heartbeats;
pub(crate) mod logon;
pub(crate) mod persistence;
pub(crate) mod publish;
pub(crate) mod query;
pub(crate) mod slow_consumers;
pub(crate) mod state;
pub(crate) mod subscribe;
#[cfg(test)]
mod tests;

use crate::auth::authenticator::Authenticator;
use crate::auth::authorization::authorize;
use crate::auth::password::PasswordResult;
use crate::clients::{Client, Clients, DisconnectReason};
use crate::command::acknowledgement::{CommandResult, ReplyTo};
use crate::command::error::CommandError;
use crate::command::request::{Operation, Request};
use crate::config::server_config::ServerConfig;
use crate::delivery::fanout::Fanout;
use crate::delivery::patterns::Patterns;
use crate::delivery::subscriptions::{SubscriptionIds, Subscriptions};
use crate::engine::slow_consumers::SlowConsumers;
use crate::engine::state::State;
use crate::ids::ClientId;
use crate::stats::counters::Counters;
use crate::stats::log::LogLines;
use crate::time::{Nanos, Now};
use crate::topic::catalog::Catalog;
use crate::topic::configured::CatalogError;
use crate::topic::durable_store::DurableStore;
use crate::topic::sequences::SequenceStore;
use lanecast_wire::command::{Ack, Header};
use std::io::{self, IoSlice};
use std::time::Duration;

/// The content server without its sockets.
#[derive(Debug)]
pub struct Engine {
    pub(crate) state: State,
}

impl Engine {
    /// Creates the configured topics, and restores durable ones. There are no clients yet.
    ///
    /// # Errors
    /// See [`CatalogError`].
    pub fn new(config: ServerConfig) -> Result<Self, CatalogError> {
        let catalog = Catalog::open(&config)?;
        let known = catalog.store().into_iter().flat_map(DurableStore::client_sequences);
        let known = known.map(|(name, client)| (name, client.sequence, client.unix_ns));
        let sequences = SequenceStore::new(&config, known);
        let mut log = LogLines::default();
        for name in &catalog.context.forgotten {
            log.push_always(format!("dropped {name} from disk, as storage.forget says"));
        }
        let state = State {
            auth: Authenticator::default(),
            clients: Clients::new(&config),
            catalog,
            subscriptions: Subscriptions::default(),
            patterns: Patterns::default(),
            fanout: Fanout::default(),
            matches: SubscriptionIds::default(),
            sequences,
            logons: Vec::new(),
            querying: Vec::new(),
            deleting: Vec::new(),
            slow_consumers: SlowConsumers::new(&config),
            counters: Counters::default(),
            log,
            config,
        };
        Ok(Self { state })
    }

    /// Adds a client; `None` if the limit of clients is reached.
    pub fn connect(&mut self, now: Nanos) -> Option<ClientId> {
        let State { clients, counters, .. } = &mut self.state;
        if clients.is_full() {
            counters.rejected_clients += 1;
            return None;
        }
        counters.connected += 1;
        Some(clients.insert(now))
    }

    /// Removes a client with its subscriptions and everything that waits for it.
    pub fn disconnect(&mut self, id: ClientId) {
        let state = &mut self.state;
        let Some(client) = state.clients.remove(id) else { return };
        subscribe::end(state, id, client.subscriptions.into_values(), true);
        if let Some(store) = state.catalog.store_mut() {
            store.remove_client(id);
        }
        state.auth.remove_client(id);
        state.logons.retain(|logon| logon.client != id);
    }

    /// Ends the subscriptions and queries of a client that can be sent nothing any more; its
    /// commands are executed all the same.
    pub(crate) fn end_deliveries(&mut self, id: ClientId) {
        let Some(client) = self.state.clients.get_mut(id) else { return };
        let subscriptions = std::mem::take(&mut client.subscriptions);
        subscribe::end(&mut self.state, id, subscriptions.into_values(), true);
    }

    /// Executes the command in the payload of a client's frame.
    pub fn execute(&mut self, now: Now, id: ClientId, payload: &[u8]) {
        let state = &mut self.state;
        let Some(client) = state.clients.get_mut(id) else { return };
        client.last_heard = now.monotonic_ns;
        if client.is_leaving {
            return;
        }
        if publish::publish_cached(state, now, id, payload) {
            return state.charge_tried_patterns(id);
        }
        let Ok(header) = Header::parse(payload) else {
            return state.clients.disconnect(id, DisconnectReason::InvalidCommand);
        };
        let request = Request::parse(&header);
        // Before the password, which another version may send in another way.
        if let Err(error @ CommandError::ProtocolVersion(_)) = &request.operation {
            return logon::refuse_version(state, id, &request.reply_to, error);
        }
        if !authentication::authenticate(state, id, &request, payload)
            || self.defer_for_journal(id, &request, payload)
        {
            return;
        }
        self.execute_request(now, id, request);
        self.state.charge_tried_patterns(id);
    }

    /// Executes a request, and writes its acknowledgements.
    fn execute_request(&mut self, now: Now, id: ClientId, request: Request<'_>) {
        let state = &mut self.state;
        let Request { reply_to, operation, is_persistable } = request;
        state.counters.commands += 1;
        state.reply(id, &reply_to, |to, out| to.success(Ack::Received, out, |header| header));
        // Known before the operation is consumed: what a `persisted` acknowledgement needs.
        let sequence = operation.as_ref().ok().and_then(Operation::sequence);
        let is_durable = is_persistable
            && reply_to.acks.has(Ack::Persisted)
            && operation.as_ref().is_ok_and(|operation| match operation {
                Operation::Flush => true,
                operation => self.writes_durable_topic(id, operation),
            });
        let state = &mut self.state;
        let result = operation.and_then(|operation| dispatch(state, now, id, &reply_to, operation));
        match &result {
            // The empty group is a result: sent whether acknowledgements are wanted or not.
            Ok(result @ CommandResult::NoRecords) => {
                state.clients.reply(id, |out| reply_to.ack(result, out));
            }
            Ok(result) => state.reply(id, &reply_to, |to, out| to.ack(result, out)),
            Err(error) => {
                state.counters.refused += 1;
                state.reply(id, &reply_to, |to, out| to.nack(error, out));
            }
        }
        let result = match result {
            Ok(CommandResult::Deferred) => return,
            Ok(result) => Ok(matches!(result, CommandResult::Duplicate { .. })),
            Err(error) => Err(error),
        };
        if is_persistable {
            persistence::defer_ack(state, id, &reply_to, is_durable, sequence, result);
        }
    }

    fn writes_durable_topic(&self, id: ClientId, operation: &Operation<'_>) -> bool {
        let State { clients, catalog, .. } = &self.state;
        let topic = operation.written_topic().zip(clients.get(id));
        topic.is_some_and(|(topic, client)| catalog.is_durable_name(client.kind, topic))
    }

    /// Holds back a write to a congested journal by a client that has not written durably before;
    /// one that has was paused before its command was read. Whether it is held back.
    fn defer_for_journal(&mut self, id: ClientId, request: &Request<'_>, payload: &[u8]) -> bool {
        let Ok(operation) = &request.operation else { return false };
        if operation.written_topic().is_none()
            || !self.state.catalog.is_congested()
            || !self.writes_durable_topic(id, operation)
        {
            return false;
        }
        let Some(client) = self.state.clients.get_mut(id) else { return false };
        client.writes_durably = true;
        client.deferred = Some(payload.into());
        true
    }

    /// Executes the command that was held back, if there is one. The client is being resumed.
    pub(crate) fn execute_deferred(&mut self, now: Now, id: ClientId) {
        let client = self.state.clients.get_mut(id);
        if let Some(payload) = client.and_then(|client| client.deferred.take()) {
            self.execute(now, id, &payload);
        }
    }

    /// Decides whether a client's next command is executed. If not, the client is paused: the
    /// server does not read from it until it [resumes](Self::resume).
    pub(crate) fn continue_or_pause(&mut self, id: ClientId) -> bool {
        let can_execute = self.can_execute(id);
        let Some(client) = self.state.clients.get(id) else { return true };
        let continues = can_execute && client.deferred.is_none();
        if !continues {
            self.state.clients.pause(id);
        }
        continues
    }

    /// Whether a client is paused.
    pub(crate) fn is_paused(&self, id: ClientId) -> bool {
        self.state.clients.get(id).is_some_and(|client| client.is_paused)
    }

    /// Sets whether a client leaves too many pongs unread, which pauses it.
    pub(crate) fn set_unread_pongs(&mut self, id: ClientId, are_unread: bool) {
        let Some(client) = self.state.clients.get_mut(id) else { return };
        client.has_unread_pongs = are_unread;
        if are_unread {
            self.continue_or_pause(id);
        }
    }

    /// Decides whether a paused client resumes. If so, its [deferred
    /// command](Self::execute_deferred) and frames that were read before come first.
    pub(crate) fn resume(&mut self, id: ClientId) -> bool {
        let can_execute = self.can_execute(id);
        self.state.clients.resume(id, can_execute)
    }

    /// Whether paused clients, deletions or acknowledgements can continue at once. If not, the
    /// journal will wake the server.
    pub(crate) fn has_progress(&self) -> bool {
        let State { catalog, clients, logons, deleting, .. } = &self.state;
        if let Some(store) = catalog.store()
            && (store.is_awaited() || !clients.paused().is_empty() || !deleting.is_empty())
        {
            // Before all checks: progress after them causes a wakeup.
            store.request_wakeup();
            let can_log_on = || logons.iter().any(|logon| store.is_persisted(logon.position));
            if store.has_progress() || can_log_on() {
                return true;
            }
        }
        if !deleting.is_empty() && !catalog.is_congested() {
            return true;
        }
        clients.paused().iter().any(|id| self.can_execute(*id))
    }

    /// Whether a client's next command can be executed now. Two calls in a row may differ, since
    /// the journal advances on its own thread.
    pub(crate) fn can_execute(&self, id: ClientId) -> bool {
        let State { clients, catalog, config, .. } = &self.state;
        let is_blocked = |client: &Client| {
            client.auth.is_checking()
                || client.is_busy(config.queries_max)
                || client.has_unread_replies()
                || client.writes_durably && catalog.is_congested()
        };
        !clients.get(id).is_some_and(is_blocked)
    }

    /// Whether a client's password is being checked.
    pub(crate) fn is_checking_password(&self, id: ClientId) -> bool {
        self.state.clients.get(id).is_some_and(|client| client.auth.is_checking())
    }

    /// Whether a client is authenticated, or does not have to be.
    pub(crate) fn is_authenticated(&self, id: ClientId) -> bool {
        let client = self.state.clients.get(id);
        !self.state.auth.requires_logon()
            || client.is_some_and(|client| client.auth.permissions.is_some())
    }

    /// Continues a logon with the result of its password check.
    pub(crate) fn finish_password_check(&mut self, now: Now, result: &PasswordResult) {
        let id = result.client;
        let Some(payload) = authentication::finish_check(&mut self.state, now, result) else {
            return;
        };
        self.execute(now, id, &payload);
        // A logon refused for another reason may be repeated, with a password again.
        let client = self.state.clients.get_mut(id);
        if let Some(client) = client.filter(|client| !client.has_logged_on) {
            client.auth.permissions = None;
        }
    }

    /// Work of each turn: heartbeats, expiry, running queries and deletions, acknowledgements;
    /// whether there is more to do at once.
    pub fn on_time(&mut self, now: Now) -> bool {
        let state = &mut self.state;
        for index in 0..state.catalog.sow_ids().len() {
            let topic = state.catalog.sow_ids()[index];
            if state.catalog.is_due(topic, now) {
                // Cannot fail: the topic is a SOW topic.
                let _result = state.with_sow(topic, now, |topic, context, sender| {
                    topic.expire_and_flush(now.unix_ns, context, sender);
                    Ok(())
                });
            }
        }
        publish::expire_names(state, now);
        heartbeats::check(&mut state.clients, now.monotonic_ns);
        let is_querying = query::advance(state, now);
        subscribe::end_failed(state);
        persistence::send_acks(state);
        logon::advance(state, now);
        let is_writing = state.catalog.advance_checkpoint();
        while let Some(line) = state.catalog.store_mut().and_then(DurableStore::next_log_line) {
            state.log.push_always(line);
        }
        if let Some(line) = state.catalog.context.views.take_log_line() {
            state.log.push(line);
        }
        let was_over_cost = state.clients.reset_costs();
        let is_deleting = delete::advance(state, now);
        let is_removing = subscribe::remove_ended(state, subscribe::REMOVE_STEP);
        let State { catalog, clients, .. } = state;
        let is_searching =
            catalog.remove_idle(now.monotonic_ns, |removed| clients.drop_cached_headers(removed));
        is_querying || was_over_cost || is_writing || is_deleting || is_removing || is_searching
    }

    /// When [`on_time`](Self::on_time) is due at the latest.
    pub fn next_deadline(&self, now: Now) -> Option<Nanos> {
        let state = &self.state;
        let clients = state.clients.iter().filter(|client| !client.is_leaving);
        let heartbeat = clients.filter_map(|client| Some(client.heartbeat?.next)).min();
        let topics = state.catalog.next_due(now);
        let store = state.catalog.store().and_then(|store| store.next_deadline(now.monotonic_ns));
        let ended = (state.subscriptions.ended_len() > 0).then_some(now.monotonic_ns);
        let idle = state.catalog.next_idle_search(now.monotonic_ns);
        let logon = state.logons.iter().map(|logon| logon.deadline).min();
        let slow = state.slow_consumers.due();
        [heartbeat, topics, store, ended, idle, logon, slow].into_iter().flatten().min()
    }

    /// Enforces the limits of slow consumers. Called between rounds.
    pub(crate) fn enforce_limits(&mut self, now: Nanos) {
        let State { slow_consumers, clients, .. } = &mut self.state;
        slow_consumers.enforce(clients, now);
    }

    /// Passes a client's send queue to `write`; whether it is empty then.
    pub(crate) fn send(
        &mut self,
        id: ClientId,
        write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> bool {
        self.state.clients.send(id, self.state.fanout.arena(), write)
    }

    /// Takes a client with bytes to send.
    pub fn next_dirty(&mut self) -> Option<ClientId> {
        self.state.clients.pop_dirty()
    }

    /// Whether the round should end, to send before more is read.
    pub(crate) fn is_round_full(&self) -> bool {
        self.state.clients.is_over_memory() || self.state.fanout.is_round_full()
    }

    /// Ends the round: all dirty clients were sent to. Whether queries that
    /// waited for capacity may continue.
    pub fn end_round(&mut self) -> bool {
        self.state.fanout.end_round();
        self.state.clients.end_round()
    }

    /// Takes a client to disconnect.
    pub fn next_disconnect(&mut self) -> Option<(ClientId, DisconnectReason)> {
        let State { clients, counters, log, .. } = &mut self.state;
        while let Some((id, reason)) = clients.pop_slow_consumer() {
            counters.slow_disconnects += 1;
            let name = clients.get(id).and_then(|client| client.name.clone()).unwrap_or_default();
            let named = if name.is_empty() { String::new() } else { format!(" {name:?}") };
            log.push(format!("client {}{named} is disconnected: {reason}", id.0));
        }
        clients.pop_disconnect()
    }

    /// Waits until all changes are durable, for at most `limit`, and acknowledges them.
    pub(crate) fn wait_durable(&mut self, limit: Duration) {
        if let Some(store) = self.state.catalog.store() {
            store.wait_durable(limit);
        }
        persistence::send_acks(&mut self.state);
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        let State { clients, catalog, .. } = &self.state;
        let store = catalog.store().map(DurableStore::counters).unwrap_or_default();
        let offline = clients.iter().filter(|client| client.queue.is_offline()).count();
        Counters {
            delivered: self.state.fanout.delivered(),
            not_stored: store.not_stored,
            disk_full: store.disk_full,
            disk_failed: store.disk_failed,
            checkpoints_failed: store.checkpoints_failed,
            view_errors: catalog.context.views.errors(),
            went_offline: clients.offline_limits.went_offline,
            offline: offline as u64,
            offline_bytes: clients.offline_limits.disk_bytes,
            ..self.state.counters
        }
    }
}

/// Executes an operation.
fn dispatch(
    state: &mut State,
    now: Now,
    id: ClientId,
    reply_to: &ReplyTo<'_>,
    operation: Operation<'_>,
) -> Result<CommandResult, CommandError> {
    if state.auth.requires_logon()
        && let Some(client) = state.clients.get(id)
    {
        authorize(&operation, &client.auth)?;
    }
    match operation {
        Operation::Publish(request) => return publish::publish(state, now, id, &request),
        Operation::Logon(request) => return logon::log_on(state, now, id, reply_to, &request),
        Operation::Subscribe(request) => {
            return subscribe::subscribe(state, now, id, reply_to, &request);
        }
        Operation::Unsubscribe(names) => subscribe::unsubscribe(state, id, &names),
        Operation::Query(request) => return query::query(state, now, id, reply_to, &request),
        Operation::Delete(request) => return delete::delete(state, now, id, reply_to, *request),
        // Commands are executed in order, so all earlier ones are complete.
        Operation::Flush => {}
        Operation::Heartbeat(request) => {
            heartbeats::set(&mut state.clients, now.monotonic_ns, id, request)
        }
    }
    Ok(CommandResult::Done)
}
