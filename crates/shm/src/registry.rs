//! The directory as the register of sessions: no daemon, no network.

use crate::attachment::owner;
use crate::mailbox::is_owned;
use crate::segment::SessionFiles;
use lanecast_os::{is_locked, open};
use lanecast_wire::shm::{Limits, RING_LIVE_OFFSET, RingLive, TOPICS_OFFSET, TopicEntry};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use zerocopy::FromBytes;

/// The numbers of all sessions that have a file in `directory`, alive or not.
pub(crate) fn sessions(directory: &Path) -> io::Result<BTreeSet<u64>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries?,
    };
    Ok(entries
        .filter_map(Result::ok)
        .filter_map(|entry| session_of(entry.file_name().to_str()?))
        .collect())
}

/// The session that a file of this name belongs to.
pub(crate) fn session_of(name: &str) -> Option<u64> {
    let (number, kind) = name.split_once('.')?;
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_number = number.len() == 16 && number.bytes().all(is_digit);
    let ours = is_number && (kind == "ring" || kind == "gate");
    ours.then(|| u64::from_str_radix(number, 16).ok()).flatten()
}

/// The topics of the session whose ring file this is, as of now.
pub(crate) fn topics(ring: &File, limits: &Limits) -> io::Result<Vec<String>> {
    let mut count = [0; 4];
    let count_offset = RING_LIVE_OFFSET + core::mem::offset_of!(RingLive, topics);
    ring.read_exact_at(&mut count, count_offset as u64)?;
    let count = u32::from_le_bytes(count).min(limits.topics_max);
    let mut table = vec![0; count as usize * size_of::<TopicEntry>()];
    ring.read_exact_at(&mut table, TOPICS_OFFSET as u64)?;
    let entries = table.chunks_exact(size_of::<TopicEntry>());
    let names = entries
        .filter_map(|bytes| TopicEntry::read_from_bytes(bytes).ok()?.name().map(str::to_owned));
    Ok(names.collect())
}

/// What became of a session's publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It lives.
    Alive,
    /// It has ended, and left its files behind.
    Dead,
    /// The files cannot be looked at, or belong to nobody that can be asked.
    Unknown,
}

/// Whether the session's publisher still lives. Damaged files of a dead publisher count as
/// dead: the lock alone tells.
pub(crate) fn owner_of(files: &SessionFiles) -> Owner {
    if let Ok((ring, header, _)) = files.open_ring() {
        return if is_owned(&ring, owner(&header)) { Owner::Alive } else { Owner::Dead };
    }
    let locked = |path: &Path| Some(is_locked(&open(path, false).ok()?, 0).unwrap_or(true));
    match (locked(&files.ring), locked(&files.gate)) {
        (None, None) => Owner::Unknown,
        (ring, gate) if ring == Some(true) || gate == Some(true) => Owner::Alive,
        _ => Owner::Dead,
    }
}

/// Removes what dead publishers left in `directory`; returns the sessions removed.
///
/// Whoever still reads such a session keeps its memory until done.
pub(crate) fn reclaim(directory: &Path) -> io::Result<Vec<u64>> {
    let stale = sessions(directory)?.into_iter().filter(|&session| {
        let files = SessionFiles::new(directory, session);
        owner_of(&files) == Owner::Dead && files.remove().is_ok()
    });
    let stale = stale.collect();
    for path in stale_counters(directory)? {
        let _ = std::fs::remove_file(path);
    }
    Ok(stale)
}

/// The counters files in `directory` that no living process owns.
pub(crate) fn stale_counters(directory: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let files = lanecast_stats::list_files(directory)?.into_iter();
    let is_stale = |path: &std::path::PathBuf| {
        open(path, false).and_then(|file| is_locked(&file, 0)).is_ok_and(|locked| !locked)
    };
    Ok(files.filter(is_stale).collect())
}
