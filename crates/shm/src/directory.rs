//! The domain's directory as the registry of sessions: lists them, and removes stale files.

use crate::liveness::{is_publisher_alive, publisher_process};
use crate::segment::SessionFiles;
use crate::wake_pipe::is_pipe;
use lanecast_os::{is_locked, list_directory, open, open_pipe};
use lanecast_wire::shm::{Limits, RING_LIVE_OFFSET, RingLive, TOPICS_OFFSET, TopicEntry};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use zerocopy::FromBytes;

/// Numbers of all sessions with a file in `directory`, alive or not.
pub(crate) fn sessions(directory: &Path) -> io::Result<BTreeSet<u64>> {
    let paths = list_directory(directory)?.into_iter();
    Ok(paths.filter_map(|path| session_of(path.file_name()?.to_str()?)).collect())
}

/// Session of a file with this name.
pub(crate) fn session_of(name: &str) -> Option<u64> {
    let (number, kind) = name.split_once('.')?;
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_number = number.len() == 16 && number.bytes().all(is_digit);
    let ours = is_number && (kind == "ring" || kind == "gate");
    ours.then(|| u64::from_str_radix(number, 16).ok()).flatten()
}

/// Current topics of the session with this ring file.
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

/// State of a session's publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PublisherState {
    /// Alive.
    Alive,
    /// Dead, without removing its files.
    Dead,
    /// The files cannot be opened.
    Unknown,
}

/// State of the session's publisher. For files with a damaged header the locks alone decide.
pub(crate) fn publisher_state(files: &SessionFiles) -> PublisherState {
    if let Ok((ring, header, _)) = files.open_ring() {
        return if is_publisher_alive(&ring, publisher_process(&header)) {
            PublisherState::Alive
        } else {
            PublisherState::Dead
        };
    }
    let locked = |path: &Path| Some(is_locked(&open(path, false).ok()?, 0).unwrap_or(true));
    match (locked(&files.ring), locked(&files.gate)) {
        (None, None) => PublisherState::Unknown,
        (ring, gate) if ring == Some(true) || gate == Some(true) => PublisherState::Alive,
        _ => PublisherState::Dead,
    }
}

/// Removes the files of dead publishers in `directory`; returns the removed sessions.
///
/// Subscribers that still read such a session keep its memory.
pub(crate) fn reclaim(directory: &Path) -> io::Result<Vec<u64>> {
    let stale = sessions(directory)?.into_iter().filter(|&session| {
        let files = SessionFiles::new(directory, session);
        publisher_state(&files) == PublisherState::Dead && files.remove().is_ok()
    });
    let stale = stale.collect();
    for path in stale_others(directory)? {
        let _ = std::fs::remove_file(path);
    }
    Ok(stale)
}

/// Files in `directory` that are not a session's, and whose owner has died: counters, and named
/// pipes.
pub(crate) fn stale_others(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let is_free = |file: io::Result<File>| {
        file.and_then(|file| is_locked(&file, 0)).is_ok_and(|is_locked| !is_locked)
    };
    let mut stale = lanecast_stats::list_files(directory)?;
    stale.retain(|path| is_free(open(path, false)));
    let pipes = list_directory(directory)?.into_iter().filter(|path| is_pipe(path));
    stale.extend(pipes.filter(|path| is_free(open_pipe(path))));
    Ok(stale)
}
