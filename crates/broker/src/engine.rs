//! What the server decides, without sockets and without a clock.

use crate::Nanos;
use crate::auth::authenticator::Authenticator;
use crate::client::{Client, ClientId};
use crate::command::acknowledgement as reply;
use crate::command::error::CommandError;
use crate::command::logon::PendingLogon;
use crate::config::server_config::ServerConfig;
use crate::delivery::fanout::{Fanout, SendQueues};
use crate::delivery::message::{OutboundMessage, Payload, Post};
use crate::delivery::patterns::Patterns;
use crate::delivery::subscriptions::Subscriptions;
use crate::net::source::Source;
use crate::queue::offline_queue::OfflineLimits;
use crate::queue::slow_consumers::SlowConsumerReason;
use crate::stats::counters::Counters;
use crate::topic::catalog::{Catalog, CatalogError, numbers};
use crate::topic::durable_store::DurableStore;
use crate::topic::entry::TopicEntry;
use crate::topic::expiry::Sweep;
use crate::topic::sequences::SequenceStore;
use foldhash::HashMap;
use lanecast_base::budget::Budget;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::Publication;
use lanecast_wire::command::Command;
use std::collections::VecDeque;
use std::sync::Arc;

/// A client that agreed on signs of life may miss so many of them.
const MISSED_MAX: Nanos = 3;

/// When so much has been written for outboxes to share, it is sent before more is read: it is
/// still in the cache then.
const ROUND_BYTES: usize = 64 << 10;

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// By a clock that only goes forward.
    pub now: Nanos,
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
}

/// Why a client is disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// More waited for it than may.
    Slow,
    /// It missed the signs of life that it had asked for.
    Silent,
    /// Another connection took its name.
    Displaced,
    /// What it sent is no command.
    Garbage,
    /// What it published before it logged on is not on disk.
    Undurable,
    /// It did not say who it is, too often.
    Uninvited,
}

impl DisconnectReason {
    /// What the client is told, where there is a way to.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Slow => "it read too slowly",
            Self::Silent => "it gave no sign of life",
            Self::Displaced => "another connection took its name",
            Self::Garbage => "what it sent is no command",
            Self::Undurable => "what it published before is not on disk yet",
            Self::Uninvited => "it did not say who it is",
        }
    }
}

/// Clients, topics, and who wants what.
#[derive(Debug)]
pub struct Engine {
    pub(crate) settings: ServerConfig,
    pub(crate) guard: Authenticator,
    pub(crate) clients: Vec<Option<Client>>,
    free: Vec<ClientId>,
    pub(crate) topics: Vec<TopicEntry>,
    pub(crate) world: Catalog,
    /// The numbers of topics by name, for each type of messages.
    pub(crate) numbers: HashMap<MessageType, HashMap<Box<str>, u32>>,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) patterns: Patterns,
    pub(crate) sweep: Sweep,
    /// Clients whose commands have cost enough for this turn.
    pub(crate) tired: Vec<ClientId>,
    /// Subscriptions that have ended, and are to be taken out.
    pub(crate) parting: VecDeque<u32>,
    /// Topics with records that are being deleted.
    pub(crate) deleting: Vec<u32>,
    /// What sorting may take, for all clients.
    sort_bytes: Arc<Budget>,
    /// What the patterns of filters may take, those of all clients.
    pattern_bytes: Arc<Budget>,
    /// The last sequence number of each named client.
    pub(crate) sequences: SequenceStore,
    pub(crate) in_use: HashMap<Box<str>, ClientId>,
    /// Clients that are not read until they resume, each once.
    pub(crate) stopped: Vec<ClientId>,
    /// Logons that wait for the disk.
    pub(crate) logons: Vec<PendingLogon>,
    dirty: Vec<ClientId>,
    slow: Vec<(ClientId, SlowConsumerReason)>,
    /// More waits in memory for some client than should.
    is_pressed: bool,
    /// Some client that had enough to read has not any more.
    pub(crate) has_room_again: bool,
    pub(crate) overflow: OfflineLimits,
    /// When slow clients are to be looked after.
    pub(crate) slow_due: Option<Nanos>,
    /// They are not looked at before.
    pub(crate) slow_next: Nanos,
    pub(crate) words: VecDeque<String>,
    departures: Vec<(ClientId, DisconnectReason)>,
    /// The subscriptions that the message at hand is for.
    matches: Vec<u32>,
    /// Topics with queries that are being answered.
    pub(crate) busy: Vec<u32>,
    pub(crate) fanout: Fanout,
    pub(crate) counters: Counters,
}

impl Engine {
    /// Without clients.
    ///
    /// # Errors
    /// If a topic that is to be kept, or a view, cannot be made.
    pub fn new(settings: ServerConfig) -> Result<Self, CatalogError> {
        let (world, topics) = Catalog::open(&settings)?;
        let known = world.disk.iter().flat_map(DurableStore::client_sequences);
        let known = known.map(|(name, client)| (name, client.sequence, client.unix_ns));
        let sequences = SequenceStore::new(&settings, known);
        let forgotten = world.forgotten.iter();
        let words = forgotten
            .map(|name| format!("dropped {name} from disk, as storage.forget says"))
            .collect();
        let spooling = settings.spooling.clone();
        let memory_max = settings.send_queue_bytes_max;
        let sort_bytes = Budget::new(settings.sort_bytes_max);
        Ok(Self {
            settings,
            guard: Authenticator::default(),
            world,
            clients: Vec::new(),
            free: Vec::new(),
            numbers: numbers(&topics),
            topics,
            subscriptions: Subscriptions::default(),
            patterns: Patterns::default(),
            sweep: Sweep::default(),
            tired: Vec::new(),
            parting: VecDeque::new(),
            deleting: Vec::new(),
            sort_bytes,
            pattern_bytes: Budget::new(usize::MAX),
            sequences,
            in_use: HashMap::default(),
            stopped: Vec::new(),
            logons: Vec::new(),
            dirty: Vec::new(),
            slow: Vec::new(),
            is_pressed: false,
            has_room_again: false,
            overflow: OfflineLimits { spooling, memory_max, ..OfflineLimits::default() },
            slow_due: None,
            slow_next: 0,
            words,
            departures: Vec::new(),
            matches: Vec::new(),
            busy: Vec::new(),
            fanout: Fanout::default(),
            counters: Counters::default(),
        })
    }

    /// A client is there; none if there are too many.
    pub fn connect(&mut self, now: Nanos) -> Option<ClientId> {
        if self.is_full() {
            self.counters.rejected_clients += 1;
            return None;
        }
        self.counters.connected += 1;
        let pattern_bytes = self.pattern_bytes.child(self.settings.client_patterns_bytes);
        let sort_bytes = self.sort_bytes.child(self.settings.client_sort_bytes);
        let client = Some(Client::new(now, pattern_bytes, sort_bytes));
        Some(match self.free.pop() {
            Some(id) => {
                self.clients[id.0 as usize] = client;
                id
            }
            None => {
                self.clients.push(client);
                ClientId(self.clients.len() as u32 - 1)
            }
        })
    }

    /// Where a client comes from.
    pub(crate) fn came_from(&mut self, id: ClientId, source: Source) {
        if let Some(client) = self.client(id) {
            client.source = source;
        }
    }

    /// A client has gone, and with it its subscriptions.
    pub fn disconnect(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id.0 as usize).and_then(Option::take) else {
            return;
        };
        self.end_subscriptions(id, client.subscriptions.into_values(), true);
        if let Some(disk) = &mut self.world.disk {
            disk.forget(id);
        }
        if let Some(name) = client.name
            && self.in_use.get(&*name) == Some(&id)
        {
            self.in_use.remove(&*name);
        }
        self.guard.logons.forget(id);
        self.dirty.retain(|other| *other != id);
        self.stopped.retain(|other| *other != id);
        self.logons.retain(|logon| logon.client != id);
        self.departures.retain(|(other, _)| *other != id);
        self.free.push(id);
    }

    /// A client that has something to be sent, each once.
    pub fn next_dirty(&mut self) -> Option<ClientId> {
        let id = self.dirty.pop()?;
        if let Some(client) = self.client(id) {
            client.is_dirty = false;
        }
        Some(id)
    }

    /// A client that is to be disconnected.
    pub fn next_disconnect(&mut self) -> Option<(ClientId, DisconnectReason)> {
        while let Some((id, why)) = self.slow.pop() {
            self.counters.slow_disconnects += 1;
            self.note_word(id, &why);
            self.departures.push((id, DisconnectReason::Slow));
        }
        self.departures.pop()
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        let disk = self.world.disk.as_ref().map(DurableStore::counters).unwrap_or_default();
        Counters {
            not_stored: disk.not_stored,
            disk_full: disk.disk_full,
            disk_failed: disk.disk_failed,
            checkpoints_failed: disk.checkpoints_failed,
            view_errors: self.world.view_errors(),
            went_offline: self.overflow.times,
            offline: self.behind() as u64,
            offline_bytes: self.overflow.bytes,
            ..self.counters
        }
    }

    /// Whether one more client would be turned away.
    pub(crate) fn is_full(&self) -> bool {
        self.clients() >= self.settings.clients_max
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.clients.len() - self.free.len()
    }

    /// Whether something waits for a client.
    pub(crate) fn has_unsent(&mut self, id: ClientId) -> bool {
        self.client(id).is_some_and(|client| !client.outbox.is_empty())
    }

    /// Whether so much has been written in this round that it is to be sent before more is read.
    pub(crate) fn is_round_full(&self) -> bool {
        self.is_pressed || self.fanout.sheets.len() >= ROUND_BYTES
    }

    /// All outboxes with something to be sent have been sent, or hold it as their own. Whether
    /// queries that have waited for that may go on.
    pub fn end_round(&mut self) -> bool {
        self.is_pressed = false;
        self.fanout.sheets.end_round();
        std::mem::take(&mut self.has_room_again)
    }

    pub(crate) fn client(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(id.0 as usize)?.as_mut()
    }

    pub(crate) fn depart(&mut self, id: ClientId, why: DisconnectReason) {
        if let Some(client) = self.client(id)
            && !std::mem::replace(&mut client.is_leaving, true)
        {
            self.departures.push((id, why));
        }
    }

    /// Something was written into a client's outbox.
    pub(crate) fn note(&mut self, id: ClientId) {
        self.mail().note(id);
    }

    pub(crate) fn mail(&mut self) -> SendQueues<'_> {
        self.parts(None).2.mail
    }

    /// Sends signs of life, and lets those go who send none.
    pub fn on_time(&mut self, moment: Now) {
        self.look_after_kept(moment);
        self.forget_unused_names(moment.unix_ns);
        let now = moment.now;
        for at in 0..self.clients.len() {
            let Some(client) = &mut self.clients[at] else { continue };
            if client.is_kept_waiting() {
                client.heard = now;
            }
            let Some(pulse) = &mut client.pulse else { continue };
            let id = ClientId(at as u32);
            if now.saturating_sub(client.heard) > pulse.interval.saturating_mul(MISSED_MAX) {
                self.depart(id, DisconnectReason::Silent);
            } else if pulse.next <= now {
                pulse.next = now.saturating_add(pulse.interval);
                // What waits is a sign of life, too, once it is read.
                if client.outbox.is_empty() {
                    reply::heartbeat(client.outbox.bytes());
                    self.note(id);
                }
            }
        }
    }

    /// When [`on_time`](Self::on_time) is due at the latest.
    pub fn next_deadline(&self, moment: Now) -> Option<Nanos> {
        let clients = self.clients.iter().flatten().filter(|client| !client.is_leaving);
        let pulse = clients.filter_map(|client| Some(client.pulse?.next)).min();
        let kept = self.next_kept_ns();
        let kept = kept.map(|due| moment.now.saturating_add(due.saturating_sub(moment.unix_ns)));
        let disk = self.world.disk.as_ref().and_then(|disk| disk.next_deadline(moment.now));
        let parting = (!self.parting.is_empty()).then_some(moment.now);
        let sweep = self.next_sweep(moment.now);
        let work = [parting, sweep, self.next_late_logon()];
        [pulse, kept, disk, self.slow_due].into_iter().chain(work).flatten().min()
    }

    /// The topics, what is common to them, and the way into outboxes.
    pub(crate) fn parts<'a>(
        &'a mut self,
        correlation: Option<&'a str>,
    ) -> (&'a mut Vec<TopicEntry>, &'a mut Catalog, Post<'a>) {
        let mail = SendQueues {
            clients: &mut self.clients,
            dirty: &mut self.dirty,
            slow: &mut self.slow,
            most: self.overflow.most(),
            memory_max: self.overflow.memory_max,
            is_pressed: &mut self.is_pressed,
        };
        let (subscriptions, fanout) = (&self.subscriptions, &mut self.fanout);
        let post = Post { subscriptions, mail, fanout, correlation, delivered: 0 };
        (&mut self.topics, &mut self.world, post)
    }

    /// Publishes a message: keeps it where messages are kept, and puts it into the outboxes of
    /// those who want it.
    pub(crate) fn take(
        &mut self,
        topic: u32,
        publication: &Publication<'_>,
        merges: bool,
        unix_ns: u64,
        correlation: Option<&str>,
    ) -> Result<(), CommandError> {
        let mut matches = std::mem::take(&mut self.matches);
        let (body, client) = (publication.bytes, publication.client);
        let matched = match &mut self.topics[topic as usize] {
            TopicEntry::Transient(topic) if !merges => {
                topic.matches(&mut self.patterns, body, client, unix_ns, &mut matches)
            }
            _ => Ok(()),
        };
        let (topics, world, mut post) = self.parts(correlation);
        let done = match &mut topics[topic as usize] {
            TopicEntry::SowTopic(kept) => {
                kept.publish(publication, merges, unix_ns, world, &mut post)
            }
            TopicEntry::Vacant => Ok(()),
            TopicEntry::Transient(topic) if merges => {
                Err(CommandError::NothingKept(topic.name.to_string()))
            }
            TopicEntry::Transient(topic) => matched
                .map(|()| {
                    if !matches.is_empty() {
                        let letter = OutboundMessage {
                            command: Command::Publish,
                            topic: &topic.name,
                            format: topic.kind.into(),
                            reason: None,
                            subject: Payload::Message(body),
                        };
                        post.send(&letter, &mut matches);
                    }
                })
                .map_err(CommandError::from),
        };
        world.settle(topics, unix_ns, &mut post);
        let delivered = post.delivered;
        self.counters.delivered += delivered;
        self.matches = matches;
        done
    }
}
