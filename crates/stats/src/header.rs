//! The fixed part of a new file: header and labels.

use crate::clock;
use crate::layout::CounterLayout;
use lanecast_os::process::{Identity, own_name};
use lanecast_wire::stats::StatsHeader;
use lanecast_wire::stats::{COUNTERS_OFFSET, CounterEntry, STATS_MAGIC, STATS_VERSION, Shape};
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

pub(crate) fn write(file: &File, layout: &CounterLayout<'_>, shape: Shape) -> io::Result<()> {
    let own = Identity::own();
    let owner = &layout.owner;
    let header = StatsHeader {
        magic: STATS_MAGIC,
        version: U32::new(STATS_VERSION),
        counters: U32::new(shape.counters),
        errors: U32::new(shape.errors),
        pid: U32::new(own.pid),
        namespace: U64::new(own.namespace),
        start_time: U64::new(own.start_time),
        name: own_name(),
        role: U32::new(owner.role.code()),
        losses: U32::new(shape.losses),
        session: U64::new(owner.session),
        opened_unix_ns: U64::new(clock::unix_ns()),
        transport: padded(owner.transport),
        address: padded(owner.address),
        group: padded(owner.group),
        totals: U32::new(shape.totals),
        reserved: U32::ZERO,
    };
    file.write_all_at(header.as_bytes(), 0)?;
    for (index, label) in layout.labels.iter().enumerate() {
        let offset = (COUNTERS_OFFSET + index * size_of::<CounterEntry>()) as u64;
        let length_offset = offset_of!(CounterEntry, length) as u64;
        let label_offset = offset_of!(CounterEntry, label) as u64;
        file.write_all_at(&(label.len() as u32).to_le_bytes(), offset + length_offset)?;
        file.write_all_at(label.as_bytes(), offset + label_offset)?;
    }
    Ok(())
}

/// The start of `text` that fits, padded with zeros.
fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let length = text.len().min(N);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}
