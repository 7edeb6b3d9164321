//! Commands about kept records: asking for them, following them, removing them.

use crate::client::ClientId;
use crate::command::acknowledgement as reply;
use crate::command::delete::{Asked, Removal};
use crate::command::error::CommandError;
use crate::command::publish::{CommandResult, refuse_bookmark};
use crate::command::subscribe::PARTING_STEP;
use crate::delivery::message::Post;
use crate::delivery::subscriptions::FieldSelection;
use crate::engine::{Engine, Now};
use crate::topic::catalog::Catalog;
use crate::topic::durable_store::DurableStore;
use crate::topic::entry::TopicEntry;
use crate::topic::feed_subscriptions::QueryProgress;
use crate::topic::sow_topic::{DeleteTarget, PendingQuery, SowTopic};
use lanecast_filter::message_type::MessageType;
use lanecast_filter::{Filter, Selection};
use lanecast_sow::{Key, Order, Query, SortMemory, SubscriptionOptions};
use lanecast_wire::command::{Ack, Acks, Command, Field, Header, Options as Wishes};
use std::sync::Arc;
use std::time::Duration;

/// The most records of a message.
const BATCH_MAX: u64 = 10_000;
/// The longest time between two messages about a record.
const CONFLATION_MAX: Duration = Duration::from_secs(3_600);

/// What a deletion has done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deleted {
    pub(crate) records: u64,
    pub(crate) deleted: u64,
}

/// What is asked for.
#[derive(Debug)]
pub(crate) struct QueryRequest {
    pub(crate) filter: Option<Filter>,
    pub(crate) taste: FieldSelection,
    /// The subscription that goes on where the answer ends, if there is one.
    pub(crate) follow: Option<(u32, SubscriptionOptions)>,
}

impl Engine {
    /// Asks for records.
    pub(crate) fn ask(
        &mut self,
        at: Now,
        id: ClientId,
        header: &Header<'_>,
        topic: u32,
        question: QueryRequest,
    ) -> Result<(), CommandError> {
        let QueryRequest { filter, taste, follow } = question;
        // That of a subscription is counted with it.
        let memory = self.pattern_memory(id, filter.as_ref().filter(|_| follow.is_none()))?;
        let mut query = query(header, filter)?;
        let given = header.text(Field::QueryId).or_else(|| header.text(Field::CommandId));
        let query_id: Box<str> = given.unwrap_or_default().into();
        let command_id = header.text(Field::CommandId).map(|id| Box::from(&*id));
        let mut acks = Acks::NONE;
        let asked = header.acks()?;
        for ack in [Ack::Completed, Ack::Stats].into_iter().filter(|ack| asked.has(*ack)) {
            acks = acks.with(ack);
        }
        let batch = options(header)?.batch;
        let is_confined = self.is_confined(id);
        let sort_bytes = self.settings.query_sort_bytes;
        let Some(client) = self.client(id) else { return Ok(()) };
        query.memory = SortMemory(Some(client.sort_bytes.child(sort_bytes)));
        let _counted = (client.count_query(header.bytes().len()), memory);
        let inquiry = PendingQuery {
            client: id,
            query_id,
            command_id,
            acks,
            batch,
            taste,
            is_confined,
            _counted,
        };
        self.busy.push(topic);
        self.with_kept(topic, at, |kept, world, _| {
            kept.ask(inquiry, &query, follow, at.unix_ns, world)
        })
    }

    /// Removes records.
    pub(crate) fn delete(
        &mut self,
        at: Now,
        id: ClientId,
        header: &Header<'_>,
    ) -> Result<CommandResult, CommandError> {
        let name = header.text(Field::Topic).ok_or(CommandError::Missing(Field::Topic))?;
        let sequence = header.number(Field::Sequence)?;
        if self.is_duplicate(id, sequence, at.unix_ns)? {
            return Ok(CommandResult::Duplicate { is_deletion: true });
        }
        refuse_bookmark(header)?;
        let keys = header.text(Field::SowKeys);
        let filter = self.filter(id, header)?;
        let body = header.body();
        let key = header.text(Field::SowKey);
        let doomed = match (filter, keys, body.is_empty() && key.is_none()) {
            (Some(filter), None, true) => DeleteTarget::Many(Query::from(filter)),
            (None, Some(keys), true) => {
                let keys = Some(parse_keys(&keys)?);
                DeleteTarget::Many(Query { keys, ..Query::default() })
            }
            (None, None, false) => DeleteTarget::Like(body, key.as_deref()),
            _ => return Err(CommandError::WhatToDelete),
        };
        let Some(client) = self.client(id) else { return Ok(CommandResult::Plainly) };
        let numbered = client.numbered_as.clone().zip(sequence);
        let (kind, name_of) = (client.kind, client.name.clone().unwrap_or_default());
        let topic = self.kept(kind, &name)?;
        let is_durable = self.is_durable(kind, &name);
        let token = Arc::new(());
        let asked = Asked { client: id, header: Box::default(), token, numbered };
        let removal = Removal::new(Query::default(), name_of, asked);
        let done = self.with_kept(topic, at, |kept, world, post| {
            kept.delete(doomed, removal, at.unix_ns, world, post)
        })?;
        if let Some(client) = self.client(id) {
            client.writes_durably |= is_durable;
        }
        match done {
            Some(removal) => Ok(CommandResult::Deleted(self.deleted(at, topic, &removal)?)),
            None => {
                // Answered when it is done.
                if let TopicEntry::SowTopic(kept) = &mut self.topics[topic as usize]
                    && let Some(last) = kept.last_removal()
                {
                    last.asked.header = header.bytes().into();
                    let token = Arc::clone(&last.asked.token);
                    self.client(id).map(|client| client.deleting.insert(token));
                }
                self.deleting.push(topic);
                self.deleting.sort_unstable();
                self.deleting.dedup();
                Ok(CommandResult::Later)
            }
        }
    }

    /// Remembers the number of what a client has done to a kept topic.
    pub(crate) fn number(
        &mut self,
        topic: u32,
        name: &str,
        sequence: u64,
        now_ns: u64,
    ) -> Result<(), CommandError> {
        if !self.sequences.is_on() {
            return Ok(());
        }
        if let TopicEntry::SowTopic(kept) = &self.topics[topic as usize]
            && kept.is_durable()
            && let Some(disk) = &mut self.world.disk
        {
            disk.number(name, sequence, now_ns)?;
        }
        self.sequences.remember(name, sequence, now_ns);
        Ok(())
    }

    /// The topic of that name, of which something is kept.
    pub(crate) fn kept(&self, kind: MessageType, name: &str) -> Result<u32, CommandError> {
        let topic = self.known_topic(kind, name);
        let is_kept = |topic: &u32| matches!(self.topics[*topic as usize], TopicEntry::SowTopic(_));
        topic.filter(is_kept).ok_or_else(|| CommandError::NothingKept(name.to_owned()))
    }

    /// Goes on answering queries, and removes what has expired; whether there is more to answer
    /// that does not wait until its client has read more.
    pub fn advance(&mut self, at: Now) -> bool {
        let mut busy = std::mem::take(&mut self.busy);
        busy.sort_unstable();
        busy.dedup();
        let (mut is_going, still_max) = (false, self.still_max());
        busy.retain(|topic| {
            let pace = self.with_kept(*topic, at, |kept, world, post| {
                Ok(kept.advance(at, still_max, world, post))
            });
            is_going |= pace == Ok(QueryProgress::Going);
            pace.is_ok_and(|pace| pace != QueryProgress::CommandResult)
        });
        self.busy.append(&mut busy);
        self.confirm();
        self.go_on_logging_on(at);
        let is_writing = self.world.keep_checkpoint(&self.topics);
        while let Some(word) = self.world.disk.as_mut().and_then(DurableStore::next_log_line) {
            self.words.push_back(word);
        }
        let is_rested = self.rest();
        let is_deleting = self.go_on_deleting(at);
        let is_parting = self.part(PARTING_STEP);
        let is_sweeping = self.forget_topics(at);
        is_going || is_rested || is_writing || is_deleting || is_parting || is_sweeping
    }

    /// Tells those who wait for it what has become durable.
    fn confirm(&mut self) {
        while let Some((owed, told)) = self.world.disk.as_mut().and_then(DurableStore::next_told) {
            self.answer(owed.client, |out| reply::persisted(&owed, told.as_ref().err(), out));
        }
    }

    /// Waits until all that was published is durable, up to `limit`, and says so.
    pub(crate) fn finish(&mut self, limit: Duration) {
        if let Some(disk) = &self.world.disk {
            disk.finish(limit);
        }
        self.confirm();
    }

    /// Sees to it that a client is told when what its command did is durable.
    pub(crate) fn promise(
        &mut self,
        id: ClientId,
        header: &Header<'_>,
        is_duplicate: bool,
    ) -> Result<(), CommandError> {
        let kind = self.client(id).map_or(MessageType::Json, |client| client.kind);
        let is_durable = match header.command()? {
            Command::Flush => true,
            _ => self.is_durable(kind, &header.text(Field::Topic).unwrap_or_default()),
        };
        let disk =
            self.world.disk.as_mut().filter(|_| is_durable).ok_or(CommandError::NotDurable)?;
        let command_id = header.text(Field::CommandId).map(|id| Box::from(&*id));
        disk.owe(id, command_id, header.number(Field::Sequence)?, is_duplicate);
        Ok(())
    }

    /// Removes records whose time is over, and tells what was held back for long enough.
    pub(crate) fn look_after_kept(&mut self, at: Now) {
        for at_kept in 0..self.world.kept.len() {
            let topic = self.world.kept[at_kept];
            let TopicEntry::SowTopic(kept) = &self.topics[topic as usize] else { continue };
            if kept.next_due_ns().is_some_and(|due| due <= at.unix_ns) {
                // It is kept, so this is done.
                let _done = self.with_kept(topic, at, |kept, world, post| {
                    kept.expire(at.unix_ns, world, post);
                    kept.flush(at.unix_ns, post);
                    Ok(())
                });
            }
        }
    }

    /// When something is to be done about kept topics, in nanoseconds since 1970.
    pub(crate) fn next_kept_ns(&self) -> Option<u64> {
        let kept = self.world.kept.iter().map(|topic| &self.topics[*topic as usize]);
        let kept = kept.filter_map(|room| match room {
            TopicEntry::SowTopic(kept) => kept.next_due_ns(),
            TopicEntry::Transient(_) | TopicEntry::Vacant => None,
        });
        kept.min()
    }

    /// Calls `work` with a kept topic and the outboxes.
    pub(crate) fn with_kept<T>(
        &mut self,
        topic: u32,
        at: Now,
        work: impl FnOnce(&mut SowTopic, &mut Catalog, &mut Post<'_>) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let (topics, world, mut post) = self.parts(None);
        let Some(TopicEntry::SowTopic(kept)) = topics.get_mut(topic as usize) else {
            return Err(CommandError::NothingKept(String::new()));
        };
        let done = work(kept, world, &mut post);
        world.settle(topics, at.unix_ns, &mut post);
        let delivered = post.delivered;
        self.counters.delivered += delivered;
        done
    }
}

/// How a subscription is told of kept records.
pub(crate) fn options(header: &Header<'_>) -> Result<SubscriptionOptions, CommandError> {
    let list = header.text(Field::Options).unwrap_or_default();
    let wishes = Wishes::parse(&list)?;
    let conflation = match wishes.value("conflation") {
        None | Some("none") => None,
        Some(text) => Some(interval(text).ok_or(CommandError::Conflation)?),
    };
    let batch = header.number(Field::BatchSize)?.unwrap_or(1).clamp(1, BATCH_MAX) as usize;
    let out_of_focus = wishes.has("oof") || header.flag(Field::SendOof)?;
    Ok(SubscriptionOptions { out_of_focus, conflation, batch, ..SubscriptionOptions::default() })
}

/// Which parts of messages of a type a command asks for.
pub(crate) fn taste(
    header: &Header<'_>,
    kind: MessageType,
) -> Result<FieldSelection, CommandError> {
    let list = header.text(Field::Options).unwrap_or_default();
    let wishes = Wishes::parse(&list)?;
    let selection = wishes.value("select").map(str::parse::<Selection>).transpose()?;
    if selection.is_some() && !Selection::is_for(kind) {
        return Err(CommandError::NoFields(kind));
    }
    Ok(FieldSelection { selection: selection.map(Arc::new), no_empties: wishes.has("no_empties") })
}

fn interval(text: &str) -> Option<Duration> {
    let interval = lanecast_base::parse_duration(text).ok()?;
    (interval <= CONFLATION_MAX && !interval.is_zero()).then_some(interval)
}

/// What a command asks for.
pub(crate) fn query(header: &Header<'_>, filter: Option<Filter>) -> Result<Query, CommandError> {
    let list = header.text(Field::Options).unwrap_or_default();
    let wishes = Wishes::parse(&list)?;
    let number = |name: &'static str| match wishes.value(name) {
        None => Ok(None),
        Some(text) => text.parse::<usize>().map(Some).map_err(|_| CommandError::Number(name)),
    };
    let top = match header.number(Field::TopN)? {
        Some(top) => Some(usize::try_from(top).unwrap_or(usize::MAX)),
        None => number("top_n")?,
    };
    let keys = header.text(Field::SowKeys).map(|keys| parse_keys(&keys)).transpose()?;
    let order = header.text(Field::OrderBy).map(|text| parse_order(&text)).transpose()?;
    let (order, skip) = (order.unwrap_or_default(), number("skip_n")?.unwrap_or(0));
    Ok(Query { filter, keys, order, skip, top, ..Query::default() })
}

fn parse_keys(list: &str) -> Result<Vec<Key>, CommandError> {
    let keys = list.split(',').map(|key| key.trim().parse().map(Key));
    keys.collect::<Result<_, _>>().map_err(|_| CommandError::SowKeys)
}

/// Fields, each with `ASC` or `DESC` behind it or neither.
fn parse_order(list: &str) -> Result<Vec<Order>, CommandError> {
    let fields = list.split(',').map(|field| {
        let mut words = field.split_whitespace();
        let path = words.next().ok_or(CommandError::OrderBy)?;
        let descending = match words.next().map(str::to_ascii_uppercase).as_deref() {
            None | Some("ASC") => false,
            Some("DESC") => true,
            Some(_) => return Err(CommandError::OrderBy),
        };
        let order = if descending { Order::descending(path) } else { Order::ascending(path) };
        if words.next().is_some() {
            Err(CommandError::OrderBy)
        } else {
            order.map_err(|_| CommandError::OrderBy)
        }
    });
    fields.collect()
}
