//! Executes deletions (`sow_delete`), and continues those of many records in later turns.

use crate::command::acknowledgement::{CommandResult, DeleteCounts, ReplyTo};
use crate::command::error::CommandError;
use crate::command::request::DeleteRequest;
use crate::engine::persistence;
use crate::engine::publish::is_duplicate;
use crate::engine::state::State;
use crate::ids::{ClientId, TopicId};
use crate::time::Now;
use crate::topic::removal::{Removal, RemovalRequest};
use crate::topic::sow_topic::{DeleteTarget, SowTopic};
use lanecast_sow::Query;
use std::sync::Arc;

/// Deletes records.
pub(crate) fn delete(
    state: &mut State,
    now: Now,
    id: ClientId,
    reply_to: &ReplyTo<'_>,
    request: DeleteRequest<'_>,
) -> Result<CommandResult, CommandError> {
    let DeleteRequest { topic: name, sequence, filter, keys, payload, sow_key } = request;
    // Before the filter is compiled: a publisher that resends after a reconnect pays nothing for
    // it.
    if is_duplicate(state, id, sequence, now)? {
        return Ok(CommandResult::Duplicate { is_delete: true });
    }
    if let Some(sequence) = sequence
        && take_over(state, id, reply_to, sequence)
    {
        return Ok(CommandResult::Deferred);
    }
    let filter = state.compile_filter(id, filter.as_deref())?;
    let has_message = !payload.is_empty() || sow_key.is_some();
    // AMPS names exactly one way per sow_delete: a filter, a list of keys, or a message.
    let target = match (filter, keys, has_message) {
        (Some(filter), None, false) => DeleteTarget::Query(Query::from(filter)),
        (None, Some(keys), false) => {
            DeleteTarget::Query(Query { keys: Some(keys), ..Query::default() })
        }
        (None, None, true) => DeleteTarget::Message(payload, sow_key.as_deref()),
        _ => return Err(CommandError::AmbiguousDelete),
    };
    let Some(client) = state.clients.get(id) else { return Ok(CommandResult::Done) };
    let client_name = client.name.clone().unwrap_or_default();
    let sequence_key = client.sequence_key.clone();
    let topic = state.catalog.find_sow(client.kind, &name)?;
    let token = Arc::new(());
    let reply_to = reply_to.to_owned();
    let own = Arc::clone(&token);
    let request = RemovalRequest { client: id, reply_to, token: own, sequence, sequence_key };
    // The query is a placeholder: the topic moves the target's query into the removal.
    let removal = Removal::new(Query::default(), client_name, request);
    let completed = state.with_sow(topic, now, |topic, context, sender| {
        topic.delete(target, removal, now.unix_ns, context, sender)
    })?;
    let is_durable = state.catalog.is_durable(topic);
    if let Some(client) = state.clients.get_mut(id) {
        // Set before the next command is read: from then on a congested journal pauses this client.
        client.writes_durably |= is_durable;
    }
    if let Some(removal) = completed {
        return finish(state, now, topic, &removal).map(CommandResult::Deleted);
    }
    // Acknowledged at the end of the deletion; until then the client's next command waits.
    if let Some(client) = state.clients.get_mut(id) {
        client.deleting = Some(token);
    }
    state.deleting.push(topic);
    // Two clients may delete in one topic; a topic listed twice would get two steps per turn.
    state.deleting.sort_unstable();
    state.deleting.dedup();
    Ok(CommandResult::Deferred)
}

/// Lets a client await its own deletion that is still running; whether there is one with that
/// number. A publisher resends what was not acknowledged before it lost its connection: a second
/// run would delete records that were published since.
fn take_over(state: &mut State, id: ClientId, reply_to: &ReplyTo<'_>, sequence: u64) -> bool {
    let State { clients, catalog, deleting, counters, .. } = state;
    let Some(client) = clients.get_mut(id) else { return false };
    let Some(key) = client.sequence_key.clone() else { return false };
    for topic in deleting {
        let running = catalog.sow_mut(*topic);
        let request = running.and_then(|topic| topic.removal_request(&key, sequence));
        let Some(request) = request else { continue };
        let token = Arc::new(());
        (request.client, request.reply_to) = (id, reply_to.to_owned());
        request.token = Arc::clone(&token);
        client.deleting = Some(token);
        client.writes_durably |= catalog.is_durable(*topic);
        counters.duplicates += 1;
        return true;
    }
    false
}

/// Continues all deletions; whether they can continue at once.
pub(crate) fn advance(state: &mut State, now: Now) -> bool {
    // Waits while the journal is congested: each deleted record adds bytes that it must write.
    if state.deleting.is_empty() || state.catalog.is_congested() {
        return false;
    }
    // Taken out, because each step borrows the whole state.
    let mut topics = std::mem::take(&mut state.deleting);
    topics.retain(|topic| {
        let result = state.with_sow(*topic, now, |topic, context, sender| {
            topic.delete_step(now.unix_ns, context, sender);
            Ok(())
        });
        while let Some((removal, result)) =
            state.catalog.sow_mut(*topic).and_then(SowTopic::take_completed)
        {
            acknowledge(state, now, *topic, &removal, result);
        }
        result.is_ok() && state.catalog.sow_mut(*topic).is_some_and(|topic| topic.is_deleting())
    });
    state.deleting.append(&mut topics);
    !state.deleting.is_empty()
}

/// Acknowledges a deletion that took several turns.
fn acknowledge(
    state: &mut State,
    now: Now,
    topic: TopicId,
    removal: &Removal,
    result: Result<(), CommandError>,
) {
    let RemovalRequest { client: id, token, reply_to, sequence, .. } = &removal.request;
    let result = result.and_then(|()| finish(state, now, topic, removal));
    let Some(client) = state.clients.get_mut(*id) else { return };
    // Another token means that the identifier belongs to a new client.
    if client.deleting.take_if(|own| Arc::ptr_eq(own, token)).is_none() {
        return;
    }
    match &result {
        Ok(counts) => {
            let result = CommandResult::Deleted(*counts);
            state.reply(*id, reply_to, |reply_to, out| reply_to.ack(&result, out));
        }
        Err(error) => {
            state.counters.refused += 1;
            state.reply(*id, reply_to, |reply_to, out| reply_to.nack(error, out));
        }
    }
    let is_durable = state.catalog.is_durable(topic);
    let result = result.map(|_| false);
    persistence::defer_ack(state, *id, reply_to, is_durable, *sequence, result);
}

/// Records the sequence number of a complete deletion, and returns its counts.
fn finish(
    state: &mut State,
    now: Now,
    topic: TopicId,
    removal: &Removal,
) -> Result<DeleteCounts, CommandError> {
    let RemovalRequest { client, sequence, sequence_key, .. } = &removal.request;
    if let Some((key, sequence)) = sequence_key.as_ref().zip(*sequence)
        && state.sequences.is_enabled()
    {
        // Stored on its own: the deletion may have removed no record that could carry the number.
        if state.catalog.is_durable(topic)
            && let Some(store) = state.catalog.store_mut()
        {
            store.store_sequence(key, sequence, now.unix_ns)?;
        }
        state.sequences.record(key, sequence, now.monotonic_ns);
    }
    let Removal { records, deleted, .. } = *removal;
    // A restricted client must not learn how many other records there are.
    let records = if state.is_restricted(*client) { deleted } else { records };
    Ok(DeleteCounts { records: records as u64, deleted: deleted as u64 })
}
