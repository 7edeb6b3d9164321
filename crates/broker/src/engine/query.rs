//! Executes queries (`sow`), and advances their results in steps.

use crate::command::acknowledgement::{CommandResult, ReplyTo};
use crate::command::error::CommandError;
use crate::command::request::QueryRequest;
use crate::delivery::field_selection::FieldSelection;
use crate::engine::state::State;
use crate::ids::{ClientId, SubscriptionId, TopicId};
use crate::time::Now;
use crate::topic::sow_subscribers::{PendingQuery, QueryProgress};
use lanecast_filter::Selection;
use lanecast_sow::{Query, SortMemory, SubscriptionOptions};

/// A query to start.
#[derive(Debug)]
pub(crate) struct QueryStart {
    pub(crate) topic: TopicId,
    pub(crate) query: Query,
    pub(crate) fields: FieldSelection,
    /// Records per message.
    pub(crate) batch: usize,
    /// The subscription that continues where the result ends, if any.
    pub(crate) follow: Option<(SubscriptionId, SubscriptionOptions)>,
    /// The length of the command.
    pub(crate) header_bytes: usize,
}

/// Starts the query of a `sow` command.
pub(crate) fn query(
    state: &mut State,
    now: Now,
    id: ClientId,
    reply_to: &ReplyTo<'_>,
    request: &QueryRequest<'_>,
) -> Result<CommandResult, CommandError> {
    let filter = state.compile_filter(id, request.filter.as_deref())?;
    let Some(client) = state.clients.get(id) else { return Ok(CommandResult::Done) };
    let kind = client.kind;
    if request.fields.selection.is_some() && !Selection::is_for(kind) {
        return Err(CommandError::NoFields(kind));
    }
    let start = QueryStart {
        topic: state.catalog.find_sow(kind, &request.topic)?,
        query: Query { filter, ..request.query.clone() },
        fields: request.fields.clone(),
        batch: request.batch,
        follow: None,
        header_bytes: request.header_bytes,
    };
    // Sends nothing yet: the result follows the acknowledgement, step by step in later turns.
    self::start(state, now, id, reply_to, start)?;
    Ok(CommandResult::QueryStarted)
}

/// Starts a query; [`advance`] sends its result.
pub(crate) fn start(
    state: &mut State,
    now: Now,
    id: ClientId,
    reply_to: &ReplyTo<'_>,
    start: QueryStart,
) -> Result<(), CommandError> {
    let QueryStart { topic, mut query, fields, batch, follow, header_bytes } = start;
    // A subscription has reserved the memory of its filter already.
    let memory = state.reserve_patterns(id, query.filter.as_ref().filter(|_| follow.is_none()))?;
    let is_restricted = state.is_restricted(id);
    let sort_bytes = state.config.query_sort_bytes;
    let Some(client) = state.clients.get_mut(id) else { return Ok(()) };
    // Sorting draws on three nested budgets: all clients, this client, this query.
    query.memory = SortMemory(Some(client.sort_bytes.child(sort_bytes)));
    let pending = PendingQuery {
        client: id,
        reply_to: reply_to.to_owned(),
        batch,
        fields,
        is_restricted,
        _counted: (client.count_query(header_bytes), memory),
    };
    state.querying.push(topic);
    state.with_sow(topic, now, |topic, context, _| {
        topic.query(pending, &query, follow, now.unix_ns, context)
    })
}

/// Sends more of all running queries' results; whether some can continue at once.
pub(crate) fn advance(state: &mut State, now: Now) -> bool {
    let mut querying = std::mem::take(&mut state.querying);
    // A topic is listed once per query; its queries advance together.
    querying.sort_unstable();
    querying.dedup();
    let (mut is_running, stall_max) = (false, state.slow_consumers.stall_max());
    querying.retain(|topic| {
        let progress = state.with_sow(*topic, now, |topic, context, sender| {
            Ok(topic.advance_queries(now, stall_max, context, sender))
        });
        // Queries that wait for their clients do not keep the server awake.
        is_running |= progress == Ok(QueryProgress::Running);
        progress.is_ok_and(|progress| progress != QueryProgress::Done)
    });
    state.querying.append(&mut querying);
    is_running
}
