//! A domain from outside: what `lanecast ls` and `lanecast clean` show.

use crate::error::AttachError;
use crate::mailbox::is_owned;
use crate::registry::{self, Owner, owner_of};
use crate::segment::SessionFiles;
use crate::view::View;
use crate::vigil::{identity, is_alive};
use lanecast_base::sync::Ordering;
use lanecast_base::{Position, WaitStrategy};
use lanecast_os::process::{Identity, State};
use lanecast_wire::shm::{STATE_CLOSED, Slot};
use std::io;
use std::path::{Path, PathBuf};

/// A session at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SessionReport {
    /// The session's number.
    pub session: u64,
    /// The publisher's process.
    pub publisher: Identity,
    /// The process's name.
    pub name: String,
    /// Whether it lives.
    pub is_alive: bool,
    /// Whether it has said goodbye.
    pub is_closed: bool,
    /// Its topics.
    pub topics: Vec<String>,
    /// The ring's length in bytes.
    pub window_bytes: u64,
    /// How many bytes it has published, with headers, modulo 2^64.
    pub position: u64,
    /// How many messages it has published.
    pub messages: u64,
    /// How often it found no room.
    pub back_pressured: u64,
    /// How many subscribers it evicted that were alive.
    pub evictions: u64,
    /// How often it woke sleeping subscribers.
    pub wakes: u64,
    /// How it waits.
    pub wait: Option<WaitStrategy>,
    /// When it was made, in nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// Who reads it.
    pub subscribers: Vec<SubscriberReport>,
}

/// A subscriber of a session at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SubscriberReport {
    /// Its place.
    pub slot: usize,
    /// Its process.
    pub process: Identity,
    /// The process's name.
    pub name: String,
    /// Whether it lives.
    pub is_alive: bool,
    /// What its process is doing, if that can be seen from here.
    pub state: Option<State>,
    /// Whether its place has been taken away.
    pub is_evicted: bool,
    /// How many bytes it has yet to read (shown an eighth of a window late while it is busy).
    pub lag_bytes: u64,
    /// How many messages it has read.
    pub messages: u64,
    /// How often it slept.
    pub sleeps: u64,
    /// How it waits.
    pub wait: Option<WaitStrategy>,
}

/// The sessions in `directory`; those that cannot be read come as errors, each with its file.
///
/// # Errors
/// If the directory cannot be read.
pub fn inspect(directory: &Path) -> io::Result<Vec<Result<SessionReport, AttachError>>> {
    let reports = registry::sessions(directory)?
        .into_iter()
        .map(|session| report(&SessionFiles::new(directory, session)));
    // A session that went away while it was looked at is no news.
    Ok(reports.filter(|report| !report.as_ref().is_err_and(AttachError::is_gone)).collect())
}

fn report(files: &SessionFiles) -> Result<SessionReport, AttachError> {
    let io = |error| AttachError::Io { path: files.ring.clone(), error };
    let (ring, header, limits) = files.open_ring()?;
    let gate = files.open_gate(&limits, false)?;
    let view = View::map(&ring, &gate, &limits).map_err(io)?;
    let live = view.ring();
    let publisher = crate::attachment::owner(&header);
    let head = Position::new(live.head.load(Ordering::Relaxed));
    let used = view.gate().used.load(Ordering::Relaxed);
    let subscribers = crate::write_edge::bits(used, view.slots())
        .filter_map(|index| subscriber(&view, &gate, index, head))
        .collect();
    Ok(SessionReport {
        session: files.session,
        publisher,
        name: text(&header.name),
        is_alive: is_owned(&ring, publisher),
        is_closed: live.state.load(Ordering::Relaxed) == STATE_CLOSED,
        topics: registry::topics(&ring, &limits).map_err(io)?,
        window_bytes: limits.window_bytes,
        position: head.get(),
        messages: live.messages.load(Ordering::Relaxed),
        back_pressured: live.back_pressured.load(Ordering::Relaxed),
        evictions: live.evictions.load(Ordering::Relaxed),
        wakes: live.wakes.load(Ordering::Relaxed),
        wait: WaitStrategy::from_code(live.wait.load(Ordering::Relaxed)),
        created_unix_ns: header.created_unix_ns.get(),
        subscribers,
    })
}

fn subscriber(
    view: &View,
    gate: &std::fs::File,
    index: usize,
    head: Position,
) -> Option<SubscriberReport> {
    let slot: &Slot = view.slot(index);
    let lease = slot.lease.load(Ordering::Relaxed);
    if lease.is_multiple_of(2) {
        return None;
    }
    let process = identity(slot);
    let cursor = Position::new(slot.cursor.load(Ordering::Relaxed));
    let name = slot.name.each_ref().map(|part| part.load(Ordering::Relaxed).to_le_bytes());
    Some(SubscriberReport {
        slot: index,
        process,
        name: text(name.as_flattened()),
        is_alive: is_alive(gate, index, slot),
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

/// A file that no living process owns.
#[derive(Clone, Debug)]
pub struct Clean {
    /// The file.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Why it could not be removed; `None` if it was, or was not to be.
    pub error: Option<String>,
}

/// What dead processes left in `directory`; removes it, unless `dry_run`.
///
/// # Errors
/// If the directory cannot be read.
pub fn clean(directory: &Path, dry_run: bool) -> io::Result<Vec<Clean>> {
    let mut stale = Vec::new();
    for session in registry::sessions(directory)? {
        let files = SessionFiles::new(directory, session);
        if owner_of(&files) == Owner::Dead {
            stale.extend([files.ring, files.gate]);
        }
    }
    stale.extend(registry::stale_counters(directory)?);
    let stale = stale.into_iter().filter_map(|path| {
        let bytes = std::fs::symlink_metadata(&path).ok()?.len();
        let removed = if dry_run { Ok(()) } else { std::fs::remove_file(&path) };
        Some(Clean { path, bytes, error: removed.err().map(|error| error.to_string()) })
    });
    Ok(stale.collect())
}
