//! The start of a new file: header and labels.

use crate::{Plan, clock};
use lanecast_os::process::{Identity, own_name};
use lanecast_wire::stats::StatsHeader;
use lanecast_wire::stats::{COUNTERS_OFFSET, CounterEntry, STATS_MAGIC, STATS_VERSION, Shape};
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

pub(crate) fn write(file: &File, plan: &Plan<'_>, shape: Shape) -> io::Result<()> {
    let own = Identity::own();
    let subject = &plan.subject;
    let header = StatsHeader {
        magic: STATS_MAGIC,
        version: U32::new(STATS_VERSION),
        counters: U32::new(shape.counters),
        errors: U32::new(shape.errors),
        pid: U32::new(own.pid),
        namespace: U64::new(own.namespace),
        start_time: U64::new(own.start_time),
        name: own_name(),
        role: U32::new(subject.role.code()),
        losses: U32::new(shape.losses),
        session: U64::new(subject.session),
        opened_unix_ns: U64::new(clock::unix_ns()),
        transport: padded(subject.transport),
        address: padded(subject.address),
        group: padded(subject.group),
    };
    file.write_all_at(header.as_bytes(), 0)?;
    for (index, label) in plan.labels.iter().enumerate() {
        let offset = (COUNTERS_OFFSET + index * size_of::<CounterEntry>()) as u64;
        let length_offset = offset_of!(CounterEntry, length) as u64;
        let label_offset = offset_of!(CounterEntry, label) as u64;
        file.write_all_at(&(label.len() as u32).to_le_bytes(), offset + length_offset)?;
        file.write_all_at(label.as_bytes(), offset + label_offset)?;
    }
    Ok(())
}

/// As much of `text` as fits, and zeros.
fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let length = text.len().min(N);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}
