//! Subscriptions come and go.

use crate::auth::permissions::Permission;
use crate::client::ClientId;
use crate::command::error::CommandError;
use crate::command::publish::{CommandResult, check_options, refuse_bookmark, required};
use crate::command::query::{self as inquiry, QueryRequest};
use crate::delivery::patterns;
use crate::delivery::subscriptions::{FieldSelection, Subscription, TopicSelector};
use crate::engine::{Engine, Now};
use crate::topic::entry::{TopicEntry, is_pattern};
use lanecast_base::budget::Reservation;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::{Filter, Pattern};
use lanecast_sow::SubscriptionOptions;
use lanecast_wire::command::{Field, Header, HeaderWriter, Options as Wishes};
use std::sync::Arc;

#[cfg(test)]
#[path = "subscribe_tests.rs"]
mod tests;

/// The longest name of a subscription, in bytes.
const SUBSCRIPTION_NAME_MAX: usize = 255;
/// What a pattern for topics may take when compiled, in bytes.
const PATTERN_BYTES: usize = 256 << 10;
/// The steps of compiling one, or trying to, of those that a client may cost in a turn.
const PATTERN_STEPS: usize = 2_048;
/// Subscriptions that are taken out before others get their turn.
pub(crate) const PARTING_STEP: usize = 64;

/// A subscription to be.
#[derive(Debug)]
struct Wanted<'a> {
    client: ClientId,
    kind: MessageType,
    topic: &'a str,
    name: &'a str,
    filter: Option<Filter>,
    options: SubscriptionOptions,
    taste: FieldSelection,
}

/// What a subscription begins with, and what it goes on with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    state: bool,
    deltas: bool,
}

impl Asked {
    pub(crate) const FOLLOW: Self = Self { state: false, deltas: false };
    pub(crate) const STATE: Self = Self { state: true, deltas: false };
    pub(crate) const DELTAS: Self = Self { state: false, deltas: true };
    pub(crate) const STATE_AND_DELTAS: Self = Self { state: true, deltas: true };
}

/// The options of a subscription that begins with a question.
const WHEN_ASKING: [&str; 9] = [
    "none",
    "replace",
    "non_regex_topic",
    "oof",
    "conflation",
    "select",
    "no_empties",
    "top_n",
    "skip_n",
];

/// Those of one that does not.
const WHEN_FOLLOWING: [&str; 7] =
    ["none", "replace", "non_regex_topic", "oof", "conflation", "select", "no_empties"];

impl Engine {
    /// Subscribes.
    pub(crate) fn subscribe(
        &mut self,
        at: Now,
        id: ClientId,
        header: &Header<'_>,
        asked: Asked,
    ) -> Result<CommandResult, CommandError> {
        let topic = required(header, Field::Topic)?;
        let wishes = header.text(Field::Options).unwrap_or_default();
        let wishes = Wishes::parse(&wishes)?;
        let known = if asked.state { &WHEN_ASKING[..] } else { &WHEN_FOLLOWING };
        check_options(header, known)?;
        refuse_bookmark(header)?;
        let filter = self.filter(id, header)?;
        let options = SubscriptionOptions { delta: asked.deltas, ..inquiry::options(header)? };
        let is_fickle = filter.as_ref().is_some_and(|filter| !filter.is_pure());
        if is_fickle && (options.out_of_focus || options.delta) {
            return Err(CommandError::Fickle);
        }
        let given = header.text(Field::SubscriptionId);
        let name = given.or_else(|| header.text(Field::CommandId)).unwrap_or_default();
        if name.is_empty() || name.len() > SUBSCRIPTION_NAME_MAX || name.contains(',') {
            return Err(CommandError::SubscriptionName { max: SUBSCRIPTION_NAME_MAX });
        }
        // Those that have ended go as fast as others come.
        self.part(2);
        let limit = self.settings.subscriptions_max;
        let Some(client) = self.client(id) else { return Ok(CommandResult::Plainly) };
        let (kind, old) = (client.kind, client.subscriptions.get(&*name).copied());
        let taste = inquiry::taste(header, kind)?;
        if asked.deltas && matches!(kind, MessageType::Xml | MessageType::Binary) {
            return Err(CommandError::NoDeltas(kind));
        }
        if old.is_some() && !wishes.has("replace") {
            return Err(CommandError::SubscriptionExists(name.into_owned()));
        }
        if old.is_none() && client.subscriptions.len() >= limit {
            return Err(CommandError::Subscriptions(limit));
        }
        let by_pattern = is_pattern(&topic) && !wishes.has("non_regex_topic");
        if asked.state && by_pattern {
            return Err(CommandError::NotYet("questions to several topics at once"));
        }
        // Where nothing is kept there is nothing to ask for, and every message is new.
        let asks = asked.state && self.kept(kind, &topic).is_ok();
        if asked.state && !asks {
            inquiry::query(header, None)?;
        }
        let wanted =
            Wanted { client: id, kind, topic: &topic, name: &name, filter, options, taste };
        let number = if asks {
            self.file_asked(at, header, wanted)?
        } else {
            self.file(wanted, by_pattern)?
        };
        if let Some(old) = old {
            self.unsubscribe_number(old);
        }
        if let Some(client) = self.client(id) {
            client.subscriptions.insert(name.clone().into(), number);
        }
        Ok(match asked.state {
            true if asks => CommandResult::Asked,
            true => CommandResult::AskedInVain,
            false => CommandResult::Subscribed(name.into()),
        })
    }

    /// Adds a subscription to the topics that it is to; its number.
    fn file(&mut self, wanted: Wanted<'_>, by_pattern: bool) -> Result<u32, CommandError> {
        let number = self.subscriptions.next_number();
        let memory = self.pattern_memory(wanted.client, wanted.filter.as_ref())?;
        let scope = if by_pattern {
            TopicSelector::Topics(self.file_by_pattern(number, &wanted)?)
        } else {
            let topic = self.topic(wanted.client, wanted.kind, wanted.topic)?;
            let room = &mut self.topics[topic as usize];
            room.subscribe(number, wanted.filter.as_ref(), wanted.options, &mut self.world)?;
            TopicSelector::Topic(topic)
        };
        self.subscriptions.insert(wanted.subscription(scope, memory));
        Ok(number)
    }

    /// Adds a subscription to a pattern, and to the topics of which records are kept and whose
    /// names hold it; the pattern's place.
    fn file_by_pattern(&mut self, number: u32, wanted: &Wanted<'_>) -> Result<u32, CommandError> {
        let (id, kind, filter) = (wanted.client, wanted.kind, wanted.filter.as_ref());
        let place = self.pattern(id, kind, wanted.topic)?;
        let holds = |topic: &u32| {
            let name = self.topics[*topic as usize].name();
            let pattern = self.patterns.pattern(place);
            pattern.is_some_and(|pattern| pattern.is_match(name.as_bytes()))
                && self.may(id, Permission::Subscribe, name)
        };
        let topics: Vec<u32> = self.kept_of(kind).filter(holds).collect();
        let mut filed = self.patterns.subscribe(place, number, filter);
        let mut joined = 0;
        while filed.is_ok() && joined < topics.len() {
            let room = &mut self.topics[topics[joined] as usize];
            filed = room.subscribe(number, filter, wanted.options, &mut self.world);
            joined += 1;
        }
        if let Err(error) = filed {
            for undone in &topics[..joined] {
                self.topics[*undone as usize].unsubscribe(number, &mut self.world);
            }
            self.patterns.unsubscribe(place, number);
            return Err(error);
        }
        Ok(place)
    }

    /// The place of a pattern, compiled if no subscription has it.
    fn pattern(
        &mut self,
        id: ClientId,
        kind: MessageType,
        text: &str,
    ) -> Result<u32, CommandError> {
        let Some(Some(client)) = self.clients.get(id.0 as usize) else {
            return Err(CommandError::NotLoggedOn);
        };
        let rights = client.pass.rights.as_ref().filter(|_| self.guard.users.is_some());
        let wanted = patterns::Wanted { kind, text, rights };
        if let Some(place) = self.patterns.find(&wanted) {
            return Ok(place);
        }
        let brought = Arc::clone(&client.patterns);
        // One is the client's own, and one this.
        let count = Arc::strong_count(&brought).saturating_sub(2);
        self.patterns.check(count, self.settings.patterns_max)?;
        let mut memory = client.pattern_bytes.reservation();
        let pattern = Pattern::new(text, PATTERN_BYTES).map_err(CommandError::TopicPattern);
        let filed = pattern.and_then(|pattern| {
            memory.try_grow(pattern.bytes())?;
            Ok(self.patterns.insert(&wanted, pattern, (brought, memory)))
        });
        self.note_compiled(id, PATTERN_STEPS);
        filed
    }

    /// What a filter's patterns take of what its client may use.
    pub(crate) fn pattern_memory(
        &mut self,
        id: ClientId,
        filter: Option<&Filter>,
    ) -> Result<Reservation, CommandError> {
        let Some(client) = self.client(id) else { return Err(CommandError::NotLoggedOn) };
        let mut memory = client.pattern_bytes.reservation();
        memory.try_grow(filter.map_or(0, Filter::pattern_bytes))?;
        Ok(memory)
    }

    /// Adds a subscription that begins with an answer; its number.
    fn file_asked(
        &mut self,
        at: Now,
        header: &Header<'_>,
        mut wanted: Wanted<'_>,
    ) -> Result<u32, CommandError> {
        let topic = self.kept(wanted.kind, wanted.topic)?;
        let number = self.subscriptions.next_number();
        let memory = self.pattern_memory(wanted.client, wanted.filter.as_ref())?;
        let (filter, taste) = (wanted.filter.take(), wanted.taste.clone());
        let question = QueryRequest { filter, taste, follow: Some((number, wanted.options)) };
        let client = wanted.client;
        self.subscriptions.insert(wanted.subscription(TopicSelector::Topic(topic), memory));
        let asked = self.ask(at, client, header, topic, question);
        if asked.is_err() {
            self.subscriptions.remove(number);
        }
        asked.map(|()| number)
    }

    pub(crate) fn unsubscribe(
        &mut self,
        id: ClientId,
        header: &Header<'_>,
    ) -> Result<(), CommandError> {
        let names = required(header, Field::SubscriptionId)?;
        let Some(client) = self.client(id) else { return Ok(()) };
        let numbers: Vec<u32> = if names == "all" {
            client.subscriptions.drain().map(|(_, number)| number).collect()
        } else {
            let names = names.split(',').map(str::trim);
            names.filter_map(|name| client.subscriptions.remove(name)).collect()
        };
        self.end_subscriptions(id, numbers, false);
        Ok(())
    }

    /// Ends subscriptions of a client, and with `all` its queries: nothing more is delivered for
    /// them. Where they stand they are taken out some at a time.
    pub(crate) fn end_subscriptions(
        &mut self,
        id: ClientId,
        numbers: impl IntoIterator<Item = u32>,
        all: bool,
    ) {
        for number in numbers {
            self.subscriptions.silence(number);
            self.parting.push_back(number);
        }
        for number in &self.world.kept.clone() {
            let subscriptions = &self.subscriptions;
            let has_ended = |number: Option<u32>| {
                all || number.is_some_and(|number| subscriptions.route(number).is_none())
            };
            if let TopicEntry::SowTopic(kept) = &mut self.topics[*number as usize] {
                kept.forget(id, has_ended, &mut self.world);
            }
        }
        self.part(PARTING_STEP);
    }

    /// Takes up to `limit` subscriptions out that have ended; whether there are more.
    pub(crate) fn part(&mut self, limit: usize) -> bool {
        let count = limit.min(self.parting.len());
        let numbers: Vec<u32> = self.parting.drain(..count).collect();
        numbers.into_iter().for_each(|number| self.unsubscribe_number(number));
        !self.parting.is_empty()
    }

    /// Takes a subscription out wherever it is.
    fn unsubscribe_number(&mut self, number: u32) {
        let Some(subscription) = self.subscriptions.remove(number) else { return };
        match subscription.scope {
            TopicSelector::Topic(topic) => {
                self.topics[topic as usize].unsubscribe(number, &mut self.world);
            }
            TopicSelector::Topics(place) => {
                self.patterns.unsubscribe(place, number);
                let topics: Vec<u32> = self.kept_of(subscription.kind).collect();
                for topic in topics {
                    self.topics[topic as usize].unsubscribe(number, &mut self.world);
                }
            }
        }
    }
}

impl Wanted<'_> {
    fn subscription(self, scope: TopicSelector, memory: Reservation) -> Subscription {
        let Self { client, kind, name, taste, .. } = self;
        Subscription { client, shown: shown(name), kind, scope, taste, _memory: memory }
    }
}

/// A text as it stands within the quotes of a header.
fn shown(text: &str) -> Box<[u8]> {
    let mut written = Vec::new();
    HeaderWriter::record(&mut written).text(Field::SubscriptionId, text).end();
    let before = Field::SubscriptionId.written().len() + r#"{"":""#.len();
    written[before..written.len() - r#""}"#.len()].into()
}
