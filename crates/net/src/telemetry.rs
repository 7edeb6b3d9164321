//! Telemetry of a network: counters files, read by `lanecast stat`.
//!
//! State machines count in plain fields; the thread that drives a session copies them into its
//! [`CounterFile`] every 50 ms. Messages pay nothing for it.

use crate::counters::{
    CounterColumn, PUBLISHER, PublisherCounters, SUBSCRIBER, SubscriberCounters,
};
use crate::frame_reassembler::OtherFrames;
use crate::refused_hosts::{RefusedDatagrams, RefusedDatagramsReport, RefusedHosts};
use crate::source::Source;
use lanecast_base::sync::{AtomicUsize, Ordering};
use lanecast_protocol::{MILLISECOND, Nanos};
use lanecast_stats::{CounterLayout, CounterOwner, Counters, Loss, Role};
use lanecast_wire::net::{is_sealed, other_version};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Interval between two updates of a file.
pub(crate) const UPDATE_INTERVAL: Nanos = 50 * MILLISECOND;
/// File mode: readable by the user alone.
const MODE: u32 = 0o600;
/// The most sessions with files of their own.
const FILES_MAX: usize = 128;
/// The most losses that the log keeps.
const LOSSES: u32 = 256;

const LABELS: [&str; 15] = [
    "network sessions published",
    "network sessions joined",
    "network sessions without a file",
    "network errors",
    "datagrams not sealed",
    "datagrams sealed with unknown keys",
    "datagrams forged",
    "datagrams repeated",
    "datagrams sealed, no key",
    "tls handshakes begun",
    "tls handshakes completed",
    "tls handshakes over the rate",
    "connections that gave way",
    "tls handshake ns",
    "publishers found without room",
];
const PUBLISHED: usize = 0;
const JOINED: usize = 1;
const WITHOUT: usize = 2;
const ERRORS: usize = 3;
const REFUSED_PUBLISHERS: usize = 14;

/// Handshakes of accepted connections, by the counter of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeCount {
    /// Begun.
    Begun = 9,
    /// Completed.
    Completed = 10,
    /// Refused, as their address begins too many.
    Refused = 11,
    /// Ended in favour of newcomers.
    Displaced = 12,
    /// Time of all steps, in nanoseconds.
    Nanos = 13,
}

/// A network's counters files. Without them (the disk is full, say) the transports work all the
/// same.
#[derive(Clone, Debug)]
pub(crate) struct Telemetry {
    files: Option<Arc<Files>>,
    /// For the program itself, with files and without.
    refused: Arc<RefusedHosts>,
}

#[derive(Debug)]
struct Files {
    directory: PathBuf,
    process: Counters,
    /// Number of session files.
    open: AtomicUsize,
}

impl Telemetry {
    /// Writes no files.
    pub(crate) fn disabled() -> Self {
        Self { files: None, refused: Arc::default() }
    }

    /// Writes files in `directory`, if there is one.
    pub(crate) fn open(directory: Option<&Path>) -> Self {
        let files = directory.and_then(|directory| {
            let process =
                Counters::create(directory, MODE, &CounterLayout::process(&LABELS, LOSSES)).ok()?;
            Some(Arc::new(Files {
                directory: directory.to_owned(),
                process,
                open: AtomicUsize::new(0),
            }))
        });
        Self { files, refused: Arc::default() }
    }

    /// Datagrams that were refused for their seal.
    pub(crate) fn refused(&self) -> RefusedDatagramsReport {
        self.refused.report()
    }

    /// Counts and logs an error.
    pub(crate) fn error(&self, text: &str) {
        if let Some(files) = &self.files {
            files.process.add(ERRORS, 1);
            files.process.error(text);
        }
    }

    /// Reports frames of another version: their program and this one cannot work together.
    #[cold]
    pub(crate) fn other_version(&self, from: IpAddr, version: u8) {
        // Without the port: programs of one host are one error.
        self.error(&format!("{from} {}", OtherFrames::Version(version)));
    }

    /// Reports why a connection with `from` has failed, if it is more than that it is gone.
    #[cold]
    pub(crate) fn stream_error(&self, from: IpAddr, error: &io::Error) {
        // Errors of the system have no words of ours.
        if error.get_ref().is_some() {
            self.error(&format!("{from} {error}"));
        }
    }

    /// Counts a datagram that is refused for its seal.
    pub(crate) fn count_refused(&self, refused: RefusedDatagrams) {
        // Networks repeat datagrams, whatever the keys.
        if refused != RefusedDatagrams::Repeated {
            self.refused.count();
        }
        if let Some(files) = &self.files {
            files.process.add(refused as usize, 1);
        }
    }

    /// Counts what happens to TLS handshakes.
    pub(crate) fn count_handshakes(&self, which: HandshakeCount, count: u64) {
        if let Some(files) = &self.files
            && count > 0
        {
            files.process.add(which as usize, count);
        }
    }

    /// Reports publishers that are not joined, as discovery knows the most that it may.
    #[cold]
    pub(crate) fn refused_publishers(&self, count: u64) {
        let Some(files) = &self.files else { return };
        files.process.add(REFUSED_PUBLISHERS, count);
        self.error(
            "publishers of subscribed topics are not joined: this program knows the most that it \
             may, of all hosts or of theirs; subscribe to fewer topics, or in several programs",
        );
    }

    /// Reports datagrams from `from` that are refused for their seal: in words, once for a host.
    #[cold]
    pub(crate) fn tell_refused(&self, refused: RefusedDatagrams, from: IpAddr) {
        self.refused.add(from, refused);
        self.error(&format!("a datagram from {from} {}", refused.reason()));
    }

    /// Opens the file of a session that this process publishes.
    pub(crate) fn publisher(&self, source: &Source) -> CounterFile<PublisherCounters> {
        self.open_file(Role::Publisher, source, PUBLISHED, &PUBLISHER)
    }

    /// Opens the file of a session that a subscriber begins to join.
    pub(crate) fn subscriber(&self, source: &Source) -> CounterFile<SubscriberCounters> {
        self.open_file(Role::Subscriber, source, JOINED, &SUBSCRIBER)
    }

    fn open_file<C>(
        &self,
        role: Role,
        source: &Source,
        counter: usize,
        columns: &'static [CounterColumn<C>],
    ) -> CounterFile<C> {
        let Some(files) = &self.files else { return CounterFile::disabled() };
        files.process.add(counter, 1);
        // Limited: any number of sessions may come, but directory and memory are finite.
        let slot = FileSlot::take(files);
        let (address, group) = (source.address.to_string(), source.group.map(|g| g.to_string()));
        let owner = CounterOwner {
            role,
            session: source.session,
            transport: source.kind.name(),
            address: &address,
            group: group.as_deref().unwrap_or_default(),
        };
        let labels: Vec<&str> = columns.iter().map(|(label, _)| *label).collect();
        let layout = CounterLayout::session(&labels, owner);
        let file = slot
            .and_then(|slot| Some((Counters::create(&files.directory, MODE, &layout).ok()?, slot)));
        // Zero: the first update comes at once, so that the file is never seen empty for long.
        let due = if file.is_some() { 0 } else { Nanos::MAX };
        if file.is_none() {
            files.process.add(WITHOUT, 1);
        }
        CounterFile { files: Some(Arc::clone(files)), file, columns, due }
    }
}

/// Datagrams to a subscriber that are no frames.
#[derive(Debug, Default)]
pub(crate) struct UnreadableDatagrams {
    has_told_of_sealed: bool,
}

impl UnreadableDatagrams {
    /// Tells of `bytes` from `from`: sealed ones, for which this program has no key, and those of
    /// another version if a joined publisher `is_known` there.
    #[cold]
    pub(crate) fn refuse(
        &mut self,
        bytes: &[u8],
        from: IpAddr,
        is_known: impl Fn() -> bool,
        telemetry: &Telemetry,
    ) {
        if is_sealed(bytes) {
            // Each is counted, the first one told in words.
            telemetry.count_refused(RefusedDatagrams::NoKey);
            if !std::mem::replace(&mut self.has_told_of_sealed, true) {
                telemetry.tell_refused(RefusedDatagrams::NoKey, from);
            }
        } else if let Some(version) = other_version(bytes)
            && is_known()
        {
            telemetry.other_version(from, version);
        }
    }
}

/// A reservation of one of [`FILES_MAX`] session files.
#[derive(Debug)]
struct FileSlot(Arc<Files>);

impl FileSlot {
    fn take(files: &Arc<Files>) -> Option<Self> {
        // Counted before the check: dropping the slot takes it back in any case.
        let slot = Self(Arc::clone(files));
        let others = files.open.fetch_add(1, Ordering::Relaxed);
        (others < FILES_MAX).then_some(slot)
    }
}

impl Drop for FileSlot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The counters file of one session, and the time of its next update.
#[derive(Debug)]
pub(crate) struct CounterFile<C: 'static> {
    files: Option<Arc<Files>>,
    file: Option<(Counters, FileSlot)>,
    columns: &'static [CounterColumn<C>],
    due: Nanos,
}

impl<C> CounterFile<C> {
    /// No file.
    pub(crate) const fn disabled() -> Self {
        Self { files: None, file: None, columns: &[], due: Nanos::MAX }
    }

    /// Whether it is time to [`update`](Self::update).
    #[inline]
    pub(crate) const fn is_due(&self, now: Nanos) -> bool {
        self.due <= now
    }

    /// Time of the next update; `Nanos::MAX` without a file.
    pub(crate) const fn due(&self) -> Nanos {
        self.due
    }

    /// Writes `counters` to the file.
    pub(crate) fn update(&mut self, now: Nanos, counters: &C) {
        let Some((file, _)) = &self.file else { return };
        for (index, (_, value)) in self.columns.iter().enumerate() {
            file.set(index, value(counters));
        }
        self.due = now.saturating_add(UPDATE_INTERVAL);
    }

    pub(crate) fn add_topic(&self, name: &str) {
        if let Some((file, _)) = &self.file {
            file.add_topic(name);
        }
    }

    /// Whether losses are logged.
    pub(crate) const fn logs_losses(&self) -> bool {
        self.files.is_some()
    }

    /// Adds an entry to the log of losses.
    pub(crate) fn loss(&self, loss: &Loss<'_>) {
        if let Some(files) = &self.files {
            files.process.loss(loss);
        }
    }
}
