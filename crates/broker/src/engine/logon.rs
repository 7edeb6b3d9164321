//! Executes logons. A logon is acknowledged with the last sequence number of the client's name, and
//! the client may then discard all messages up to it. So the acknowledgement waits until those are
//! on disk; meanwhile the client is paused, and no other client waits for it.

use crate::clients::DisconnectReason;
use crate::command::acknowledgement::{CommandResult, ReplyTo};
use crate::command::error::CommandError;
use crate::command::request::LogonRequest;
use crate::engine::state::{PendingLogon, State};
use crate::ids::ClientId;
use crate::names::{NAME_MAX, is_name};
use crate::time::Now;
use crate::topic::durable_store::DurableStore;
use std::sync::Arc;

/// Logs a client on.
pub(crate) fn log_on(
    state: &mut State,
    now: Now,
    id: ClientId,
    reply_to: &ReplyTo<'_>,
    request: &LogonRequest<'_>,
) -> Result<CommandResult, CommandError> {
    let Some(client) = state.clients.get_mut(id) else { return Ok(CommandResult::Done) };
    // AMPS allows one logon per connection: the message type and the name stay fixed after it.
    if client.has_logged_on {
        return Err(CommandError::LoggedOn);
    }
    // Name and message type may change, and with them the topic of the cached header.
    client.cached_header = None;
    client.kind = request.kind.clone()?.unwrap_or(client.kind);
    let user = request.user.as_deref();
    client.user = user.map(Box::from);
    let name = &*request.client_name;
    let mut sequence_key = None;
    if !name.is_empty() {
        take_name(state, id, name, user)?;
        sequence_key = Some(key_of_name(state, user, name));
    }
    let sequence = sequence_key.as_deref().and_then(|key| state.sequences.last(key)).unwrap_or(0);
    if let Some(client) = state.clients.get_mut(id) {
        client.has_logged_on = true;
        client.sequence_key = sequence_key;
    }
    Ok(acknowledge_or_wait(state, now, id, reply_to, request, sequence))
}

/// Refuses a logon in another version of the protocol, and disconnects the client: nothing else
/// that it sends would be understood.
pub(crate) fn refuse_version(
    state: &mut State,
    id: ClientId,
    reply_to: &ReplyTo<'_>,
    error: &CommandError,
) {
    state.counters.refused += 1;
    state.reply(id, reply_to, |reply_to, out| reply_to.nack(error, out));
    state.clients.disconnect(id, DisconnectReason::OtherVersion);
}

/// The key of a client's sequence number. Where users are configured it includes the user, so that
/// one user cannot use up the numbers of another.
fn key_of_name(state: &State, user: Option<&str>, name: &str) -> Arc<str> {
    match user.filter(|_| state.auth.requires_logon()) {
        // Users must not see or advance one another's sequence numbers, even under equal client
        // names.
        Some(user) => format!("{user}\n{name}").into(),
        None => name.into(),
    }
}

/// Gives a name to a connection. A new connection of the same user takes it from the old one, which
/// may be broken without the server's knowledge.
fn take_name(
    state: &mut State,
    id: ClientId,
    name: &str,
    user: Option<&str>,
) -> Result<(), CommandError> {
    if !is_name(name) {
        return Err(CommandError::ClientName { max: NAME_MAX });
    }
    if let Some(old) = state.clients.named(name) {
        let is_same_user = state.clients.get(old).is_some_and(|old| old.user.as_deref() == user);
        if !is_same_user {
            return Err(CommandError::NameInUse(name.to_owned()));
        }
        // A client that lost its connection can return before the server notices the loss.
        state.clients.disconnect(old, DisconnectReason::NameTaken);
    }
    state.clients.set_name(id, name);
    Ok(())
}

/// Acknowledges a logon at once if the client's messages are durable, otherwise later.
fn acknowledge_or_wait(
    state: &mut State,
    now: Now,
    id: ClientId,
    reply_to: &ReplyTo<'_>,
    request: &LogonRequest<'_>,
    sequence: u64,
) -> CommandResult {
    let (name, states_version) = (Box::from(&*request.client_name), request.states_version);
    // The logon's acknowledgement names the last number the publisher need not send again, so that
    // message must be on disk first.
    let behind = |store: &&DurableStore| !store.is_persisted(store.last_position());
    let Some(store) = state.catalog.store().filter(behind).filter(|_| sequence > 0) else {
        return CommandResult::LoggedOn { name, sequence, states_version };
    };
    let timeout = u64::try_from(state.config.handshake.as_nanos()).unwrap_or(u64::MAX);
    let deadline = now.monotonic_ns.saturating_add(timeout);
    let (position, reply_to) = (store.last_position(), reply_to.to_owned());
    state.logons.push(PendingLogon {
        client: id,
        reply_to,
        name,
        sequence,
        states_version,
        position,
        deadline,
    });
    if let Some(client) = state.clients.get_mut(id) {
        // Pauses the client: a publisher knows what to send again once it has the answer.
        client.is_logging_on = true;
    }
    CommandResult::Deferred
}

/// Acknowledges waiting logons whose messages are durable. Disconnects clients that waited for too
/// long: they connect again, and still have their messages.
pub(crate) fn advance(state: &mut State, now: Now) {
    // Logons that still wait are pushed back in the same order.
    for logon in std::mem::take(&mut state.logons) {
        let id = logon.client;
        if state.catalog.store().is_none_or(|store| store.is_persisted(logon.position)) {
            if let Some(client) = state.clients.get_mut(id) {
                client.is_logging_on = false;
            }
            let PendingLogon { name, sequence, states_version, reply_to, .. } = logon;
            let result = CommandResult::LoggedOn { name, sequence, states_version };
            state.reply(id, &reply_to, |reply_to, out| reply_to.ack(&result, out));
        } else if logon.deadline <= now.monotonic_ns {
            state.clients.disconnect(id, DisconnectReason::NotPersisted);
        } else {
            state.logons.push(logon);
        }
    }
}
