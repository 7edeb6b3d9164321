//! The conductor's receiving part: runs discovery, joins subscribers to the publishers that it
//! finds, and serves subscribers' sockets while their owners are elsewhere.

use crate::conductor::{CommandQueue, SubAgent, WaitSet, lock_session};
use crate::context::NetContext;
use crate::discovery::Discovery;
use crate::found_sources::FoundSources;
use crate::lingering_close::ClosingConnections;
use crate::owner_state::{OwnerState, SocketReader};
use crate::receive_sessions::ReceiveSessions;
use crate::receive_share::ReceiveShare;
use crate::receive_threads::ReceiveThreads;
use crate::refused_topics::RefusedTopics;
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
/// Time without a poll after which the conductor looks after an owner that its descriptor should
/// have woken.
const DESCRIPTOR_REST: Nanos = 16 * MILLISECOND;
/// Longest pause while the conductor receives for owners that only read, or that are so far behind
/// that their sockets stay unread.
const OWNERS_REST: Nanos = MILLISECOND;
/// Time between two looks at next hops and other programs' groups, of sessions that pass the
/// kernel's stack by.
const XDP_REFRESH: Nanos = 200 * MILLISECOND;
/// Time between two looks at the files of keys and certificates.
const FILES_REFRESH: Nanos = 500 * MILLISECOND;

/// Commands from publishers and subscribers.
#[derive(Debug)]
pub(crate) enum ReceiverCommand {
    AddPublication {
        source: Source,
        datagram_bytes: usize,
        topic: String,
    },
    RemovePublication {
        session: u64,
    },
    /// Adds a subscriber; with its shares, if receive threads serve it.
    AddSubscriber(SubscriberEntry, Vec<ReceiveShare>),
    RemoveSubscriber {
        number: u64,
    },
}

/// A subscriber, as the conductor keeps it.
#[derive(Debug)]
pub(crate) struct SubscriberEntry {
    pub(crate) number: u64,
    pub(crate) topics: TopicSelection,
    pub(crate) owner_state: Arc<OwnerState>,
    /// `None`: receive threads serve its sessions.
    pub(crate) stand_in: Option<StandIn>,
    pub(crate) refused: RefusedTopics,
}

/// The conductor's part in sessions that their owner serves, or the conductor alone.
#[derive(Debug)]
pub(crate) struct StandIn {
    visitor: Visitor<ReceiveSessions>,
    /// The owner's count of lock_count at the last duty cycle.
    seen: u64,
    /// Deadline of the sessions after the conductor's last service.
    deadline: Nanos,
    /// Next look after an owner with a descriptor.
    look_at: Nanos,
    pacing: StandInPacing,
    /// Not joined yet: the owner held the lock, or the join was deferred.
    pub(crate) found: FoundSources,
}

impl StandIn {
    pub(crate) fn new(visitor: Visitor<ReceiveSessions>) -> Self {
        Self {
            seen: visitor.lock_count(),
            visitor,
            deadline: 0,
            look_at: 0,
            pacing: StandInPacing::default(),
            found: FoundSources::default(),
        }
    }

    /// Joins the publishers that were found.
    pub(crate) fn join_found(&mut self, owner_state: &OwnerState, now: Nanos) {
        if self.found.is_empty() {
            return;
        }
        // Announced: an owner that polls without a pause is inside at nearly every moment, and lets
        // a visitor in. One that is long in its call holds up the others for a moment only.
        let Some(mut sessions) = lock_session(&self.visitor, true) else { return };
        self.found.join(&mut sessions, now);
        // The lock is free before the owner wakes up to take it.
        drop(sessions);
        owner_state.notify();
    }

    /// Receives for an owner that is elsewhere.
    fn drive(
        &mut self,
        owner_state: &OwnerState,
        only_driver: bool,
        now: Nanos,
        wait_set: &mut WaitSet,
    ) {
        // Joins that wait have no deadline of their own: a short pause stands in for it.
        wait_set.owners_active |= !self.found.is_empty();
        let lock_count = self.visitor.lock_count();
        let is_parked = owner_state.is_parked();
        // An unchanged count since the last cycle means that the owner has not entered.
        let has_entered = lock_count != self.seen;
        self.seen = lock_count;
        let reader = owner_state.reader();
        let is_away = reader != SocketReader::Polls;
        let is_absent = is_away || !has_entered && !is_parked;
        // A parked owner sleeps on the same sockets, and serves them itself when it wakes.
        if is_parked && !only_driver {
            wait_set.deadline = wait_set.deadline.min(now + PARKED_REST);
            return;
        }
        if reader == SocketReader::Descriptor && !only_driver {
            if has_entered {
                self.look_at = now + DESCRIPTOR_REST;
            }
            if now < self.look_at {
                wait_set.deadline = wait_set.deadline.min(self.look_at);
                return;
            }
            self.look_at = now + PARKED_REST;
        }
        let due = self.pacing.due().min(self.deadline);
        if is_absent && !is_away && !only_driver && now < due {
            wait_set.deadline = wait_set.deadline.min(due);
            return;
        }
        let may_lock = only_driver || is_absent;
        let locked = if may_lock { lock_session(&self.visitor, only_driver) } else { None };
        let Some(mut sessions) = locked else {
            wait_set.owners_active = true;
            return;
        };
        let (deadline, has_new) = sessions.drive_for_owner(now);
        // Not replaced: there was nothing to do, or the owner copies sockets and deadline next.
        let rest = if owner_state.reader() == SocketReader::Descriptor {
            now + PARKED_REST
        } else if sessions.is_behind() {
            // Its sockets are readable without being read: they would end every sleep.
            deadline.min(now + OWNERS_REST)
        } else {
            sessions.descriptors(&mut wait_set.descriptors);
            deadline
        };
        drop(sessions);
        self.pacing.on_service(now);
        self.deadline = deadline;
        wait_set.deadline = wait_set.deadline.min(rest);
        if has_new {
            owner_state.notify();
        }
    }
}

/// Serves all subscribers of a network, and its discovery.
#[derive(Debug)]
pub(crate) struct ReceiverAgent {
    commands: Arc<CommandQueue<ReceiverCommand>>,
    discovery: Discovery,
    subscribers: Vec<SubscriberEntry>,
    receive_threads: ReceiveThreads<ReceiveShare>,
    /// Owners never read their sockets themselves.
    only_driver: bool,
    /// The interface past the kernel's stack, and the time of the next look at its surroundings.
    xdp: Option<(Arc<XdpDevice>, Nanos)>,
    /// Keys of datagrams, TLS of connections, and the time of the next look at their files.
    keys: Option<Arc<KeyRing>>,
    tls: Option<Arc<TlsIdentity>>,
    files_due: Nanos,
    /// Connections of sessions that are over.
    closing: Arc<ClosingConnections>,
    telemetry: Telemetry,
}

impl ReceiverAgent {
    pub(crate) fn new(
        commands: Arc<CommandQueue<ReceiverCommand>>,
        discovery: Discovery,
        receive_threads: ReceiveThreads<ReceiveShare>,
        context: &NetContext,
    ) -> Self {
        let only_driver = context.settings.threading != ThreadingMode::Caller;
        Self {
            commands,
            discovery,
            subscribers: Vec::new(),
            receive_threads,
            only_driver,
            xdp: context.xdp.clone().map(|device| (device, 0)),
            keys: context.keys.clone(),
            tls: context.tls.clone(),
            files_due: 0,
            closing: Arc::clone(&context.closing),
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
                ReceiverCommand::AddSubscriber(subscriber, shares) => {
                    if !shares.is_empty() {
                        self.receive_threads.add(subscriber.number, shares);
                    }
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
        self.receive_threads.remove(number);
        self.discovery.remove_subscription(number, &subscriber.topics);
    }

    /// Passes newly found publishers to the subscribers of their topics.
    fn distribute_found(&mut self) {
        while let Some((source, topic)) = self.discovery.next_found() {
            for subscriber in &mut self.subscribers {
                if !subscriber.topics.selects(&topic) {
                    continue;
                }
                match &mut subscriber.stand_in {
                    // Joined later, under the lock of the sessions, which the owner may hold now.
                    Some(stand_in) => stand_in.found.push(source, topic.clone()),
                    None => self.receive_threads.join(subscriber.number, source, topic.clone()),
                }
            }
        }
    }

    /// Has discovery report topics again that patterns had no room for, where there is some.
    fn find_refused(&mut self, now: Nanos, wait_set: &mut WaitSet) {
        for SubscriberEntry { number, topics, refused, .. } in &mut self.subscribers {
            match refused.look(topics, now) {
                Ok(()) => {
                    self.discovery.find_again(*number);
                    // The next duty cycle takes the reports.
                    wait_set.deadline = now;
                }
                Err(next) => wait_set.deadline = wait_set.deadline.min(next),
            }
        }
    }

    /// Joins and receives for owners that are elsewhere.
    fn drive_for_owners(&mut self, now: Nanos, wait_set: &mut WaitSet) {
        for SubscriberEntry { owner_state, stand_in, .. } in &mut self.subscribers {
            if let Some(stand_in) = stand_in {
                stand_in.join_found(owner_state, now);
            }
            let rest = match stand_in {
                // Owners consume without waking this thread, which has to report that to
                // publishers.
                Some(_) if self.only_driver => OWNERS_REST,
                Some(_) => Nanos::MAX,
                // A receive thread does not wake this one for a session that it has lost.
                None => PARKED_REST,
            };
            wait_set.deadline = wait_set.deadline.min(now.saturating_add(rest));
            for session in owner_state.take_lost() {
                self.discovery.report_lost(now, session);
            }
            if let Some(stand_in) = stand_in {
                stand_in.drive(owner_state, self.only_driver, now, wait_set);
            }
        }
    }
}

impl SubAgent for ReceiverAgent {
    fn do_work(&mut self, now: Nanos, wait_set: &mut WaitSet) -> usize {
        let commands = self.run_commands();
        let received = self.discovery.do_work(now);
        self.distribute_found();
        self.drive_for_owners(now, wait_set);
        self.find_refused(now, wait_set);
        let reported = self.receive_threads.do_work(now, wait_set);
        if let Some((device, due)) = &mut self.xdp {
            if *due <= now {
                device.refresh();
                *due = now + XDP_REFRESH;
            }
            wait_set.deadline = wait_set.deadline.min(*due);
        }
        let closing_due = self.closing.poll(now, &mut wait_set.descriptors);
        wait_set.deadline = wait_set.deadline.min(closing_due);
        wait_set.deadline = wait_set.deadline.min(self.refresh_files(now));
        wait_set.deadline = wait_set.deadline.min(self.discovery.next_deadline(now));
        self.discovery.descriptors(&mut wait_set.descriptors);
        commands + received + reported
    }
}
