//! A store, driven by the calls of its program.

use crate::administration::Administration;
use crate::checkpoint::{Replica, StoreRecovery};
use crate::checkpointer::{Checkpointer, HEADS_BYTES};
use crate::clients::Clients;
use crate::commit_delay::{CommitDelay, MANY};
use crate::directory::StoreDirectory;
use crate::error::{FrameLengthError, StoreError};
use crate::fetch_queue::FetchQueue;
use crate::former_feed::FormerFeed;
use crate::log::JournalLog;
use crate::log_clock::LogClock;
use crate::name;
use crate::options::StoreOptions;
use crate::outbox::Outbox;
use crate::peers::Peers;
use crate::recovery::recover;
use crate::requests::{Requests, read};
use crate::retention::RetentionTask;
use crate::stats::StoreStats;
use crate::telemetry::Telemetry;
use crate::topic::Topic;
use crate::wakeup::Wakeup;
use lanecast_base::clock::Clock;
use lanecast_persistence::{Nanos, Store, StoreLog, StoreOutlet, StoreRefusal, StreamSummary};
use lanecast_stats::unix_ns;
use lanecast_transport::{CloseReason, Event, Publish, Subscribe, Transport};
use lanecast_wire::store::{StoreAddress, StoreFrame};
use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

/// Frames and messages read from one subscriber in one poll.
const POLL_LIMIT: usize = 256;
/// Messages of a topic that are read before the journal's queue is looked at again.
const POLL_STEP: usize = 32;
/// Bytes of a frame beside the messages in it.
const FRAME_OVERHEAD: usize = 512;
/// Pause for more messages while the disk writes those before. Short: the messages that come until
/// its end have to find room in the transport.
const GATHER: Duration = Duration::from_micros(100);
/// Bytes from which messages are written at once.
const HELD_BYTES: usize = 64 << 10;
/// Longest sleep while replies wait for a client to join or for room, which no descriptor tells.
const ROOM_WAIT: Duration = Duration::from_millis(1);
/// Slices of the log that are read ahead before requests are looked for again.
const SLICES_AHEAD: u32 = 8;
/// Interval at which retention looks for messages to give up.
const RETAIN: Nanos = 20_000_000;
/// Interval at which the places of readers are forgotten, and a full disk is tried again.
const FORGET: Nanos = 2_000_000_000;

/// A store over the transport `T`: keeps the messages of publishers that have registered with it.
///
/// It subscribes to their topics as any receiver does, and answers on topics that begin with
/// `_store.`; all work is done in [`poll`](Self::poll), on the caller's thread, but writing and
/// synchronizing, which the journal's own thread does.
///
/// ```
/// use lanecast_shm::{Domain, DomainSettings, Visibility};
/// use lanecast_store::{PersistentOptions, PersistentPublisher, StoreOptions, StoreServer};
/// # let directory = tempfile::tempdir()?;
///
/// let settings = DomainSettings { visibility: Visibility::Process, ..Default::default() };
/// # let settings = DomainSettings { directory: directory.path().into(), ..settings };
/// let domain = Domain::open(settings)?;
/// let options = StoreOptions::default();
/// let mut store = StoreServer::open(domain.clone(), "a", directory.path(), options)?;
/// let options = PersistentOptions::with_store("a");
/// let mut publisher = PersistentPublisher::open(&domain, "orders", 7, options)?;
///
/// let mut sent = None;
/// while sent.is_none_or(|sequence| publisher.stable() <= sequence) {
///     if sent.is_none() {
///         sent = publisher.try_send(b"kept").ok(); // refused until the store has accepted
///     }
///     publisher.poll(|_| {});
///     let work = store.poll()?;
///     store.wait_at_most(work, std::time::Duration::from_millis(1));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StoreServer<T: Transport + Clone> {
    machine: Store,
    log: JournalLog,
    clients: Clients<T>,
    peers: Peers<T>,
    requests: T::Subscriber,
    /// A client went on without this store; it cannot be heard before there is a new subscriber.
    is_evicted: bool,
    fetches: FetchQueue,
    topics: BTreeMap<String, Topic<T::Subscriber>>,
    name: String,
    transport: T,
    wakeup: Wakeup,
    clock: Clock,
    log_clock: LogClock,
    persisted: u64,
    /// Messages and other events of topics in the last poll.
    found: usize,
    /// Work of the last poll for requests, readers and other stores.
    answered: usize,
    commit_delay: CommitDelay,
    /// Bytes that wait for the disk from which on no messages are read. They wait in the transport:
    /// a journal whose queue is full would take none, and publishers would send them again.
    unread_from: usize,
    /// The caller waits by `wait_at_most`, which comes back for held messages in time.
    is_waited_on: bool,
    /// Slices that were read ahead since requests were last looked for.
    slices_ahead: u32,
    next_tick: Nanos,
    forget_at: Nanos,
    stats: StoreStats,
    recovery: StoreRecovery,
    retention: RetentionTask,
    retain_at: Nanos,
    incarnation: u64,
    administration: Administration,
    telemetry: Telemetry,
    longest_sent: usize,
}

impl<T: Transport + Clone> fmt::Debug for StoreServer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreServer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Bytes of the longest frame that the store `name` can send.
fn longest_reply<T: Transport>(transport: &T, name: &str) -> Result<usize, StoreError<T::Error>> {
    let replies = transport.publisher(&name::replies(name, 0)).map_err(StoreError::Transport)?;
    FrameLengthError::check(replies.longest_message())?;
    Ok(replies.longest_message())
}

impl<T: Transport + Clone> StoreServer<T> {
    /// Opens the store `name` with its data in `directory`, which is made if it does not exist;
    /// reads its journal, so that it is where it was when it ended.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open(
        transport: T,
        name: &str,
        directory: &Path,
        options: StoreOptions,
    ) -> Result<Self, StoreError<T::Error>> {
        name::check_store(name)?;
        if options.commit_delay > StoreOptions::COMMIT_DELAY_MAX {
            return Err(StoreError::CommitDelay(options.commit_delay));
        }
        let journal_config = options.journal_config();
        let segment_bytes = journal_config.segment_bytes;
        let interval = options.checkpoint_interval();
        let mut settings = options.store_settings();
        let longest_sent = longest_reply(&transport, name)?;
        // Copies of other stores have to fit into a frame of this transport.
        let longest = longest_sent.saturating_sub(FRAME_OVERHEAD);
        settings.longest_frame = settings.longest_frame.min(longest);
        let StoreDirectory { incarnation, journal, written } =
            StoreDirectory::open(directory, journal_config, options.has_direct_writes)?;
        let storage = StoreDirectory::storage(directory, options.has_direct_writes);
        let (identity, recovered) = recover(directory, &storage, &journal, incarnation, settings)?;
        let incarnation = identity.incarnation;
        let recovery = recovered.recovery.clone();
        let Replica { machine, catalog, .. } = recovered.replica.clone();
        let checkpointer =
            Checkpointer::start(storage, recovered, journal.pin(1), interval, HEADS_BYTES);
        let checkpointer = Some(checkpointer.map_err(StoreError::Wakeup)?);
        let log = JournalLog::new(journal, catalog, checkpointer).limited(longest);
        let mut requests =
            transport.subscriber(&[&name::requests(name)]).map_err(StoreError::Transport)?;
        let wakeup = Wakeup::new(written).map_err(StoreError::Wakeup)?;
        wakeup.add(&mut requests).map_err(StoreError::Wakeup)?;
        let client = lanecast_os::process::random().map_err(StoreError::Wakeup)?;
        let longest = identity.settings.longest_frame;
        let permits_all = options.permits_deregistration;
        let mut server = Self {
            longest_sent,
            administration: Administration::open(directory, name, permits_all, longest),
            telemetry: Telemetry::open(options.counters.as_deref(), name, incarnation),
            incarnation,
            persisted: log.persisted(),
            log_clock: LogClock::new(log.unix_ns()),
            found: 0,
            answered: 0,
            commit_delay: CommitDelay::new(options.commit_delay),
            unread_from: options.journal.max_pending_bytes / 2,
            is_waited_on: false,
            slices_ahead: 0,
            machine,
            log,
            clients: Clients::new(transport.clone(), name),
            peers: Peers::new(transport.clone(), client),
            requests,
            is_evicted: false,
            fetches: FetchQueue::default(),
            topics: BTreeMap::new(),
            name: name.to_owned(),
            transport,
            wakeup,
            clock: Clock::host(),
            next_tick: 0,
            forget_at: 0,
            stats: StoreStats::default(),
            recovery,
            retention: RetentionTask::new(options.retention, segment_bytes),
            retain_at: 0,
        };
        let topics: Vec<String> = server.machine.topics().map(str::to_owned).collect();
        for topic in topics {
            server.subscribe(&topic).map_err(StoreError::Transport)?;
        }
        Ok(server)
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    /// Reads live messages and frames, answers, and tells what the disk has written; returns the
    /// amount of work, 0 if there was none. Never blocks.
    ///
    /// # Errors
    /// If the disk has failed or kept messages cannot be read: the store keeps nothing any more and
    /// has to end. Messages that were not told to be stable may be lost; others hold them.
    pub fn poll(&mut self) -> Result<usize, StoreError<T::Error>> {
        let now = self.now();
        self.log.set_time(self.log_clock.read(now, unix_ns()));
        self.found = self.poll_topics(now);
        // Reading ahead goes before requests: when it is done the reader's next one is here, and a
        // look that finds none would arm the wake-up, which costs two barriers.
        if self.slices_ahead < SLICES_AHEAD && self.log.read_ahead() {
            self.slices_ahead += 1;
            self.answered = 1;
        } else {
            self.slices_ahead = 0;
            self.answered = self.poll_requests(now);
        }
        self.answered += self.poll_peers(now);
        let mut work = self.found + self.answered;
        let persisted = self.log.persisted();
        if persisted != self.persisted {
            self.persisted = persisted;
            work += 1;
            let Self { machine, log, clients, peers, wakeup, .. } = self;
            machine.on_persisted(log, &mut Outbox { clients, peers, wakeup, now });
        }
        if now >= self.next_tick {
            let Self { machine, log, clients, peers, wakeup, .. } = self;
            self.next_tick = machine.tick(now, log, &mut Outbox { clients, peers, wakeup, now });
        }
        if now >= self.forget_at {
            self.forget_at = now + FORGET;
            self.log.forget_readings();
            self.log.retry_space();
        }
        if now >= self.retain_at {
            self.log.look_at_disk();
            // A log without room stops it until then; the rest of a cut follows in the next poll.
            let step = self.retention.step(&mut self.machine, &mut self.log, now);
            self.retain_at = now + if step == Ok(true) { 0 } else { RETAIN };
            work += usize::from(step == Ok(true));
        }
        work += self.clients.poll(now);
        self.commit(now);
        if self.telemetry.is_due(now) {
            let stats = self.stats();
            self.telemetry.write(now, &stats, &self.machine, &self.log);
        }
        if let Some(error) = self.log.failure() {
            return Err(StoreError::Disk(error));
        }
        if let Some(error) = self.log.take_checkpoint_error() {
            return Err(StoreError::Directory(error));
        }
        match self.log.take_read_error() {
            Some(error) => Err(StoreError::Read(error)),
            None if work > 0 => Ok(work),
            None => {
                self.wakeup.arm();
                Ok(usize::from(self.log.persisted() != self.persisted))
            }
        }
    }

    /// Has the journal write what was appended, unless that is to wait for more.
    fn commit(&mut self, now: Nanos) {
        if self.log.pending_bytes() >= self.unread_from {
            // That none were found, or few, tells nothing of the publishers.
            self.commit_delay.written();
            return self.log.commit();
        }
        let holds = self.commit_delay.holds(self.found, self.unstable(), now);
        let may_hold = std::mem::take(&mut self.is_waited_on) && self.answered == 0;
        if !(holds && may_hold && self.log.pending_bytes() < HELD_BYTES) {
            self.commit_delay.written();
            self.log.commit();
        }
    }

    /// Records that are not known to be durable.
    const fn unstable(&self) -> u64 {
        self.log.appended().saturating_sub(self.persisted)
    }

    fn poll_topics(&mut self, now: Nanos) -> usize {
        let Self { machine, log, clients, peers, wakeup, topics, stats, unread_from, .. } = self;
        let mut out = Outbox { clients, peers, wakeup, now };
        let (mut work, mut is_any_evicted) = (0, false);
        for topic in topics.values_mut() {
            let (mut found, mut step) = (0, POLL_STEP);
            // Fewer than asked for: the next look is the next poll's.
            while step == POLL_STEP && found < POLL_LIMIT && log.pending_bytes() < *unread_from {
                step = topic.poll(POLL_STEP, |event| match event {
                    Event::Message(message) => {
                        stats.messages += 1;
                        let (session, number) = (message.stream().session.0, message.number());
                        machine.on_message(session, number, message.bytes(), now, log, &mut out);
                    }
                    // Losses show in the numbers, and are asked for again.
                    Event::Left(stream, CloseReason::Closed | CloseReason::Died) => {
                        machine.on_session(stream.session.0, false);
                    }
                    Event::Joined(stream) => machine.on_session(stream.session.0, true),
                    _ => {}
                });
                found += step;
            }
            work += found;
            is_any_evicted |= topic.was_evicted;
        }
        if is_any_evicted {
            self.resubscribe();
        }
        work
    }

    fn poll_requests(&mut self, now: Nanos) -> usize {
        let mut opened = Vec::new();
        let Self { machine, log, clients, peers, wakeup, stats, administration, fetches, .. } =
            self;
        let (topics, incarnation) = (&self.topics, self.incarnation);
        let replied_max = Requests::<T>::replied_max(clients.replied_bytes());
        let out = Outbox { clients, peers, wakeup, now };
        let mut requests = Requests {
            machine,
            log,
            out,
            stats,
            administration,
            incarnation,
            now,
            pages: 0,
            fetches,
            replied_max,
        };
        let mut is_evicted = self.is_evicted;
        let mut work = self.requests.poll(POLL_LIMIT, |event| match event {
            Event::Message(message) => {
                if requests.handle(message.bytes(), |topic| topics.contains_key(topic)) {
                    opened.push(message.bytes().to_vec());
                }
            }
            Event::Left(_, CloseReason::Evicted) => is_evicted = true,
            _ => {}
        });
        // Behind the poll: acknowledgements and other short requests do not wait for them.
        work += requests.answer_fetches();
        for bytes in opened {
            self.open_topic(&bytes, now);
        }
        self.is_evicted = is_evicted;
        if is_evicted {
            self.resubscribe_to_requests();
        }
        work
    }

    /// Subscribes anew where a client went on without this store: clients keep their ways to it.
    #[cold]
    fn resubscribe_to_requests(&mut self) {
        // For lack of memory or descriptors now, perhaps: the next poll tries again.
        let Ok(mut subscriber) = self.transport.subscriber(&[&name::requests(&self.name)]) else {
            return;
        };
        if self.wakeup.add(&mut subscriber).is_ok() {
            // Requests that the old one has not read are repeated.
            self.requests = subscriber;
            self.is_evicted = false;
        }
    }

    /// Subscribes to the topic that a request opens, and executes the request.
    #[cold]
    fn open_topic(&mut self, bytes: &[u8], now: Nanos) {
        let Ok((address, frame)) = StoreFrame::read(bytes) else { return };
        // Each stream has one topic, and streams stay.
        let is_refused = self.machine.has_room() && self.subscribe(address.topic).is_err();
        let Self { machine, log, clients, peers, wakeup, stats, .. } = self;
        let mut out = Outbox { clients, peers, wakeup, now };
        if is_refused {
            stats.refused += 1;
            let StoreAddress { client, topic, source } = address;
            let frame = StoreFrame::Refused(StoreRefusal::Topic);
            return out.reply(client, topic, source, &frame);
        }
        // Without room for another stream the machine refuses it.
        machine.on_frame(address, &frame, now, log, &mut out);
        // A log without room has refused it: nothing is to be kept of the topic.
        if !self.machine.has_topic(address.topic) {
            self.topics.remove(address.topic);
        }
    }

    fn poll_peers(&mut self, now: Nanos) -> usize {
        let mut frames = Vec::new();
        let Self { machine, log, clients, peers, wakeup, stats, .. } = self;
        // Frames of copies go on to the machine behind the poll, which asks the same peers again.
        let work = peers.poll(POLL_LIMIT, now, |bytes| frames.push(bytes.to_vec()));
        for bytes in frames {
            let mut out = Outbox { clients, peers, wakeup, now };
            if let Some((address, frame)) = read(&bytes, stats) {
                machine.on_frame(address, &frame, now, log, &mut out);
            }
        }
        work
    }

    fn subscribe(&mut self, topic: &str) -> Result<(), T::Error> {
        if self.topics.contains_key(topic) {
            return Ok(());
        }
        let subscriber = self.transport.subscriber(&[topic])?;
        let mut topic_entry = Topic::new(subscriber);
        if self.wakeup.add_topic(&mut topic_entry.subscriber).is_err() {
            // Without a descriptor its messages wait for the next tick.
            self.stats.refused += 1;
        }
        self.topics.insert(topic.to_owned(), topic_entry);
        Ok(())
    }

    /// Subscribes anew where a publisher went on without this store.
    #[cold]
    fn resubscribe(&mut self) {
        for (name, topic) in &mut self.topics {
            if !topic.was_evicted {
                continue;
            }
            // For lack of memory or descriptors now, perhaps: the next poll tries again.
            let Ok(mut subscriber) = self.transport.subscriber(&[name]) else { continue };
            if self.wakeup.add_topic(&mut subscriber).is_ok() {
                let former = std::mem::replace(topic, Topic::new(subscriber));
                topic.former = Some(FormerFeed::new(former.subscriber));
            }
        }
    }

    /// Waits until there is something to do after a [`poll`](Self::poll) that returned `work`, at
    /// most `limit`. If that is not 0 it returns at once, or, if there were only a few messages,
    /// after a quarter of a millisecond: when others follow, or while the disk writes.
    pub fn wait_at_most(&mut self, work: usize, limit: Duration) {
        self.is_waited_on = true;
        if work > 0 {
            return self.gather(work, limit);
        }
        let due = Duration::from_nanos(self.next_tick.saturating_sub(self.now()));
        let limit = limit.min(due);
        let limit = if self.clients.are_waiting() { limit.min(ROOM_WAIT) } else { limit };
        self.wakeup.wait(limit);
    }

    /// Pauses if messages keep coming; or while the disk writes, if the last poll found a few
    /// messages and nothing else: those that come until the disk is done have to wait for the next
    /// batch anyway. One poll finds many of them then, and publishers need not wake this thread for
    /// each.
    fn gather(&self, work: usize, limit: Duration) {
        if let Some(pause) = self.commit_delay.pause(self.unstable())
            && self.answered == 0
            && !limit.is_zero()
        {
            // Nothing waits for the disk's answer, and a request may wait for so long.
            return std::thread::sleep(limit.min(pause));
        }
        let is_writing = self.log.appended() != self.persisted;
        if work != self.found || work > MANY || !is_writing || limit.is_zero() {
            return;
        }
        self.wakeup.arm();
        if self.log.persisted() == self.persisted {
            self.wakeup.wait_for_others(limit.min(GATHER));
        }
    }

    /// A descriptor for event loops: readable when there is something to poll. The store has to be
    /// polled every 100 ms besides, for its times.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// The store's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The streams that are kept.
    pub fn streams(&self) -> impl Iterator<Item = StreamSummary<'_>> {
        self.machine.summaries()
    }

    /// Place at which the state was found at the start.
    pub const fn recovery(&self) -> &StoreRecovery {
        &self.recovery
    }

    /// Longest message that the store can keep, in bytes: its journal's segments have to be longer,
    /// and so has the longest message of its transport.
    pub fn longest_kept(&self) -> usize {
        self.log.longest_message()
    }

    /// Longest message that a publisher can send over a transport set up as the store's, in bytes:
    /// the store keeps none that are longer than [`longest_kept`](Self::longest_kept).
    pub const fn longest_sent(&self) -> usize {
        self.longest_sent.saturating_sub(FRAME_OVERHEAD)
    }

    /// Reason why the last checkpoint could not be written, such as a full disk. A later one is
    /// tried; until then the next start takes longer, and retention waits.
    pub fn checkpoint_failure(&self) -> Option<String> {
        self.log.checkpoint_failure()
    }

    /// Reason why the key of this run could not be kept, as on a full disk: until the next start
    /// only a store that permits deregistration to all ends registrations.
    pub fn key_failure(&self) -> Option<&std::io::Error> {
        self.administration.failure()
    }

    /// Numbers since the start.
    pub fn stats(&self) -> StoreStats {
        StoreStats {
            clients: self.clients.count(),
            pending_bytes: self.log.pending_bytes(),
            checkpoints: self.log.checkpoints(),
            read_back: self.log.read_back(),
            given_up: self.retention.given_up(),
            is_disk_full: self.log.is_disk_full(),
            refused: self.stats.refused + self.clients.refused() + self.machine.refused_streams(),
            refused_streams: self.machine.refused_streams(),
            too_long: self.log.too_long(),
            ..self.stats
        }
    }

    /// Writes what was accepted, and closes the store. Dropping does the same without telling of
    /// errors.
    ///
    /// # Errors
    /// If the disk has failed, or has no space for what is left.
    pub fn close(mut self) -> Result<(), StoreError<T::Error>> {
        let now = self.now();
        // Without room receivers count as away for less.
        let _ = self.machine.end(now, &mut self.log);
        self.log.close().map_err(StoreError::Disk)
    }
}
