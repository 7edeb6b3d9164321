//! The engine's parts, and what several commands need from more than one of them.

use crate::auth::authenticator::Authenticator;
use crate::auth::permissions::Permission;
use crate::clients::Clients;
use crate::command::acknowledgement::ReplyTo;
use crate::command::error::CommandError;
use crate::config::server_config::ServerConfig;
use crate::delivery::fanout::{Fanout, MessageSender};
use crate::delivery::patterns::Patterns;
use crate::delivery::subscriptions::{SubscriptionIds, Subscriptions};
use crate::engine::slow_consumers::SlowConsumers;
use crate::ids::{ClientId, TopicId};
use crate::stats::counters::Counters;
use crate::stats::log::LogLines;
use crate::time::{Nanos, Now};
use crate::topic::catalog::Catalog;
use crate::topic::sequences::SequenceStore;
use crate::topic::sow_context::SowContext;
use crate::topic::sow_topic::SowTopic;
use lanecast_base::budget::Reservation;
use lanecast_filter::Filter;
use lanecast_filter::message_type::MessageType;
use lanecast_wire::command::Acks;
use std::sync::Arc;

/// Steps of compiling patterns that cost as much as trying one: about a microsecond.
const STEPS_PER_COST: usize = 4;

/// A logon that is acknowledged once the client's earlier messages are durable.
#[derive(Debug)]
pub(crate) struct PendingLogon {
    pub(crate) client: ClientId,
    pub(crate) reply_to: ReplyTo<'static>,
    pub(crate) name: Box<str>,
    pub(crate) sequence: u64,
    pub(crate) states_version: bool,
    /// The journal position at the time of the logon.
    pub(crate) position: u64,
    pub(crate) deadline: Nanos,
}

/// The parts of the engine. Each owns its data; commands borrow the parts that they need.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) config: ServerConfig,
    pub(crate) auth: Authenticator,
    pub(crate) clients: Clients,
    pub(crate) catalog: Catalog,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) patterns: Patterns,
    pub(crate) fanout: Fanout,
    /// Scratch: subscriptions that the current message matches.
    pub(crate) matches: SubscriptionIds,
    pub(crate) sequences: SequenceStore,
    pub(crate) logons: Vec<PendingLogon>,
    /// Topics with running queries.
    pub(crate) querying: Vec<TopicId>,
    /// Topics with running deletions.
    pub(crate) deleting: Vec<TopicId>,
    pub(crate) slow_consumers: SlowConsumers,
    pub(crate) counters: Counters,
    pub(crate) log: LogLines,
}

impl State {
    /// Runs `work` on a SOW topic; see [`Catalog::with_sow`].
    pub(crate) fn with_sow<T>(
        &mut self,
        topic: TopicId,
        now: Now,
        work: impl FnOnce(
            &mut SowTopic,
            &mut SowContext,
            &mut MessageSender<'_>,
        ) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let Self { catalog, clients, subscriptions, fanout, .. } = self;
        let (now_ns, correlation_id) = (now.monotonic_ns, None);
        let mut sender =
            MessageSender { subscriptions, clients, fanout, correlation_id, now: now_ns };
        catalog.with_sow(topic, now, &mut sender, work)
    }

    /// The topic with that name; creates a transient topic if there is none.
    pub(crate) fn find_or_create_topic(
        &mut self,
        id: ClientId,
        kind: MessageType,
        name: &str,
    ) -> Result<TopicId, CommandError> {
        if let Some(topic) = self.catalog.find(kind, name) {
            return Ok(topic);
        }
        let Self { catalog, clients, .. } = self;
        let creator = clients.get(id).map(|client| Arc::clone(&client.topics)).unwrap_or_default();
        catalog.create(kind, name, creator, |removed| clients.drop_cached_headers(removed))
    }

    /// Appends acknowledgements for a client, if it wants any.
    pub(crate) fn reply(
        &mut self,
        id: ClientId,
        reply_to: &ReplyTo<'_>,
        write: impl FnOnce(&ReplyTo<'_>, &mut Vec<u8>),
    ) {
        // Most publishes ask for no acknowledgement: nothing is encoded, and no queue marked.
        if reply_to.acks != Acks::NONE {
            self.clients.reply(id, |out| write(reply_to, out));
        }
    }

    /// Compiles the filter of a command, narrowed to what the client may see. `None` if the command
    /// has no filter and the client may see everything.
    pub(crate) fn compile_filter(
        &mut self,
        id: ClientId,
        text: Option<&str>,
    ) -> Result<Option<Filter>, CommandError> {
        let ServerConfig { name, filters, .. } = &self.config;
        let mut steps = 0;
        let mut compile = |text: &str| {
            let filter = Filter::parse_counted(text, filters, &mut steps);
            filter.map(|filter| filter.with_instance_name(name)).map_err(Box::new)
        };
        // Compiled alone first: positions in its errors must be those of the client's text.
        let own = text.filter(|text| !text.trim().is_empty());
        let mut filter = own.map(&mut compile).transpose();
        let auth = self.clients.get(id).map(|client| &client.auth);
        let narrowed = auth.and_then(|auth| auth.restrict(own.unwrap_or_default()));
        if let Some(narrowed) = narrowed.filter(|_| filter.is_ok()) {
            filter = compile(&narrowed).map(Some);
        }
        self.charge_compiling(id, steps);
        Ok(filter?)
    }

    /// Charges the steps of compiling patterns to a client.
    pub(crate) fn charge_compiling(&mut self, id: ClientId, steps: usize) {
        if steps > 0 {
            self.clients.charge(id, steps.div_ceil(STEPS_PER_COST));
        }
    }

    /// Charges the patterns that the client's message was tried against.
    #[inline]
    pub(crate) fn charge_tried_patterns(&mut self, id: ClientId) {
        let tried = self.patterns.take_tried();
        if tried > 0 {
            self.clients.charge(id, tried);
        }
    }

    /// Reserves memory for a filter's patterns from the client's budget.
    pub(crate) fn reserve_patterns(
        &mut self,
        id: ClientId,
        filter: Option<&Filter>,
    ) -> Result<Reservation, CommandError> {
        let Some(client) = self.clients.get(id) else { return Err(CommandError::NotLoggedOn) };
        let mut memory = client.pattern_bytes.reservation();
        // Regular expressions of filters take memory out of proportion to their text.
        memory.try_grow(filter.map_or(0, Filter::pattern_bytes))?;
        Ok(memory)
    }

    /// Whether a client has a permission for a topic.
    pub(crate) fn is_allowed(&self, id: ClientId, permission: Permission, topic: &str) -> bool {
        // Evaluated only where users are configured.
        let allows = || self.clients.get(id).is_some_and(|it| it.auth.allows(permission, topic));
        !self.auth.requires_logon() || allows()
    }

    /// Whether a client sees some messages only.
    pub(crate) fn is_restricted(&self, id: ClientId) -> bool {
        self.clients.get(id).is_some_and(|client| client.auth.is_restricted())
    }
}
