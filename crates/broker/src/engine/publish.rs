//! Executes publish commands, and decides which sequence numbers are duplicates.

use crate::clients::CachedHeader;
use crate::command::acknowledgement::CommandResult;
use crate::command::error::CommandError;
use crate::command::request::PublishRequest;
use crate::delivery::fanout::MessageSender;
use crate::engine::state::State;
use crate::ids::{ClientId, TopicId};
use crate::time::Now;
use lanecast_sow::Publication;

/// Publishes a payload whose header is identical to the client's last one, without parsing it;
/// whether it is. Most publishers send the same header again and again.
pub(crate) fn publish_cached(state: &mut State, now: Now, id: ClientId, payload: &[u8]) -> bool {
    let Some(client) = state.clients.get_mut(id) else { return false };
    // Taken for the duration of the call, so that the state can be borrowed as a whole.
    let Some(cached) = client.cached_header.take() else { return false };
    // Publishers repeat one header: comparing its bytes replaces parsing, authorization and the
    // topic's lookup.
    let body = payload.strip_prefix(&*cached.header);
    if let Some(bytes) = body {
        state.counters.commands += 1;
        state.counters.published += 1;
        let client = cached.publisher.as_deref().unwrap_or_default();
        let publication = Publication { client, ..Publication::of(bytes) };
        let result = deliver(state, cached.topic, &publication, false, now, None);
        // Such a header has no command id, so no acknowledgement was asked for.
        state.counters.refused += u64::from(result.is_err());
    }
    if let Some(client) = state.clients.get_mut(id) {
        client.cached_header = Some(cached);
    }
    body.is_some()
}

/// Publishes a message, or merges it into its record.
pub(crate) fn publish(
    state: &mut State,
    now: Now,
    id: ClientId,
    request: &PublishRequest<'_>,
) -> Result<CommandResult, CommandError> {
    state.counters.published += 1;
    let PublishRequest { topic: name, is_delta, sequence, .. } = request;
    // Before the topic is created: a repeated message creates none.
    if is_duplicate(state, id, *sequence, now)? {
        return Ok(CommandResult::Duplicate { is_delete: false });
    }
    let Some(client) = state.clients.get(id) else { return Ok(CommandResult::Done) };
    let (kind, publisher) = (client.kind, client.name.clone());
    let sequence_key = client.sequence_key.clone();
    let topic = match is_delta {
        // A delta needs a record to merge into, so it never creates a transient topic.
        true => state.catalog.find_sow(kind, name)?,
        false => state.find_or_create_topic(id, kind, name)?,
    };
    if state.catalog.is_durable(topic)
        && let Some(client) = state.clients.get_mut(id)
    {
        client.writes_durably = true;
    }
    let numbered = sequence_key.as_deref().zip(*sequence);
    // The number goes into the journal with its message, so that both survive a crash or neither.
    let numbered = numbered.filter(|_| state.sequences.is_enabled());
    let publication = Publication {
        bytes: request.payload,
        key: request.sow_key.as_deref(),
        lifetime: request.lifetime,
        client: publisher.as_deref().unwrap_or_default(),
        client_sequence: numbered,
    };
    let correlation_id = request.correlation_id.as_deref();
    let result = deliver(state, topic, &publication, *is_delta, now, correlation_id);
    // The publisher may send again what the journal did not accept.
    if let Some((key, sequence)) = numbered
        && !matches!(result, Err(CommandError::NotStored(_)))
    {
        state.sequences.record(key, sequence, now.monotonic_ns);
    }
    // Cached only after a success: topic and permission are known to be right then.
    result?;
    if let Some(header) = request.cacheable_header
        && let Some(client) = state.clients.get_mut(id)
    {
        let header = header.into();
        client.cached_header = Some(Box::new(CachedHeader { header, topic, publisher }));
    }
    Ok(CommandResult::Done)
}

/// Publishes to a topic and delivers to its subscribers.
fn deliver(
    state: &mut State,
    topic: TopicId,
    publication: &Publication<'_>,
    is_delta: bool,
    now: Now,
    correlation_id: Option<&str>,
) -> Result<(), CommandError> {
    let State { catalog, clients, subscriptions, patterns, fanout, matches, .. } = state;
    let Now { monotonic_ns, unix_ns } = now;
    let mut sender =
        MessageSender { subscriptions, clients, fanout, correlation_id, now: monotonic_ns };
    catalog.publish(topic, publication, is_delta, unix_ns, (patterns, matches), &mut sender)
}

/// Whether a command of a named client has a sequence number that is not new.
///
/// # Errors
/// If the number is too far beyond the last one, or the limit of names is reached.
pub(crate) fn is_duplicate(
    state: &mut State,
    id: ClientId,
    sequence: Option<u64>,
    now: Now,
) -> Result<bool, CommandError> {
    let Some(sequence) = sequence else { return Ok(false) };
    let key = state.clients.get(id).and_then(|client| client.sequence_key.clone());
    let Some(key) = key else { return Ok(false) };
    let result = match state.sequences.is_duplicate(&key, sequence) {
        // Unused names may have expired by now.
        Err(CommandError::Names(_) | CommandError::NamesOfUser(_)) => {
            expire_names(state, now);
            state.sequences.is_duplicate(&key, sequence)
        }
        result => result,
    };
    state.counters.duplicates += u64::from(result == Ok(true));
    result
}

/// Removes names that no client has used for long, also on disk.
pub(crate) fn expire_names(state: &mut State, now: Now) {
    let State { sequences, clients, catalog, .. } = state;
    let mut examined = 0;
    while let Some(key) = sequences.next_unused(now, &mut examined) {
        let name = key.split_once('\n').map_or(&*key, |(_, name)| name);
        let client = clients.named(name).and_then(|id| clients.get(id));
        // A connected publisher keeps its number however long it is silent.
        let is_used = client.is_some_and(|one| one.sequence_key.as_deref() == Some(&*key));
        let store = catalog.store_mut();
        // A deletion that the journal does not accept is retried after the next expiry.
        if is_used || store.is_some_and(|store| store.delete_sequence(&key, now.unix_ns).is_err()) {
            sequences.keep(key, now.monotonic_ns);
        } else {
            sequences.remove(&key);
        }
    }
}
