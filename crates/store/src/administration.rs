//! The administration of a store: pages of its streams, and the permission to end registrations.

use crate::directory::PRIVATE;
use crate::log::JournalLog;
use crate::proof::is_proven;
use lanecast_journal::Storage;
use lanecast_os::{process, replace_file};
use lanecast_persistence::{Store, StreamSummary};
use lanecast_wire::store::{StorePage, StreamReport};
use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::Path;

/// File with the key, as 32 hexadecimal digits.
const KEY_FILE: &str = "administration";
/// Longest page, in bytes.
const PAGE_MAX: usize = 32 << 10;

/// Permission to end registrations: for all clients, or for those that prove to know the key.
#[derive(Debug)]
pub(crate) struct Administration {
    store: String,
    permits_all: bool,
    /// The key and the current challenge, neither of them 0.
    key: io::Result<(u128, u128)>,
    page_bytes: usize,
}

/// Answer to a request to end a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Granted,
    Refused,
    /// The sender has to answer this challenge.
    Challenged(u128),
}

impl Administration {
    /// Draws a key for this run of the store, and keeps it in a file that only this user can read.
    pub(crate) fn open(
        directory: &Path,
        store: &str,
        permits_all: bool,
        longest_frame: usize,
    ) -> Self {
        // Without a key the store serves all the same: it permits less.
        let (key, page_bytes) = (draw_key(directory), longest_frame.min(PAGE_MAX));
        Self { store: store.to_owned(), permits_all, key, page_bytes }
    }

    /// Reason why there is no key, as on a full disk.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.key.as_ref().err()
    }

    /// Whether the sender of this Deregister frame may end registrations. A challenge permits one
    /// request.
    pub(crate) fn permission(&mut self, frame: &[u8], nonce: u128) -> Permission {
        match &mut self.key {
            _ if self.permits_all => Permission::Granted,
            Err(_) => Permission::Refused,
            Ok((_, current)) if *current != nonce => Permission::Challenged(*current),
            Ok((key, _)) if !is_proven(*key, &self.store, frame) => Permission::Refused,
            Ok((key, _)) => {
                let key = *key;
                self.key = draw().map(|nonce| (key, nonce));
                Permission::Granted
            }
        }
    }

    /// The streams from number `stream` on, with the receivers of the first from `receiver` on: as
    /// many as fit into a frame.
    pub(crate) fn page<'a, S: Storage>(
        &self,
        machine: &'a Store,
        log: &JournalLog<S>,
        incarnation: u64,
        token: u64,
        (stream, receiver): (u32, u64),
    ) -> StorePage<'a> {
        let streams = u32::try_from(machine.summaries().len()).unwrap_or(u32::MAX);
        let (next_stream, next_receiver, reports) = (streams, 0, Vec::new());
        let mut page =
            StorePage { incarnation, token, streams, next_stream, next_receiver, reports };
        let mut room = self.page_bytes.saturating_sub(StorePage::EMPTY);
        let mut from = receiver;
        for summary in machine.summaries_from(stream) {
            let mut report = report(&summary, log);
            // A page has one stream at least, and of that one receiver, or nothing would go on.
            if report.length() > room && !page.reports.is_empty() {
                (page.next_stream, page.next_receiver) = (summary.number, from);
                return page;
            }
            room = room.saturating_sub(report.length());
            let fit = (room / StreamReport::RECEIVER).clamp(1, u16::MAX.into());
            let mut receivers = machine.receivers(summary.number, from);
            report.receivers.extend(receivers.by_ref().take(fit));
            room = room.saturating_sub(report.receivers.len() * StreamReport::RECEIVER);
            page.reports.push(report);
            if let Some(next) = receivers.next() {
                (page.next_stream, page.next_receiver) = (summary.number, next.receiver);
                return page;
            }
            from = 0;
        }
        page
    }
}

/// Draws a key and the first challenge. The file of an earlier run is removed first: its key
/// permits nothing any more.
fn draw_key(directory: &Path) -> io::Result<(u128, u128)> {
    let path = directory.join(KEY_FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (key, nonce) = (draw()?, draw()?);
    replace_file(&path, format!("{key:032x}\n").as_bytes(), PRIVATE)?;
    Ok((key, nonce))
}

/// A random number that is not 0.
fn draw() -> io::Result<u128> {
    let (high, low) = (process::random()?, process::random()?);
    Ok((u128::from(high) << 64 | u128::from(low)).max(1))
}

/// A stream without its receivers.
fn report<'a, S: Storage>(summary: &StreamSummary<'a>, log: &JournalLog<S>) -> StreamReport<'a> {
    let index = log.index(summary.number);
    let is_empty = summary.first == summary.next;
    StreamReport {
        number: summary.number,
        topic: Cow::Borrowed(summary.topic),
        source: summary.source,
        run: summary.run,
        promised: summary.promised,
        is_live: summary.is_live,
        is_copying: summary.is_copying,
        first: summary.first,
        next: summary.next,
        consumed: summary.consumed,
        bytes: index.map_or(0, |index| index.bytes_from(summary.first)),
        oldest_unix_ns: index.filter(|_| !is_empty).map_or(0, |index| index.oldest_unix_ns()),
        members: summary.members.clone(),
        receivers: Vec::new(),
    }
}

/// The key of the store whose data is in `directory`: proof that a program runs as the store's
/// user, on its host.
///
/// # Errors
/// If the file cannot be read, or has no key.
pub fn read_administration_key(directory: &Path) -> io::Result<u128> {
    let text = fs::read_to_string(directory.join(KEY_FILE))?;
    u128::from_str_radix(text.trim_end(), 16).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::prove;

    const FRAME: &[u8] = b"frame";

    fn proven(key: u128) -> Vec<u8> {
        [FRAME, &prove(key, "a", FRAME)].concat()
    }

    #[test]
    fn a_challenge_permits_one_request() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut administration = Administration::open(directory.path(), "a", false, 1_000);
        let key = read_administration_key(directory.path()).expect("a key");
        let nonce = match administration.permission(FRAME, 0) {
            Permission::Challenged(nonce) => nonce,
            other => panic!("{other:?}"),
        };
        assert_eq!(administration.permission(&proven(key ^ 1), nonce), Permission::Refused);
        assert_eq!(administration.permission(&proven(key), nonce), Permission::Granted);
        let again = administration.permission(&proven(key), nonce);
        assert!(matches!(again, Permission::Challenged(other) if other != nonce), "{again:?}");
    }

    #[test]
    fn a_key_that_cannot_be_kept_permits_nothing_and_leaves_no_other() {
        let directory = tempfile::tempdir().expect("a directory");
        drop(Administration::open(directory.path(), "a", false, 1_000));
        let old = read_administration_key(directory.path()).expect("a key");
        let in_the_way = directory.path().join(format!("{KEY_FILE}.new"));
        fs::create_dir(in_the_way).expect("in the way");
        let mut administration = Administration::open(directory.path(), "a", false, 1_000);
        assert!(administration.failure().is_some());
        assert!(read_administration_key(directory.path()).is_err(), "that of the last run");
        assert_eq!(administration.permission(&proven(old), 0), Permission::Refused);
        let mut open = Administration::open(directory.path(), "a", true, 1_000);
        assert_eq!(open.permission(FRAME, 0), Permission::Granted);
    }
}
