//! Commands of clients.

use crate::client::{CachedHeader, ClientId, Heartbeat};
use crate::command::acknowledgement::{DUPLICATE, Reply};
use crate::command::error::CommandError;
use crate::command::query::{self as inquiry, Deleted, QueryRequest};
use crate::command::subscribe::Asked;
use crate::config::server_config::ServerConfig;
use crate::engine::{DisconnectReason, Engine, Now};
use crate::topic::entry::{NAME_MAX, TopicEntry, is_name};
use lanecast_filter::Filter;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::Publication;
use lanecast_wire::command::{Ack, Acks, Command, Field, Header, Options as Wishes};
use std::sync::Arc;
use std::time::Duration;

/// The longest time between signs of life, in seconds.
const HEARTBEAT_MAX: u64 = 3_600;

/// What the acknowledgement of a command says beyond that.
#[derive(Debug)]
pub(crate) enum CommandResult {
    Plainly,
    /// It had been done before.
    Duplicate {
        is_deletion: bool,
    },
    /// The rest follows the answer.
    Asked,
    /// The answer is that there is nothing.
    AskedInVain,
    Deleted(Deleted),
    /// It goes on for several turns, and is acknowledged then.
    Later,
    LoggedOn {
        name: Box<str>,
        sequence: u64,
    },
    Subscribed(Box<str>),
}

impl CommandResult {
    fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate { .. })
    }
}

impl Engine {
    /// Does what the payload of a client's frame says.
    pub fn receive(&mut self, moment: Now, id: ClientId, payload: &[u8]) {
        let Some(client) = self.client(id) else { return };
        client.heard = moment.now;
        if client.is_leaving {
            return;
        }
        if self.publish_as_usual(moment, id, payload) {
            return self.note_tried(id);
        }
        let Ok(header) = Header::parse(payload) else {
            return self.depart(id, DisconnectReason::Garbage);
        };
        if !self.admits(id, &header, payload) || self.holds_back(id, &header, payload) {
            return;
        }
        self.counters.commands += 1;
        let (acks, done) = match header.acks() {
            Ok(acks) => {
                self.reply(id, &header, acks, |reply| {
                    reply.success(Ack::Received, |header| header)
                });
                (acks, self.perform(moment, id, &header))
            }
            Err(error) => (Acks::NONE.with(Ack::Processed), Err(CommandError::Header(error))),
        };
        match &done {
            Ok(done) => self.reply(id, &header, acks, |reply| succeed(reply, done)),
            Err(why) => {
                self.counters.refused += 1;
                self.reply(id, &header, acks, |reply| fail(reply, why));
            }
        }
        self.note_tried(id);
        let is_later = matches!(done, Ok(CommandResult::Later));
        if !is_later && header.command().is_ok_and(is_persisted) {
            let done = done.map(|done| done.is_duplicate());
            self.promise_if_asked(id, &header, acks, done);
        }
    }

    /// Answers that a command is not done.
    pub(crate) fn refuse(
        &mut self,
        id: ClientId,
        header: &Header<'_>,
        acks: Acks,
        why: &CommandError,
    ) {
        self.reply(id, header, acks, |reply| fail(reply, why));
    }

    pub(crate) fn reply(
        &mut self,
        id: ClientId,
        header: &Header<'_>,
        acks: Acks,
        write: impl FnOnce(&mut Reply<'_>),
    ) {
        if acks != Acks::NONE {
            self.answer(id, |out| write(&mut Reply::new(header, acks, out)));
        }
    }

    /// Writes an answer to something that a client asked for: answers that it does not read keep
    /// what else it sends from being read.
    pub(crate) fn answer(&mut self, id: ClientId, write: impl FnOnce(&mut Vec<u8>)) {
        let memory_max = self.overflow.memory_max;
        let Some(client) = self.client(id) else { return };
        let before = client.outbox.len();
        write(client.outbox.bytes());
        let bytes = client.outbox.len() - before;
        if bytes > 0 {
            client.outbox.count_answers(bytes, memory_max);
            self.note(id);
        }
    }

    fn perform(
        &mut self,
        at: Now,
        id: ClientId,
        header: &Header<'_>,
    ) -> Result<CommandResult, CommandError> {
        self.entitle(id, header)?;
        match header.command()? {
            Command::Publish => return self.publish(at, id, header, false),
            Command::DeltaPublish => return self.publish(at, id, header, true),
            Command::Logon => return self.log_on(at, id, header),
            Command::Subscribe => return self.subscribe(at, id, header, Asked::FOLLOW),
            Command::Unsubscribe => self.unsubscribe(id, header)?,
            // Commands are done in their order, so all before this one is.
            Command::Flush => {}
            Command::Sow => return self.sow(at, id, header),
            Command::SowAndSubscribe => return self.subscribe(at, id, header, Asked::STATE),
            Command::DeltaSubscribe => return self.subscribe(at, id, header, Asked::DELTAS),
            Command::SowAndDeltaSubscribe => {
                return self.subscribe(at, id, header, Asked::STATE_AND_DELTAS);
            }
            Command::SowDelete => return self.delete(at, id, header),
            Command::Heartbeat => self.heartbeat(at, id, header)?,
            other => return Err(CommandError::of_other(other)),
        }
        Ok(CommandResult::Plainly)
    }

    /// Publishes; with `merges` only what changes of a kept record.
    fn publish(
        &mut self,
        at: Now,
        id: ClientId,
        header: &Header<'_>,
        merges: bool,
    ) -> Result<CommandResult, CommandError> {
        self.counters.published += 1;
        let name = required(header, Field::Topic)?;
        let sequence = header.number(Field::Sequence)?;
        if self.is_duplicate(id, sequence, at.unix_ns)? {
            return Ok(CommandResult::Duplicate { is_deletion: false });
        }
        let Some(client) = self.client(id) else { return Ok(CommandResult::Plainly) };
        let (kind, its_name) = (client.kind, client.name.clone());
        let numbered_as = client.numbered_as.clone();
        let publisher = its_name.as_deref().unwrap_or_default();
        let topic = if merges { self.kept(kind, &name)? } else { self.topic(id, kind, &name)? };
        if matches!(&self.topics[topic as usize], TopicEntry::SowTopic(kept) if kept.is_durable())
            && let Some(client) = self.client(id)
        {
            client.writes_durably = true;
        }
        let correlation = header.text(Field::CorrelationId);
        let key = header.text(Field::SowKey);
        let lifetime = header.number(Field::Expiration)?.map(lifetime);
        let (bytes, key) = (header.body(), key.as_deref());
        let numbered = numbered_as.as_deref().zip(sequence);
        let numbered = numbered.filter(|_| self.sequences.is_on());
        let publication =
            Publication { bytes, key, lifetime, client: publisher, client_sequence: numbered };
        let taken = self.take(topic, &publication, merges, at.unix_ns, correlation.as_deref());
        // What could not be stored may be sent again.
        if let Some((name, sequence)) = numbered
            && !matches!(taken, Err(CommandError::Unstored(_)))
        {
            self.sequences.remember(name, sequence, at.unix_ns);
        }
        taken?;
        if !merges
            && header.has_just(&[Field::Command, Field::Topic])
            && let Some(client) = self.client(id)
        {
            let header = header.bytes().into();
            client.usual = Some(Box::new(CachedHeader { header, topic, publisher: its_name }));
        }
        Ok(CommandResult::Plainly)
    }

    /// Publishes if the header is the same as the last one, byte by byte; whether it is.
    fn publish_as_usual(&mut self, at: Now, id: ClientId, payload: &[u8]) -> bool {
        let Some(client) = self.client(id) else { return false };
        let Some(usual) = client.usual.take() else { return false };
        let body = payload.strip_prefix(&*usual.header);
        if let Some(bytes) = body {
            self.counters.commands += 1;
            self.counters.published += 1;
            let client = usual.publisher.as_deref().unwrap_or_default();
            let publication = Publication { client, ..Publication::of(bytes) };
            let taken = self.take(usual.topic, &publication, false, at.unix_ns, None);
            // Nobody has asked to be told.
            self.counters.refused += u64::from(taken.is_err());
        }
        if let Some(client) = self.client(id) {
            client.usual = Some(usual);
        }
        body.is_some()
    }

    fn sow(
        &mut self,
        at: Now,
        id: ClientId,
        header: &Header<'_>,
    ) -> Result<CommandResult, CommandError> {
        let name = required(header, Field::Topic)?;
        check_options(header, &["none", "top_n", "skip_n", "select"])?;
        refuse_bookmark(header)?;
        let filter = self.filter(id, header)?;
        let Some(client) = self.client(id) else { return Ok(CommandResult::Plainly) };
        let kind = client.kind;
        let taste = inquiry::taste(header, kind)?;
        let topic = self.kept(kind, &name)?;
        self.ask(at, id, header, topic, QueryRequest { filter, taste, follow: None })?;
        Ok(CommandResult::Asked)
    }

    /// The filter of a command, if it has one, or the client sees some messages only.
    pub(crate) fn filter(
        &mut self,
        id: ClientId,
        header: &Header<'_>,
    ) -> Result<Option<Filter>, CommandError> {
        let text = header.text(Field::Filter).filter(|text| !text.trim().is_empty());
        let ServerConfig { name, filters, .. } = &self.settings;
        let mut work = 0;
        let mut parse = |text: &str| {
            let filter = Filter::parse_counted(text, filters, &mut work);
            filter.map(|filter| filter.with_instance_name(name)).map_err(Box::new)
        };
        // By itself first: its faults are told where the client finds them.
        let mut filter = text.as_deref().map(&mut parse).transpose();
        let narrowed = self.narrowed(id, text.as_deref().unwrap_or_default());
        if let Some(narrowed) = narrowed.filter(|_| filter.is_ok()) {
            filter = parse(&narrowed).map(Some);
        }
        self.note_compiled(id, work);
        Ok(filter?)
    }

    fn log_on(
        &mut self,
        at: Now,
        id: ClientId,
        header: &Header<'_>,
    ) -> Result<CommandResult, CommandError> {
        let Some(client) = self.client(id) else { return Ok(CommandResult::Plainly) };
        if client.has_logged_on {
            return Err(CommandError::LoggedOn);
        }
        // It may be somebody else's from now on, and of another type.
        client.usual = None;
        if let Some(kind) = header.text(Field::MessageType) {
            let known = kind.parse::<MessageType>();
            client.kind = known.map_err(|_| CommandError::MessageType(kind.into_owned()))?;
        }
        let user = header.text(Field::UserId).map(|user| Box::from(&*user));
        client.user.clone_from(&user);
        let name: Box<str> = header.text(Field::ClientName).unwrap_or_default().into();
        let mut numbered_as = None;
        if !name.is_empty() {
            self.take_name(id, &name, user.as_deref())?;
            numbered_as = Some(self.numbered_as(user.as_deref(), &name));
        }
        let sequence = numbered_as.as_deref().and_then(|name| self.sequences.last(name));
        let sequence = sequence.unwrap_or(0);
        if let Some(client) = self.client(id) {
            client.has_logged_on = true;
            client.numbered_as = numbered_as;
        }
        Ok(self.logged_on(at, id, header, name, sequence))
    }

    /// By what the numbers of a client's messages are remembered. Where users are known, nobody is
    /// to use up another one's numbers, so the user's name is part of it.
    fn numbered_as(&self, user: Option<&str>, name: &str) -> Arc<str> {
        match (&self.guard.users, user) {
            (Some(_), Some(user)) => format!("{user}\n{name}").into(),
            _ => name.into(),
        }
    }

    /// A name is one connection's: a new one of the same user takes it from the old one.
    fn take_name(
        &mut self,
        id: ClientId,
        name: &str,
        user: Option<&str>,
    ) -> Result<(), CommandError> {
        if !is_name(name) {
            return Err(CommandError::ClientName { max: NAME_MAX });
        }
        if let Some(other) = self.in_use.get(name).copied() {
            let same = self.client(other).is_some_and(|other| other.user.as_deref() == user);
            if !same {
                return Err(CommandError::NameInUse(name.to_owned()));
            }
            self.depart(other, DisconnectReason::Displaced);
        }
        self.in_use.insert(name.into(), id);
        if let Some(client) = self.client(id) {
            client.name = Some(name.into());
        }
        Ok(())
    }

    fn heartbeat(
        &mut self,
        at: Now,
        id: ClientId,
        header: &Header<'_>,
    ) -> Result<(), CommandError> {
        let Some(client) = self.client(id) else { return Ok(()) };
        let wish = header.text(Field::Options).or_else(|| header.text(Field::Heartbeat));
        let wish = wish.unwrap_or_default();
        match wish.split_once(',').unwrap_or((&*wish, "")) {
            ("beat", "") => {}
            ("stop", "") => client.pulse = None,
            ("start", seconds) => {
                let seconds = seconds.trim().parse::<u64>().ok();
                let seconds = seconds.filter(|seconds| (1..=HEARTBEAT_MAX).contains(seconds));
                let interval = seconds.ok_or(CommandError::Heartbeat)? * 1_000_000_000;
                client.pulse = Some(Heartbeat { interval, next: at.now.saturating_add(interval) });
            }
            _ => return Err(CommandError::Heartbeat),
        }
        Ok(())
    }
}

/// How long a record lives whose publisher gives so many seconds: for ever if none.
fn lifetime(seconds: u64) -> Duration {
    if seconds == 0 { Duration::MAX } else { Duration::from_secs(seconds) }
}

/// Refuses what is to begin somewhere else than now.
pub(crate) fn refuse_bookmark(header: &Header<'_>) -> Result<(), CommandError> {
    match header.text(Field::Bookmark) {
        Some(_) => Err(CommandError::NotYet("bookmarks")),
        None => Ok(()),
    }
}

pub(crate) fn check_options(header: &Header<'_>, known: &[&str]) -> Result<(), CommandError> {
    let list = header.text(Field::Options).unwrap_or_default();
    for (name, value) in Wishes::parse(&list)?.iter() {
        let wants_value = ["conflation", "select", "top_n", "skip_n"].contains(&name);
        match value {
            _ if !known.contains(&name) => return Err(CommandError::Option(name.to_owned())),
            None if wants_value => return Err(CommandError::NoValue(name.to_owned())),
            Some(_) if !wants_value => return Err(CommandError::Value(name.to_owned())),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn required<'a>(
    header: &Header<'a>,
    field: Field,
) -> Result<std::borrow::Cow<'a, str>, CommandError> {
    header.text(field).filter(|text| !text.is_empty()).ok_or(CommandError::Missing(field))
}

pub(crate) fn succeed(reply: &mut Reply<'_>, done: &CommandResult) {
    if matches!(done, CommandResult::Later) {
        return;
    }
    reply.success(Ack::Processed, |header| match done {
        CommandResult::Duplicate { .. } => header.text(Field::Reason, DUPLICATE),
        CommandResult::Later
        | CommandResult::Plainly
        | CommandResult::Asked
        | CommandResult::AskedInVain
        | CommandResult::Deleted(_) => header,
        CommandResult::Subscribed(name) => header.text(Field::SubscriptionId, name),
        CommandResult::LoggedOn { name, sequence } => {
            let header = header.text(Field::Version, env!("CARGO_PKG_VERSION"));
            let named = (!name.is_empty()).then_some(&**name);
            header.text_if(Field::ClientName, named).number(Field::Sequence, *sequence)
        }
    });
    match done {
        CommandResult::Asked => {}
        CommandResult::AskedInVain => {
            reply.empty_group();
            reply.success(Ack::Completed, |header| header);
            reply.success(Ack::Stats, |header| {
                let header = header.number(Field::Matches, 0).number(Field::TopicMatches, 0);
                header.number(Field::RecordsReturned, 0)
            });
        }
        CommandResult::Deleted(Deleted { records, deleted }) => {
            reply.success(Ack::Completed, |header| header);
            reply.success(Ack::Stats, |header| {
                let header = header.number(Field::RecordsDeleted, *deleted);
                header.number(Field::Matches, *deleted).number(Field::TopicMatches, *records)
            });
        }
        CommandResult::Duplicate { is_deletion } => {
            reply.success(Ack::Completed, |header| header.text(Field::Reason, DUPLICATE));
            if *is_deletion {
                reply.success(Ack::Stats, |header| {
                    let header = header.text(Field::Reason, DUPLICATE);
                    let header = header.number(Field::RecordsDeleted, 0);
                    header.number(Field::Matches, 0).number(Field::TopicMatches, 0)
                });
            }
        }
        _ => reply.success(Ack::Completed, |header| header),
    }
}

/// Whether a command's doings can be durable.
fn is_persisted(command: Command) -> bool {
    let (publishes, deletes) = (Command::Publish, Command::SowDelete);
    [publishes, Command::DeltaPublish, deletes, Command::Flush].contains(&command)
}

/// A refused command fails at the first step that was asked for.
pub(crate) fn fail(reply: &mut Reply<'_>, why: &CommandError) {
    let steps = [Ack::Processed, Ack::Completed, Ack::Stats];
    let asked = steps.into_iter().find(|ack| reply.acks.has(*ack));
    if let Some(ack) = asked {
        reply.failure(ack, why);
    }
}
