//! Subscriptions come and go.

use crate::arrival::{Done, check_options, refuse_bookmark, required};
use crate::client::ClientId;
use crate::hub::{Hub, Moment};
use crate::inquiry::{self, Question};
use crate::refusal::Refusal;
use crate::rights::Act;
use crate::subscription::{Scope, Subscription, Taste};
use crate::topic::is_pattern;
use lanecast_filter::kind::Kind;
use lanecast_filter::{Filter, Pattern};
use lanecast_sow::Options;
use lanecast_wire::command::{Field, Header, HeaderWriter, Options as Wishes};

/// The longest name of a subscription, in bytes.
const SUBSCRIPTION_NAME_MAX: usize = 255;
/// What a pattern for topics may take when compiled, in bytes.
const PATTERN_BYTES: usize = 256 << 10;

/// A subscription to be.
#[derive(Debug)]
struct Wanted<'a> {
    client: ClientId,
    kind: Kind,
    topic: &'a str,
    name: &'a str,
    filter: Option<Filter>,
    options: Options,
    taste: Taste,
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

impl Hub {
    /// Subscribes.
    pub(crate) fn subscribe(
        &mut self,
        at: Moment,
        id: ClientId,
        header: &Header<'_>,
        asked: Asked,
    ) -> Result<Done, Refusal> {
        let topic = required(header, Field::Topic)?;
        let wishes = header.text(Field::Options).unwrap_or_default();
        let wishes = Wishes::parse(&wishes)?;
        let known = if asked.state { &WHEN_ASKING[..] } else { &WHEN_FOLLOWING };
        check_options(header, known)?;
        refuse_bookmark(header)?;
        let filter = self.filter(id, header)?;
        let options = Options { delta: asked.deltas, ..inquiry::options(header)? };
        let is_fickle = filter.as_ref().is_some_and(|filter| !filter.looks_back());
        if is_fickle && (options.out_of_focus || options.delta) {
            return Err(Refusal::Fickle);
        }
        let given = header.text(Field::SubscriptionId);
        let name = given.or_else(|| header.text(Field::CommandId)).unwrap_or_default();
        if name.is_empty() || name.len() > SUBSCRIPTION_NAME_MAX || name.contains(',') {
            return Err(Refusal::SubscriptionName { max: SUBSCRIPTION_NAME_MAX });
        }
        let limit = self.settings.subscriptions_max;
        let Some(client) = self.client(id) else { return Ok(Done::Plainly) };
        let (kind, old) = (client.kind, client.subscriptions.get(&*name).copied());
        let taste = inquiry::taste(header, kind)?;
        if asked.deltas && matches!(kind, Kind::Xml | Kind::Binary) {
            return Err(Refusal::NoDeltas(kind));
        }
        if old.is_some() && !wishes.has("replace") {
            return Err(Refusal::SubscriptionExists(name.into_owned()));
        }
        if old.is_none() && client.subscriptions.len() >= limit {
            return Err(Refusal::Subscriptions(limit));
        }
        let by_pattern = is_pattern(&topic) && !wishes.has("non_regex_topic");
        if asked.state && by_pattern {
            return Err(Refusal::NotYet("questions to several topics at once"));
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
            true if asks => Done::Asked,
            true => Done::AskedInVain,
            false => Done::Subscribed(name.into()),
        })
    }

    /// Adds a subscription to the topics that it is to; its number.
    fn file(&mut self, wanted: Wanted<'_>, by_pattern: bool) -> Result<u32, Refusal> {
        let Wanted { client, kind, topic, name, filter, options, taste } = wanted;
        let number = self.subscriptions.next_number();
        let scope = if by_pattern {
            let pattern = Pattern::new(topic, PATTERN_BYTES).map_err(Refusal::TopicPattern)?;
            let topics = self.topics_of(kind);
            let holds = |topic: &u32| {
                let name = self.topics[*topic as usize].name();
                pattern.is_in(name.as_bytes()) && self.may(client, Act::Subscribe, name)
            };
            let topics: Vec<u32> = topics.into_iter().filter(holds).collect();
            for (done, topic) in topics.iter().enumerate() {
                let room = &mut self.topics[*topic as usize];
                let joined = room.subscribe(number, filter.as_ref(), options, &mut self.world);
                if let Err(error) = joined {
                    for undone in &topics[..done] {
                        self.topics[*undone as usize].unsubscribe(number, &mut self.world);
                    }
                    return Err(error);
                }
            }
            self.patterns.push(number);
            Scope::Topics(pattern)
        } else {
            let topic = self.topic(kind, topic)?;
            let room = &mut self.topics[topic as usize];
            room.subscribe(number, filter.as_ref(), options, &mut self.world)?;
            Scope::Topic(topic)
        };
        let shown = shown(name);
        let subscription = Subscription { client, shown, kind, scope, filter, options, taste };
        self.subscriptions.insert(subscription);
        Ok(number)
    }

    /// Adds a subscription that begins with an answer; its number.
    fn file_asked(
        &mut self,
        at: Moment,
        header: &Header<'_>,
        wanted: Wanted<'_>,
    ) -> Result<u32, Refusal> {
        let Wanted { client, kind, topic, name, filter, options, taste } = wanted;
        let topic = self.kept(kind, topic)?;
        let number = self.subscriptions.next_number();
        let (shown, scope) = (shown(name), Scope::Topic(topic));
        let follow = Some((number, options));
        let question = Question { filter: filter.clone(), taste: taste.clone(), follow };
        let subscription = Subscription { client, shown, kind, scope, filter, options, taste };
        self.subscriptions.insert(subscription);
        let asked = self.ask(at, client, header, topic, question);
        if asked.is_err() {
            self.subscriptions.remove(number);
        }
        asked.map(|()| number)
    }

    pub(crate) fn unsubscribe(&mut self, id: ClientId, header: &Header<'_>) -> Result<(), Refusal> {
        let names = required(header, Field::SubscriptionId)?;
        let Some(client) = self.client(id) else { return Ok(()) };
        let numbers: Vec<u32> = if names == "all" {
            client.subscriptions.drain().map(|(_, number)| number).collect()
        } else {
            let names = names.split(',').map(str::trim);
            names.filter_map(|name| client.subscriptions.remove(name)).collect()
        };
        numbers.into_iter().for_each(|number| self.unsubscribe_number(number));
        Ok(())
    }
}

/// A text as it stands within the quotes of a header.
fn shown(text: &str) -> Box<[u8]> {
    let mut written = Vec::new();
    HeaderWriter::record(&mut written).text(Field::SubscriptionId, text).end();
    let before = Field::SubscriptionId.written().len() + r#"{"":""#.len();
    written[before..written.len() - r#""}"#.len()].into()
}
