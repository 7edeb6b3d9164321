//! `persisted` acknowledgements: they wait until the journal has stored the command's changes.

use crate::command::acknowledgement::{PendingAck, ReplyTo};
use crate::command::error::CommandError;
use crate::engine::state::State;
use crate::ids::ClientId;
use crate::topic::durable_store::DurableStore;
use lanecast_wire::command::Ack;

/// Queues a command's `persisted` acknowledgement, if it wants one. `result` says whether the
/// command was a duplicate, or why it failed.
pub(crate) fn defer_ack(
    state: &mut State,
    id: ClientId,
    reply_to: &ReplyTo<'_>,
    is_durable: bool,
    sequence: Option<u64>,
    result: Result<bool, CommandError>,
) {
    // AMPS sends only the acknowledgements that the command asked for.
    if !reply_to.acks.has(Ack::Persisted) {
        return;
    }
    let deferred = result.and_then(|is_duplicate| {
        let store = state.catalog.store_mut().filter(|_| is_durable);
        // A topic in memory never persists: a failure now is better than an acknowledgement that
        // never comes.
        let store = store.ok_or(CommandError::NotDurable)?;
        let command_id = reply_to.command_id.as_deref().map(Box::from);
        store.defer_ack(PendingAck { client: id, command_id, sequence, is_duplicate });
        Ok(())
    });
    if let Err(error) = deferred {
        state.reply(id, reply_to, |reply_to, out| reply_to.failure(Ack::Persisted, &error, out));
    }
}

/// Sends the acknowledgements of changes that the journal has stored since the last call.
pub(crate) fn send_acks(state: &mut State) {
    // The store returns acknowledgements in the journal's order, so each client sees its own in
    // order.
    while let Some((ack, result)) = state.catalog.store_mut().and_then(DurableStore::next_ack) {
        state.clients.reply(ack.client, |out| ack.write(result.as_ref().err(), out));
    }
}
