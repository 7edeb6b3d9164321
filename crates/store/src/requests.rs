//! Requests to a store: those of publishers, receivers and other stores, and of administrators.

use crate::administration::{Administration, Permission};
use crate::fetch_queue::FetchQueue;
use crate::log::JournalLog;
use crate::name;
use crate::outbox::Outbox;
use crate::stats::StoreStats;
use lanecast_persistence::{Nanos, Store, StoreOutlet};
use lanecast_transport::Transport;
use lanecast_wire::store::{
    DeregisterOutcome, Registration, StoreAddress, StoreFrame, StoreFrameError, StoreHeader,
};

/// Pages of streams that are told in one poll; more requests wait to be repeated, so that
/// administrators do not hold up messages.
const PAGES_IN_POLL: u32 = 2;
/// Bytes of replies in one poll after which requests for messages and for streams wait for the
/// next one: live messages and acknowledgements come in between.
const REPLIES_IN_POLL: u64 = 1 << 20;

/// The parts of a server that answer the requests of one poll.
pub(crate) struct Requests<'a, T: Transport> {
    pub(crate) machine: &'a mut Store,
    pub(crate) log: &'a mut JournalLog,
    pub(crate) out: Outbox<'a, T>,
    pub(crate) stats: &'a mut StoreStats,
    pub(crate) administration: &'a mut Administration,
    pub(crate) incarnation: u64,
    pub(crate) now: Nanos,
    pub(crate) pages: u32,
    /// Requests for messages and for streams that wait, and the count of reply bytes up to which
    /// some are answered.
    pub(crate) fetches: &'a mut FetchQueue,
    pub(crate) replied_max: u64,
}

impl<T: Transport> Requests<'_, T> {
    /// The count of reply bytes at which a poll that begins at `replied` answers no more requests
    /// for messages.
    pub(crate) const fn replied_max(replied: u64) -> u64 {
        replied + REPLIES_IN_POLL
    }

    fn has_replied_enough(&self) -> bool {
        self.out.clients.replied_bytes() >= self.replied_max
    }

    /// Answers requests for messages and for streams that wait, at least one; returns their number.
    pub(crate) fn answer_fetches(&mut self) -> usize {
        let mut answered = 0;
        while (answered == 0 || !self.has_replied_enough())
            && let Some(bytes) = self.fetches.pop()
        {
            answered += 1;
            if let Ok((address, frame)) = StoreFrame::read(&bytes) {
                let is_question = matches!(frame, StoreFrame::Attach { .. });
                if is_question && self.out.clients.is_behind(address.client) {
                    continue;
                }
                self.machine.on_frame(address, &frame, self.now, self.log, &mut self.out);
            }
        }
        answered
    }

    /// Reads and executes a request, unless it opens a stream whose topic is not subscribed to:
    /// messages are kept from then on, so `is_subscribed` says whether it is. Returns whether the
    /// request waits for that.
    pub(crate) fn handle(&mut self, bytes: &[u8], is_subscribed: impl Fn(&str) -> bool) -> bool {
        let Some((address, frame)) = read(bytes, self.stats) else {
            refuse_version(bytes, &mut self.out);
            return false;
        };
        match frame {
            StoreFrame::Inspect { token, stream, receiver } => {
                self.inspect(address, token, (stream, receiver));
            }
            _ if name::check_topic(address.topic).is_err() => self.stats.foreign_frames += 1,
            StoreFrame::Deregister { nonce, token, registration, .. } => {
                let permission = self.administration.permission(bytes, nonce);
                self.deregister(address, permission, token, registration);
            }
            // The answer to an earlier question is on its way. A store that is asked faster than it
            // answers would never get a whole one through.
            StoreFrame::Attach { .. } if self.out.clients.is_behind(address.client) => {}
            // Stores answer where they were asked.
            StoreFrame::Fetched { .. } | StoreFrame::FetchedPositions { .. } => {
                self.stats.foreign_frames += 1
            }
            StoreFrame::Fetch { .. } | StoreFrame::Attach { .. }
                if !self.fetches.is_empty() || self.has_replied_enough() =>
            {
                self.stats.refused += u64::from(!self.fetches.push(address, &frame, bytes));
            }
            StoreFrame::Open { .. } if !is_subscribed(address.topic) => return true,
            frame => self.machine.on_frame(address, &frame, self.now, self.log, &mut self.out),
        }
        false
    }

    fn inspect(&mut self, address: StoreAddress<'_>, token: u64, from: (u32, u64)) {
        self.pages += 1;
        if self.pages <= PAGES_IN_POLL {
            let Self { administration, machine, log, incarnation, .. } = self;
            let page = administration.page(machine, log, *incarnation, token, from);
            let StoreAddress { client, topic, source } = address;
            self.out.reply(client, topic, source, &StoreFrame::Inspected(page));
        }
    }

    fn deregister(
        &mut self,
        address: StoreAddress<'_>,
        permission: Permission,
        token: u64,
        registration: Registration,
    ) {
        let StoreAddress { client, topic, source } = address;
        let answer = match permission {
            Permission::Granted => {
                let Self { machine, log, out, .. } = self;
                return machine.deregister(address, token, registration, *log, out);
            }
            Permission::Challenged(nonce) => StoreFrame::Challenge { token, nonce },
            Permission::Refused => {
                self.stats.refused += 1;
                let outcome = DeregisterOutcome::NotPermitted;
                StoreFrame::Deregistered { token, outcome }
            }
        };
        self.out.reply(client, topic, source, &answer);
    }
}

/// A frame, counted; `None` if it is none of this version.
pub(crate) fn read<'a>(
    bytes: &'a [u8],
    stats: &mut StoreStats,
) -> Option<(StoreAddress<'a>, StoreFrame<'a>)> {
    stats.frames += 1;
    let read: Result<_, StoreFrameError> = StoreFrame::read(bytes);
    stats.foreign_frames += u64::from(read.is_err());
    if let Err(StoreFrameError::Version(version)) = read {
        stats.other_versions += 1;
        stats.other_version = Some(version);
    }
    read.ok()
}

/// Answers a request of another version with this store's version; others are not answered.
#[cold]
fn refuse_version<T: Transport>(bytes: &[u8], out: &mut Outbox<'_, T>) {
    if let Err(StoreFrameError::Version(_)) = StoreFrame::read(bytes)
        && let Some(client) = StoreHeader::client_of_any_version(bytes)
    {
        out.clients.reply(client, &StoreHeader::version_refusal(client), out.now);
    }
}
