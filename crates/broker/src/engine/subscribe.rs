//! Executes subscribe and unsubscribe commands.

use crate::auth::permissions::Permission;
use crate::command::acknowledgement::{CommandResult, ReplyTo};
use crate::command::error::CommandError;
use crate::command::request::SubscribeRequest;
use crate::delivery::patterns::PatternRequest;
use crate::delivery::subscriptions::{Subscription, TopicSelector};
use crate::engine::query::{self, QueryStart};
use crate::engine::state::State;
use crate::ids::{ClientId, PatternId, SubscriptionId, TopicId};
use crate::time::Now;
use crate::topic::sow_subscribers::Successor;
use lanecast_base::budget::Reservation;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::{Filter, Pattern, Selection};
use lanecast_wire::command::{Field, HeaderWriter};
use std::sync::Arc;

/// The most bytes of a compiled topic pattern.
const PATTERN_BYTES: usize = 256 << 10;
/// Charged for compiling a topic pattern, successful or not.
const PATTERN_STEPS: usize = 2_048;
/// Ended subscriptions removed before other clients get their turn.
pub(crate) const REMOVE_STEP: usize = 64;

/// A subscription to add.
#[derive(Debug)]
struct NewSubscription<'a> {
    client: ClientId,
    kind: MessageType,
    request: &'a SubscribeRequest<'a>,
    filter: Option<Filter>,
}

/// Adds a subscription, or replaces one.
pub(crate) fn subscribe(
    state: &mut State,
    now: Now,
    id: ClientId,
    reply_to: &ReplyTo<'_>,
    request: &SubscribeRequest<'_>,
) -> Result<CommandResult, CommandError> {
    let SubscribeRequest { mode, options, name, .. } = request;
    let filter = state.compile_filter(id, request.filter.as_deref())?;
    // Leaving the filter, and deltas, need the filter's result on the previous record.
    let is_repeatable = filter.as_ref().is_none_or(Filter::is_pure);
    if !is_repeatable && (options.out_of_focus || options.delta) {
        return Err(CommandError::NotRepeatable);
    }
    // Removes ended subscriptions faster than new ones come.
    remove_ended(state, 2);
    let limit = state.config.subscriptions_max;
    let Some(client) = state.clients.get(id) else { return Ok(CommandResult::Done) };
    let (kind, old) = (client.kind, client.subscriptions.get(&**name).copied());
    // A refused command leaves the old subscription untouched: its removal comes last.
    check_fields(request, kind)?;
    if old.is_some() && !request.replaces {
        return Err(CommandError::SubscriptionExists(name.to_string()));
    }
    // A replacement does not add to the count.
    if old.is_none() && client.subscriptions.len() >= limit {
        return Err(CommandError::Subscriptions(limit));
    }
    let new = NewSubscription { client: id, kind, request, filter };
    // A transient topic has no records: the subscription begins with an empty result.
    let topic = state.catalog.find_sow(kind, &request.topic).ok();
    let (added, result) = match topic.filter(|_| mode.with_records) {
        Some(topic) => {
            (add_with_query(state, now, topic, new, reply_to)?, CommandResult::QueryStarted)
        }
        None if mode.with_records => (add(state, new)?, CommandResult::NoRecords),
        None => (add(state, new)?, CommandResult::Subscribed((**name).into())),
    };
    if let Some(old) = old {
        let successor = match result {
            CommandResult::QueryStarted => Successor::Query { out_of_focus: options.out_of_focus },
            _ => Successor::Subscription,
        };
        // The old subscription ends only after the new one is in place: no message falls between
        // them.
        replace(state, now, (old, added), successor);
    }
    if let Some(client) = state.clients.get_mut(id) {
        client.subscriptions.insert((**name).into(), added);
    }
    Ok(result)
}

/// Checks that messages of the client's type have the fields and deltas that are asked for.
fn check_fields(request: &SubscribeRequest<'_>, kind: MessageType) -> Result<(), CommandError> {
    if request.fields.selection.is_some() && !Selection::is_for(kind) {
        return Err(CommandError::NoFields(kind));
    }
    if request.mode.with_deltas && matches!(kind, MessageType::Xml | MessageType::Binary) {
        return Err(CommandError::NoDeltas(kind));
    }
    Ok(())
}

/// Adds a subscription that does not begin with a query.
fn add(state: &mut State, new: NewSubscription<'_>) -> Result<SubscriptionId, CommandError> {
    // Not inserted before everything that can fail has succeeded; the next id stays free until
    // then.
    let id = state.subscriptions.next_id();
    let memory = state.reserve_patterns(new.client, new.filter.as_ref())?;
    let selector = if new.request.is_pattern {
        TopicSelector::Pattern(add_to_pattern(state, id, &new)?)
    } else {
        let topic = state.find_or_create_topic(new.client, new.kind, &new.request.topic)?;
        state.catalog.subscribe(topic, id, new.filter.as_ref(), new.request.options)?;
        TopicSelector::Topic(topic)
    };
    state.subscriptions.insert(new.subscription(selector, memory));
    Ok(id)
}

/// Adds a subscription to a pattern, and to all SOW topics that match it: transient topics find the
/// pattern when a message is published.
fn add_to_pattern(
    state: &mut State,
    id: SubscriptionId,
    new: &NewSubscription<'_>,
) -> Result<PatternId, CommandError> {
    let pattern = find_or_compile_pattern(state, new)?;
    let filter = new.filter.as_ref();
    let is_match = |topic: &TopicId| {
        let name = state.catalog.name(*topic);
        let compiled = state.patterns.get(pattern);
        compiled.is_some_and(|compiled| compiled.is_match(name.as_bytes()))
            && state.is_allowed(new.client, Permission::Subscribe, name)
    };
    // SOW topics exist from the start, so the pattern is tried on them now; transient ones try it
    // at their next message.
    let topics: Vec<TopicId> = state.catalog.sow_of(new.kind).filter(is_match).collect();
    let mut result = state.patterns.subscribe(pattern, id, filter);
    let mut added = 0;
    while result.is_ok() && added < topics.len() {
        result = state.catalog.subscribe(topics[added], id, filter, new.request.options);
        added += 1;
    }
    if let Err(error) = result {
        // All or none: removes it from the topics it was added to.
        for topic in &topics[..added] {
            state.catalog.unsubscribe(*topic, id);
        }
        state.patterns.unsubscribe(pattern, id);
        return Err(error);
    }
    Ok(pattern)
}

/// The pattern of a subscription, compiled unless another subscription has it.
fn find_or_compile_pattern(
    state: &mut State,
    new: &NewSubscription<'_>,
) -> Result<PatternId, CommandError> {
    let State { clients, patterns, auth, config, .. } = state;
    let Some(client) = clients.get(new.client) else { return Err(CommandError::NotLoggedOn) };
    let permissions = client.auth.permissions.as_ref().filter(|_| auth.requires_logon());
    let request = PatternRequest { kind: new.kind, text: &new.request.topic, permissions };
    // Equal patterns share one automaton, which each topic tries once.
    if let Some(pattern) = patterns.find(&request) {
        return Ok(pattern);
    }
    let token = Arc::clone(&client.patterns);
    // The client's record holds one clone, `token` another.
    let count = Arc::strong_count(&token).saturating_sub(2);
    patterns.check_limits(count, config.patterns_max)?;
    let mut memory = client.pattern_bytes.reservation();
    let pattern = Pattern::new(request.text, PATTERN_BYTES).map_err(CommandError::TopicPattern);
    let result = pattern.and_then(|pattern| {
        memory.try_grow(pattern.bytes())?;
        Ok(patterns.insert(&request, pattern, (token, memory)))
    });
    // Charged on failure, too: an invalid pattern has cost its compilation.
    state.charge_compiling(new.client, PATTERN_STEPS);
    result
}

/// Adds a subscription that begins with a query of a SOW topic.
fn add_with_query(
    state: &mut State,
    now: Now,
    topic: TopicId,
    mut new: NewSubscription<'_>,
    reply_to: &ReplyTo<'_>,
) -> Result<SubscriptionId, CommandError> {
    let id = state.subscriptions.next_id();
    let memory = state.reserve_patterns(new.client, new.filter.as_ref())?;
    let (client, request) = (new.client, new.request);
    let start = QueryStart {
        topic,
        query: lanecast_sow::Query { filter: new.filter.take(), ..request.query.clone() },
        fields: request.fields.clone(),
        batch: request.options.batch,
        follow: Some((id, request.options)),
        header_bytes: request.header_bytes,
    };
    // Inserted first: the query refers to the subscription by its id.
    state.subscriptions.insert(new.subscription(TopicSelector::Topic(topic), memory));
    let result = query::start(state, now, client, reply_to, start);
    if result.is_err() {
        state.subscriptions.remove(id);
    }
    result.map(|()| id)
}

impl NewSubscription<'_> {
    fn subscription(self, selector: TopicSelector, memory: Reservation) -> Subscription {
        Subscription {
            client: self.client,
            escaped_name: escaped(&self.request.name),
            kind: self.kind,
            selector,
            fields: self.request.fields.clone(),
            _reservation: memory,
        }
    }
}

/// Ends the subscriptions with these names, separated by commas, or `all`.
pub(crate) fn unsubscribe(state: &mut State, id: ClientId, names: &str) {
    let Some(client) = state.clients.get_mut(id) else { return };
    let ids: Vec<SubscriptionId> = if names == "all" {
        client.subscriptions.drain().map(|(_, subscription)| subscription).collect()
    } else {
        let names = names.split(',').map(str::trim);
        names.filter_map(|name| client.subscriptions.remove(name)).collect()
    };
    end(state, id, ids, false);
}

/// Ends subscriptions of a client, and with `all_queries` also its queries. Nothing more is
/// delivered for them; their entries in topics are removed in steps, since one client may have
/// many.
pub(crate) fn end(
    state: &mut State,
    id: ClientId,
    ids: impl IntoIterator<Item = SubscriptionId>,
    all_queries: bool,
) {
    let State { subscriptions, catalog, .. } = state;
    // Ended at once, removed in steps: taking thousands of filters out of their indexes takes long.
    ids.into_iter().for_each(|id| subscriptions.end(id));
    let has_ended = |subscription: Option<SubscriptionId>| {
        all_queries || subscription.is_some_and(|id| subscriptions.route(id).is_none())
    };
    catalog.for_each_sow(|topic, context| topic.remove_queries(id, has_ended, context));
    remove_ended(state, REMOVE_STEP);
}

/// Ends the subscriptions whose queries failed.
pub(crate) fn end_failed(state: &mut State) {
    for (client, id) in state.clients.take_failed_subscriptions() {
        end(state, client, [id], false);
    }
}

/// Removes up to `limit` ended subscriptions everywhere; whether there are more.
pub(crate) fn remove_ended(state: &mut State, limit: usize) -> bool {
    for id in state.subscriptions.take_ended(limit) {
        remove(state, id);
    }
    state.subscriptions.ended_len() > 0
}

/// Removes a subscription whose place another one takes: what it still owes its client in topics of
/// both goes over to that.
fn replace(
    state: &mut State,
    now: Now,
    (old, new): (SubscriptionId, SubscriptionId),
    successor: Successor,
) {
    let Some(subscription) = state.subscriptions.get(old) else { return };
    let topics: Vec<TopicId> = match subscription.selector {
        TopicSelector::Topic(topic) => vec![topic],
        TopicSelector::Pattern(_) => state.catalog.sow_of(subscription.kind).collect(),
    };
    for id in topics {
        // Fails for transient topics, which owe nothing.
        let is_both = state.with_sow(id, now, |topic, context, sender| {
            Ok(topic.replace((old, new), successor, context, sender))
        });
        // What waits is sent in the steps of queries.
        state.querying.extend((is_both == Ok(true)).then_some(id));
    }
    remove(state, old);
}

/// Removes a subscription from the table, topics and patterns.
fn remove(state: &mut State, id: SubscriptionId) {
    let Some(subscription) = state.subscriptions.remove(id) else { return };
    match subscription.selector {
        TopicSelector::Topic(topic) => state.catalog.unsubscribe(topic, id),
        TopicSelector::Pattern(pattern) => {
            state.patterns.unsubscribe(pattern, id);
            let topics: Vec<TopicId> = state.catalog.sow_of(subscription.kind).collect();
            // The catalog does not record which topics matched: removal from another one does
            // nothing.
            for topic in topics {
                state.catalog.unsubscribe(topic, id);
            }
        }
    }
}

/// A subscription name, escaped as within the quotes of a header.
fn escaped(name: &str) -> Box<[u8]> {
    let mut written = Vec::new();
    // Escaped once here, so that the fan-out copies the name as it is.
    HeaderWriter::record(&mut written).text(Field::SubscriptionId, name).end();
    let before = Field::SubscriptionId.written().len() + r#"{"":""#.len();
    written[before..written.len() - r#""}"#.len()].into()
}
