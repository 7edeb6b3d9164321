//! The conductor's receiving part: runs discovery, joins subscribers to the publishers that it
//! finds, and serves subscribers' sockets while their owners are elsewhere.

use crate::admission::Admission;
use crate::conductor::{CommandQueue, SubAgent, WaitSet, lock_session};
use crate::context::NetContext;
use crate::discovery::Discovery;
use crate::owner_state::OwnerState;
use crate::receive_sessions::ReceiveSessions;
use crate::settings::ThreadingMode;
use crate::source::Source;
use crate::stand_in_pacing::StandInPacing;
use crate::telemetry::Telemetry;
use lanecast_os::biased::Visitor;
use lanecast_os::xdp::XdpDevice;
use lanecast_protocol::{MILLISECOND, Nanos};
use lanecast_sealing::KeyRing;
use lanecast_tls::TlsIdentity;
use lanecast_transport::TopicSelection;
use std::sync::Arc;

/// Longest pause while an owner sleeps on its own sockets.
const PARKED_REST: Nanos = 100 * MILLISECOND;
/// Longest pause while the conductor receives for owners that only read.
const OWNERS_REST: Nanos = MILLISECOND;
/// Time between two looks at next hops and other programs' groups, of sessions that pass the
/// kernel's stack by.
const XDP_REFRESH: Nanos = 200 * MILLISECOND;
/// Time between two looks at the files of keys and certificates.
const FILES_REFRESH: Nanos = 500 * MILLISECOND;
/// The most joins of a subscriber that wait for a free session, and the most of them that are
/// tried in one duty cycle. Further topics of joined sessions do not wait.
const DEFERRED_MAX: usize = 4_096;
const DEFERRED_AT_ONCE: usize = 128;

/// Commands from publishers and subscribers.
#[derive(Debug)]
pub(crate) enum ReceiverCommand {
    AddPublication { source: Source, datagram_bytes: usize, topic: String },
    RemovePublication { session: u64 },
    AddSubscriber(SubscriberEntry),
    RemoveSubscriber { number: u64 },
}

/// A subscriber, as the conductor keeps it.
#[derive(Debug)]
pub(crate) struct SubscriberEntry {
    pub(crate) number: u64,
    pub(crate) topics: TopicSelection,
    pub(crate) visitor: Visitor<ReceiveSessions>,
    pub(crate) owner_state: Arc<OwnerState>,
    /// The owner's count of lock_count at the last duty cycle.
    pub(crate) seen: u64,
    /// Deadline of the sessions after the conductor's last service.
    pub(crate) deadline: Nanos,
    pub(crate) pacing: StandInPacing,
    /// Publishers found, but not joined yet: the owner held the lock, or the join was deferred.
    pub(crate) found: Vec<(Source, String)>,
}

/// Serves all subscribers of a network, and its discovery.
#[derive(Debug)]
pub(crate) struct ReceiverAgent {
    commands: Arc<CommandQueue<ReceiverCommand>>,
    discovery: Discovery,
    subscribers: Vec<SubscriberEntry>,
    /// Owners never read their sockets themselves.
    only_driver: bool,
    /// The interface past the kernel's stack, and the time of the next look at its surroundings.
    xdp: Option<(Arc<XdpDevice>, Nanos)>,
    /// Keys of datagrams, TLS of connections, and the time of the next look at their files.
    keys: Option<Arc<KeyRing>>,
    tls: Option<Arc<TlsIdentity>>,
    files_due: Nanos,
    telemetry: Telemetry,
}

impl ReceiverAgent {
    pub(crate) fn new(
        commands: Arc<CommandQueue<ReceiverCommand>>,
        discovery: Discovery,
        context: &NetContext,
    ) -> Self {
        let only_driver = context.settings.threading != ThreadingMode::Caller;
        Self {
            commands,
            discovery,
            subscribers: Vec::new(),
            only_driver,
            xdp: context.xdp.clone().map(|device| (device, 0)),
            keys: context.keys.clone(),
            tls: context.tls.clone(),
            files_due: 0,
            telemetry: context.telemetry.clone(),
        }
    }

    /// Reads the files of keys and certificates again if they have changed; returns the time of the
    /// next look.
    fn refresh_files(&mut self, now: Nanos) -> Nanos {
        if self.keys.is_none() && self.tls.is_none() {
            return Nanos::MAX;
        }
        if self.files_due <= now {
            self.files_due = now + FILES_REFRESH;
            if let Some(Err(error)) = self.keys.as_ref().map(|keys| keys.refresh()) {
                self.telemetry.error(&format!("the old keys stay in use: net.key_file {error}"));
            }
            if let Some(Err(error)) = self.tls.as_ref().map(|tls| tls.refresh()) {
                self.telemetry.error(&format!("the old certificates stay in use: {error}"));
            }
        }
        self.files_due
    }

    fn run_commands(&mut self) -> usize {
        let commands = self.commands.drain();
        let count = commands.len();
        for command in commands {
            match command {
                ReceiverCommand::AddPublication { source, datagram_bytes, topic } => {
                    self.discovery.add_publication(&source, datagram_bytes, &topic);
                }
                ReceiverCommand::RemovePublication { session } => {
                    self.discovery.remove_publication(session);
                }
                ReceiverCommand::AddSubscriber(subscriber) => {
                    self.discovery.add_subscription(subscriber.number, &subscriber.topics);
                    self.subscribers.push(subscriber);
                }
                ReceiverCommand::RemoveSubscriber { number } => self.remove_subscriber(number),
            }
        }
        count
    }

    fn remove_subscriber(&mut self, number: u64) {
        let Some(at) = self.subscribers.iter().position(|it| it.number == number) else { return };
        let subscriber = self.subscribers.swap_remove(at);
        self.discovery.remove_subscription(number, &subscriber.topics);
    }

    /// Passes newly found publishers to the subscribers of their topics.
    fn distribute_found(&mut self) {
        while let Some((source, topic)) = self.discovery.next_found() {
            for subscriber in &mut self.subscribers {
                if subscriber.topics.selects(&topic) {
                    // Joined later, under the lock of the sessions, which the owner may hold now.
                    subscriber.found.push((source, topic.clone()));
                }
            }
        }
    }

    /// Joins subscribers to the publishers found for them.
    fn join_found(&mut self, now: Nanos) {
        for subscriber in self.subscribers.iter_mut().filter(|it| !it.found.is_empty()) {
            // Never waits for an owner: one that is long in its call would hold up all the others.
            let Some(mut sessions) = subscriber.visitor.try_lock() else { continue };
            let (mut deferred, mut tried) = (Vec::new(), 0);
            for (source, topic) in subscriber.found.drain(..) {
                // A joined session takes another topic without a join, so it need not wait.
                if tried >= DEFERRED_AT_ONCE && !sessions.has_session(&source) {
                    deferred.push((source, topic));
                    continue;
                }
                match sessions.join(&source, &topic, now) {
                    Ok(Admission::Joined) => {}
                    Ok(Admission::Deferred) => {
                        tried += 1;
                        deferred.push((source, topic));
                    }
                    // The next advertisement finds it again, perhaps when others have gone.
                    Ok(Admission::Refused) => self.discovery.report_lost(now, source.session),
                    Err(error) => {
                        sessions
                            .record_error(&format!("cannot join {topic:?} of {source}: {error}"));
                        self.discovery.report_lost(now, source.session);
                    }
                }
            }
            // Joins that were not tried come first the next time.
            let (tried, most) = (tried.min(deferred.len()), deferred.len().min(DEFERRED_MAX));
            deferred.rotate_left(tried);
            // Too many to keep: discovery finds these again by their next advertisements.
            for (source, _) in deferred.drain(most..) {
                self.discovery.report_lost(now, source.session);
            }
            subscriber.found = deferred;
            sessions.send_joins(now);
            // The lock is free before the owner wakes up to take it.
            drop(sessions);
            subscriber.owner_state.notify();
        }
    }

    /// Receives for owners that are elsewhere.
    fn drive_for_owners(&mut self, now: Nanos, wait_set: &mut WaitSet) {
        if self.only_driver && !self.subscribers.is_empty() {
            // Owners consume without waking this thread, which has to report that to publishers.
            wait_set.deadline = wait_set.deadline.min(now + OWNERS_REST);
        }
        for subscriber in &mut self.subscribers {
            for session in subscriber.owner_state.take_lost() {
                self.discovery.report_lost(now, session);
            }
            // Joins that wait have no deadline of their own: a short pause stands in for it.
            wait_set.owners_active |= !subscriber.found.is_empty();
            let lock_count = subscriber.visitor.lock_count();
            let is_parked = subscriber.owner_state.is_parked();
            // An unchanged count since the last cycle means that the owner has not entered.
            let is_away = subscriber.owner_state.is_away();
            let is_absent = is_away || lock_count == subscriber.seen && !is_parked;
            subscriber.seen = lock_count;
            // A parked owner sleeps on the same sockets, and serves them itself when it wakes.
            if is_parked && !self.only_driver {
                wait_set.deadline = wait_set.deadline.min(now + PARKED_REST);
                continue;
            }
            let due = subscriber.pacing.due().min(subscriber.deadline);
            if is_absent && !is_away && !self.only_driver && now < due {
                wait_set.deadline = wait_set.deadline.min(due);
                continue;
            }
            let may_lock = self.only_driver || is_absent;
            let locked =
                if may_lock { lock_session(&subscriber.visitor, self.only_driver) } else { None };
            let Some(mut sessions) = locked else {
                wait_set.owners_active = true;
                continue;
            };
            let (deadline, has_new) = sessions.drive_for_owner(now);
            sessions.descriptors(&mut wait_set.descriptors);
            drop(sessions);
            subscriber.pacing.on_service(now);
            subscriber.deadline = deadline;
            wait_set.deadline = wait_set.deadline.min(deadline);
            if has_new {
                subscriber.owner_state.notify();
            }
        }
    }
}

impl SubAgent for ReceiverAgent {
    fn do_work(&mut self, now: Nanos, wait_set: &mut WaitSet) -> usize {
        let commands = self.run_commands();
        let received = self.discovery.do_work(now);
        self.distribute_found();
        self.join_found(now);
        self.drive_for_owners(now, wait_set);
        if let Some((device, due)) = &mut self.xdp {
            if *due <= now {
                device.refresh();
                *due = now + XDP_REFRESH;
            }
            wait_set.deadline = wait_set.deadline.min(*due);
        }
        wait_set.deadline = wait_set.deadline.min(self.refresh_files(now));
        wait_set.deadline = wait_set.deadline.min(self.discovery.next_deadline(now));
        self.discovery.descriptors(&mut wait_set.descriptors);
        commands + received
    }
}
