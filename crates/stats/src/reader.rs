//! Reads counters files of other processes: copies them out and checks them.

use crate::layout::{EXTENSION, Role};
use crate::loss::{LossOutcome, LossReport};
use crate::loss_totals::{LossCount, LossTotals};
use lanecast_os::process::Identity;
use lanecast_os::{is_locked, open};
use lanecast_wire::stats::{
    COUNT_UNKNOWN, COUNTERS_OFFSET, CounterEntry, ERROR_TEXT_MAX, ErrorEntry, LABEL_MAX,
    LOSS_SOURCE_MAX, LOSS_TOPIC_MAX, LossEntry, LossSum, LossTotal, Shape, StatsError, StatsHeader,
    TOPICS_OFFSET, TOPICS_TEXT_MAX, TopicList,
};
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Contents of one counters file.
#[derive(Clone, Debug, Default)]
pub struct StatsReport {
    /// Path of the file.
    pub path: PathBuf,
    /// The process.
    pub process: Identity,
    /// Name of the process.
    pub name: String,
    /// Whether the process still runs.
    pub is_alive: bool,
    /// Role of the process in the session.
    pub role: Role,
    /// The session; 0: none.
    pub session: u64,
    /// Creation time of the file, in nanoseconds since 1970.
    pub opened_unix_ns: u64,
    /// Transport of the session.
    pub transport: String,
    /// The publisher's address.
    pub address: String,
    /// Destination group of the session.
    pub group: String,
    /// Topics of the session, as many as fitted into the file.
    pub topics: Vec<String>,
    /// Counters in the order of the file.
    pub counters: Vec<CounterReport>,
    /// Distinct errors.
    pub errors: Vec<ErrorReport>,
    /// Latest losses, oldest first.
    pub losses: Vec<LossReport>,
    /// Sums of losses by session and topic, in the order of their first losses.
    pub loss_totals: Vec<LossTotals>,
}

impl StatsReport {
    /// Value of the counter with this label.
    pub fn value(&self, label: &str) -> Option<u64> {
        self.counters.iter().find(|counter| counter.label == label).map(|counter| counter.value)
    }
}

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterReport {
    /// Label: the thing counted.
    pub label: String,
    /// Value.
    pub value: u64,
}

/// A distinct error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReport {
    /// Error text.
    pub text: String,
    /// Number of occurrences.
    pub count: u64,
    /// First occurrence, in nanoseconds since 1970.
    pub first_unix_ns: u64,
    /// Last occurrence, in nanoseconds since 1970.
    pub last_unix_ns: u64,
}

/// Lists the counters files in `directory`.
///
/// # Errors
/// If the directory cannot be read.
pub fn list_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = lanecast_os::list_directory(directory)?.into_iter();
    Ok(paths.filter(|path| path.extension().is_some_and(|e| e == EXTENSION)).collect())
}

/// Reads one counters file; its bytes are untrusted.
///
/// # Errors
/// If the file cannot be read, or is not a counters file of this version.
pub fn read_file(path: &Path) -> io::Result<StatsReport> {
    let file = open(path, false)?;
    let mut start = [0; size_of::<StatsHeader>()];
    file.read_exact_at(&mut start, 0)?;
    let invalid = |error: StatsError| io::Error::new(io::ErrorKind::InvalidData, error);
    let damaged = || invalid(StatsError::Damaged);
    let header = StatsHeader::read(&start).map_err(invalid)?;
    let shape = Shape {
        counters: header.counters.get(),
        errors: header.errors.get(),
        losses: header.losses.get(),
        totals: header.totals.get(),
    };
    if file.metadata()?.len() != shape.file_bytes() {
        return Err(damaged());
    }
    let process = Identity {
        pid: header.pid.get(),
        namespace: header.namespace.get(),
        start_time: header.start_time.get(),
    };
    let counters = (0..shape.counters).map(|index| read_counter(&file, index));
    let errors = (0..shape.errors).map(|index| read_error(&file, shape, index));
    let errors: io::Result<Vec<_>> = errors.collect();
    Ok(StatsReport {
        path: path.to_owned(),
        process,
        name: padded(&header.name),
        is_alive: is_locked(&file, 0)? && !process.is_surely_gone(),
        role: Role::from_code(header.role.get()).ok_or_else(damaged)?,
        session: header.session.get(),
        opened_unix_ns: header.opened_unix_ns.get(),
        transport: padded(&header.transport),
        address: padded(&header.address),
        group: padded(&header.group),
        topics: read_topics(&file)?,
        counters: counters.collect::<io::Result<_>>()?,
        errors: errors?.into_iter().flatten().collect(),
        losses: read_losses(&file, shape)?,
        loss_totals: read_totals(&file, shape)?,
    })
}

fn read_topics(file: &File) -> io::Result<Vec<String>> {
    let offset = (TOPICS_OFFSET + offset_of!(TopicList, length)) as u64;
    let mut length = [0; 4];
    // The length first, the names in a second read, so that all counted names are complete. The
    // acquire side of PAIRS(topic-list): two system calls are ordered.
    file.read_exact_at(&mut length, offset)?;
    let length = (u32::from_le_bytes(length) as usize).min(TOPICS_TEXT_MAX);
    let mut names = vec![0; length];
    file.read_exact_at(&mut names, (TOPICS_OFFSET + offset_of!(TopicList, text)) as u64)?;
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

fn read_losses(file: &File, shape: Shape) -> io::Result<Vec<LossReport>> {
    let mut losses = Vec::new();
    for index in 0..shape.losses as usize {
        let offset = shape.losses_offset() + index * size_of::<LossEntry>();
        losses.extend(read_loss(file, offset as u64)?);
    }
    losses.sort_by_key(|loss: &LossReport| loss.number);
    Ok(losses)
}

fn read_totals(file: &File, shape: Shape) -> io::Result<Vec<LossTotals>> {
    let mut totals = Vec::new();
    for index in 0..shape.totals as usize {
        let offset = shape.totals_offset() + index * size_of::<LossTotal>();
        totals.extend(read_total(file, offset as u64)?);
    }
    totals.sort_by_key(|(number, _)| *number);
    Ok(totals.into_iter().map(|(_, total)| total).collect())
}

/// Reads the sums of one session and topic, with their number.
fn read_total(file: &File, offset: u64) -> io::Result<Option<(u64, LossTotals)>> {
    // The acquire side of PAIRS(total-number).
    let read = read_numbered::<{ size_of::<LossTotal>() }>(file, offset)?;
    let Some((number, bytes)) = read else { return Ok(None) };
    let small = |offset| u32_at(&bytes, offset);
    let sum = |at: usize| LossCount {
        count: u64_at(&bytes, at + offset_of!(LossSum, count)),
        first_unix_ns: u64_at(&bytes, at + offset_of!(LossSum, first_unix_ns)),
        last_unix_ns: u64_at(&bytes, at + offset_of!(LossSum, last_unix_ns)),
        longest_ns: u64_at(&bytes, at + offset_of!(LossSum, longest_ns)),
    };
    let (source, topic) = (offset_of!(LossTotal, source), offset_of!(LossTotal, topic));
    let source_length = small(offset_of!(LossTotal, source_length));
    let topic_length = small(offset_of!(LossTotal, topic_length));
    let totals = LossTotals {
        session: u64_at(&bytes, offset_of!(LossTotal, session)),
        source: text(&bytes[source..source + LOSS_SOURCE_MAX], source_length),
        topic: text(&bytes[topic..topic + LOSS_TOPIC_MAX], topic_length),
        late: sum(offset_of!(LossTotal, late)),
        repaired: sum(offset_of!(LossTotal, repaired)),
        rebuilt: sum(offset_of!(LossTotal, rebuilt)),
        given_up: sum(offset_of!(LossTotal, given_up)),
        reported: sum(offset_of!(LossTotal, told)),
    };
    Ok(Some((number, totals)))
}

/// Reads an entry that begins with its number; `None` if it is free, or being written.
fn read_numbered<const N: usize>(file: &File, offset: u64) -> io::Result<Option<(u64, [u8; N])>> {
    let number = || {
        let mut number = [0; 8];
        file.read_exact_at(&mut number, offset)?;
        io::Result::Ok(u64::from_le_bytes(number))
    };
    // The number, the entry, then the number again: a change means that the entry was rewritten
    // in the meantime. System calls are ordered.
    let before = number()?;
    if before == 0 {
        return Ok(None);
    }
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, offset)?;
    Ok((number()? == before).then_some((before, bytes)))
}

/// Reads one entry of the log; `None` if it is free, being written, or damaged.
fn read_loss(file: &File, offset: u64) -> io::Result<Option<LossReport>> {
    // The acquire side of PAIRS(loss-number).
    let read = read_numbered::<{ size_of::<LossEntry>() }>(file, offset)?;
    let Some((number, bytes)) = read else { return Ok(None) };
    let small = |offset| u32_at(&bytes, offset);
    let large = |offset| u64_at(&bytes, offset);
    let what = small(offset_of!(LossEntry, what));
    let Some(end) = LossOutcome::from_code(what, small(offset_of!(LossEntry, why))) else {
        return Ok(None);
    };
    let (source, topic) = (offset_of!(LossEntry, source), offset_of!(LossEntry, topic));
    let source = &bytes[source..source + LOSS_SOURCE_MAX];
    let topic = &bytes[topic..topic + LOSS_TOPIC_MAX];
    let count = large(offset_of!(LossEntry, count));
    Ok(Some(LossReport {
        number,
        unix_ns: large(offset_of!(LossEntry, unix_ns)),
        after_ns: large(offset_of!(LossEntry, after_ns)),
        session: large(offset_of!(LossEntry, session)),
        source: text(source, small(offset_of!(LossEntry, source_length))),
        topic: text(topic, small(offset_of!(LossEntry, topic_length))),
        first: large(offset_of!(LossEntry, first)),
        count: (count != COUNT_UNKNOWN).then_some(count),
        end,
    }))
}

fn read_counter(file: &File, index: u32) -> io::Result<CounterReport> {
    let mut bytes = [0; size_of::<CounterEntry>()];
    let offset = COUNTERS_OFFSET + index as usize * bytes.len();
    file.read_exact_at(&mut bytes, offset as u64)?;
    let length = u32_at(&bytes, offset_of!(CounterEntry, length));
    let label = offset_of!(CounterEntry, label);
    Ok(CounterReport {
        label: text(&bytes[label..label + LABEL_MAX], length),
        value: u64_at(&bytes, offset_of!(CounterEntry, value)),
    })
}

fn read_error(file: &File, shape: Shape, index: u32) -> io::Result<Option<ErrorReport>> {
    let mut bytes = [0; size_of::<ErrorEntry>()];
    let offset = shape.errors_offset() + index as usize * bytes.len();
    // The count first, the entry in a second read: an entry with a count is complete. The
    // acquire side of PAIRS(error-count): two system calls are ordered.
    let mut count = [0; 8];
    let count_offset = offset + offset_of!(ErrorEntry, count);
    file.read_exact_at(&mut count, count_offset as u64)?;
    let count = u64::from_le_bytes(count);
    if count == 0 {
        return Ok(None);
    }
    file.read_exact_at(&mut bytes, offset as u64)?;
    let length = u32_at(&bytes, offset_of!(ErrorEntry, length));
    let start = offset_of!(ErrorEntry, text);
    Ok(Some(ErrorReport {
        text: text(&bytes[start..start + ERROR_TEXT_MAX], length),
        count,
        first_unix_ns: u64_at(&bytes, offset_of!(ErrorEntry, first_unix_ns)),
        last_unix_ns: u64_at(&bytes, offset_of!(ErrorEntry, last_unix_ns)),
    }))
}

fn padded(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

fn text(bytes: &[u8], length: u32) -> String {
    String::from_utf8_lossy(&bytes[..(length as usize).min(bytes.len())]).into_owned()
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes[offset..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes[offset..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests;
