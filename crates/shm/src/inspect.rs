//! Inspection of a domain by other processes, for `lanecast ls` and `lanecast clean`.

use crate::directory::{self, PublisherState, publisher_state};
use crate::error::JoinError;
use crate::liveness::{is_publisher_alive, is_slot_owner_alive, publisher_process, slot_process};
use crate::ring_writer::bits;
use crate::segment::SessionFiles;
use crate::session_view::SessionView;
use lanecast_base::sync::Ordering;
use lanecast_base::{Position, WaitStrategy};
use lanecast_os::process::{Identity, State};
use lanecast_wire::shm::{STATE_CLOSED, Slot};
use std::io;
use std::path::{Path, PathBuf};

/// State of a session at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SessionReport {
    /// Number of the session.
    pub session: u64,
    /// Process of the publisher.
    pub publisher: Identity,
    /// Name of that process.
    pub name: String,
    /// Whether the publisher lives.
    pub is_alive: bool,
    /// Whether the publisher has closed the session.
    pub is_closed: bool,
    /// Topics of the session.
    pub topics: Vec<String>,
    /// Length of the ring in bytes.
    pub window_bytes: u64,
    /// Bytes published, with headers, modulo 2^64.
    pub position: u64,
    /// Messages published.
    pub messages: u64,
    /// Claims that found no space.
    pub back_pressured: u64,
    /// Live subscribers evicted.
    pub evictions: u64,
    /// Wake-ups of sleeping subscribers.
    pub wakes: u64,
    /// Wait strategy of the publisher.
    pub wait: Option<WaitStrategy>,
    /// Time of creation, in nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// Subscribers of the session.
    pub subscribers: Vec<SubscriberReport>,
}

/// State of a subscriber of a session at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SubscriberReport {
    /// Index of its slot.
    pub slot: usize,
    /// Process of the subscriber.
    pub process: Identity,
    /// Name of that process.
    pub name: String,
    /// Whether the subscriber lives.
    pub is_alive: bool,
    /// State of its process, if visible in this process's namespace.
    pub state: Option<State>,
    /// Whether the publisher has evicted the subscriber.
    pub is_evicted: bool,
    /// Bytes not read yet (up to an eighth of a window too many while the subscriber is busy).
    pub lag_bytes: u64,
    /// Messages read.
    pub messages: u64,
    /// Sleeps so far.
    pub sleeps: u64,
    /// Wait strategy of the subscriber.
    pub wait: Option<WaitStrategy>,
}

/// Inspects the sessions in `directory`; an unreadable one is an error that names its file.
///
/// # Errors
/// If the directory cannot be read.
pub fn inspect(directory: &Path) -> io::Result<Vec<Result<SessionReport, JoinError>>> {
    let reports = directory::sessions(directory)?
        .into_iter()
        .map(|session| report(&SessionFiles::new(directory, session)));
    // Sessions removed in the meantime are left out.
    Ok(reports.filter(|report| !report.as_ref().is_err_and(JoinError::is_gone)).collect())
}

fn report(files: &SessionFiles) -> Result<SessionReport, JoinError> {
    let io = |error| JoinError::Io { path: files.ring.clone(), error };
    let (ring, header, limits) = files.open_ring()?;
    let gate = files.open_gate(&limits, false)?;
    let view = SessionView::map(&ring, &gate, &limits).map_err(io)?;
    let live = view.ring();
    let publisher = publisher_process(&header);
    let head = Position::new(live.head.load(Ordering::Relaxed));
    let used = view.gate().used.load(Ordering::Relaxed);
    let subscribers = bits(used, view.slots())
        .filter_map(|index| subscriber(&view, &gate, index, head))
        .collect();
    Ok(SessionReport {
        session: files.session,
        publisher,
        name: text(&header.name),
        is_alive: is_publisher_alive(&ring, publisher),
        is_closed: live.state.load(Ordering::Relaxed) == STATE_CLOSED,
        topics: directory::topics(&ring, &limits).map_err(io)?,
        window_bytes: limits.window_bytes,
        position: head.get(),
        messages: view.messages(),
        back_pressured: live.back_pressured.load(Ordering::Relaxed),
        evictions: live.evictions.load(Ordering::Relaxed),
        wakes: live.wakes.load(Ordering::Relaxed),
        wait: WaitStrategy::from_code(live.wait.load(Ordering::Relaxed)),
        created_unix_ns: header.created_unix_ns.get(),
        subscribers,
    })
}

fn subscriber(
    view: &SessionView,
    gate: &std::fs::File,
    index: usize,
    head: Position,
) -> Option<SubscriberReport> {
    let slot: &Slot = view.slot(index);
    let lease = slot.lease.load(Ordering::Relaxed);
    if lease.is_multiple_of(2) {
        return None;
    }
    let process = slot_process(slot);
    let cursor = Position::new(slot.cursor.load(Ordering::Relaxed));
    let name = slot.name.each_ref().map(|part| part.load(Ordering::Relaxed).to_le_bytes());
    Some(SubscriberReport {
        slot: index,
        process,
        name: text(name.as_flattened()),
        is_alive: is_slot_owner_alive(gate, index, slot),
        state: process.state(),
        is_evicted: view.ring().evicted[index].load(Ordering::Relaxed) == lease,
        lag_bytes: if head.is_past(cursor) { head.since(cursor) } else { 0 },
        messages: slot.messages.load(Ordering::Relaxed),
        sleeps: slot.sleeps.load(Ordering::Relaxed),
        wait: WaitStrategy::from_code(slot.wait.load(Ordering::Relaxed)),
    })
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// A file of a dead process.
#[derive(Clone, Debug)]
pub struct StaleFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Length in bytes.
    pub bytes: u64,
    /// Error of its removal; `None` if it was removed, or in a dry run.
    pub error: Option<String>,
}

/// Removes the files of dead processes in `directory`, unless `dry_run`; returns them.
///
/// # Errors
/// If the directory cannot be read.
pub fn clean(directory: &Path, dry_run: bool) -> io::Result<Vec<StaleFile>> {
    let mut stale = Vec::new();
    for session in directory::sessions(directory)? {
        let files = SessionFiles::new(directory, session);
        if publisher_state(&files) == PublisherState::Dead {
            stale.extend([files.ring, files.gate]);
        }
    }
    stale.extend(directory::stale_others(directory)?);
    let stale = stale.into_iter().filter_map(|path| {
        let bytes = std::fs::symlink_metadata(&path).ok()?.len();
        let removed = if dry_run { Ok(()) } else { std::fs::remove_file(&path) };
        Some(StaleFile { path, bytes, error: removed.err().map(|error| error.to_string()) })
    });
    Ok(stale.collect())
}
