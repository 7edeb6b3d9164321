//! The administration of a store: pages of its streams, and the permission to end registrations.

use crate::directory::write_private;
use crate::log::JournalLog;
use lanecast_journal::Storage;
use lanecast_persistence::{Store, StreamSummary};
use lanecast_wire::store::{StorePage, StreamReport};
use std::borrow::Cow;
use std::path::Path;

/// File with the key, as 32 hexadecimal digits.
const KEY_FILE: &str = "administration";
/// Longest page, in bytes.
const PAGE_MAX: usize = 32 << 10;

/// Permission to end registrations: for all clients, or for those with the key.
#[derive(Debug)]
pub(crate) struct Administration {
    permits_all: bool,
    /// The key; `None` if it could not be kept, as on a full disk.
    key: Option<u128>,
    page_bytes: usize,
}

impl Administration {
    /// Draws a key for this run of the store, and keeps it in a file that only this user can read.
    pub(crate) fn open(directory: &Path, permits_all: bool, longest_frame: usize) -> Self {
        let random = || lanecast_os::process::random().map(u128::from);
        let draw = || {
            let key = random()? << 64 | random()?;
            write_private(directory, KEY_FILE, &format!("{key:032x}\n"))?;
            std::io::Result::Ok(key)
        };
        // Without a key the store serves all the same: it permits less.
        let key = draw().ok().filter(|key| *key != 0);
        Self { permits_all, key, page_bytes: longest_frame.min(PAGE_MAX) }
    }

    /// Whether a client with `key` may end registrations.
    pub(crate) fn permits(&self, key: u128) -> bool {
        self.permits_all || self.key == Some(key)
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
            if let Some((next, _)) = receivers.next() {
                (page.next_stream, page.next_receiver) = (summary.number, next);
                return page;
            }
            from = 0;
        }
        page
    }
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
pub fn read_administration_key(directory: &Path) -> std::io::Result<u128> {
    let text = std::fs::read_to_string(directory.join(KEY_FILE))?;
    u128::from_str_radix(text.trim_end(), 16).map_err(std::io::Error::other)
}
