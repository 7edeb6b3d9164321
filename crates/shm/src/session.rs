//! Making a session's files.

use crate::error::OpenError;
use crate::segment::{Segment, SessionFiles};
use crate::settings::Settings;
use lanecast_base::sync::light_fences_enabled;
use lanecast_os::process::{Identity, own_name, random};
use lanecast_os::{LockByte, MapMode, NewFile, private_directory};
use lanecast_wire::shm::{
    GATE_MAGIC, GateHeader, Limits, RING_MAGIC, RingHeader, VERSION, gate_bytes,
};
use std::os::unix::fs::FileExt;
use std::time::SystemTime;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

/// A session that has just been made: mapped, locked, found by others from now on.
pub(crate) struct Session {
    pub(crate) segment: Segment,
    pub(crate) files: SessionFiles,
    pub(crate) ring_lock: LockByte,
    pub(crate) gate_lock: LockByte,
}

pub(crate) fn create(settings: &Settings) -> Result<Session, OpenError> {
    settings.check()?;
    let directory = &settings.directory;
    private_directory(directory, settings.access)?;
    let limits = Limits::new(settings.window_bytes, settings.topics_max, settings.subscribers_max);
    let session = random().map_err(system("get a random number"))?;
    let files = SessionFiles::new(directory, session);

    let gate = NewFile::create(
        directory,
        gate_bytes(limits.subscribers_max),
        settings.access.write_mode(),
    )?;
    let gate_header = GateHeader {
        magic: GATE_MAGIC,
        version: U32::new(VERSION),
        subscribers_max: U32::new(limits.subscribers_max),
        session: U64::new(session),
    };
    gate.file().write_all_at(gate_header.as_bytes(), 0).map_err(system("write the gate file"))?;
    let ring = NewFile::create(directory, limits.file_bytes(), settings.access.read_mode())?;
    let mut segment = Segment::map(ring.file(), gate.file(), limits, MapMode::ReadWrite)
        .map_err(system("map the session's memory"))?;
    segment.write_header(&ring_header(session, &limits));

    // The gate first: whoever finds the ring finds the gate as well.
    let gate_lock = gate.publish(&name_of(&files.gate))?;
    let ring_lock = match ring.publish(&name_of(&files.ring)) {
        Ok(lock) => lock,
        Err(error) => {
            let _ = files.remove();
            return Err(error.into());
        }
    };
    Ok(Session { segment, files, ring_lock, gate_lock })
}

fn ring_header(session: u64, limits: &Limits) -> RingHeader {
    let own = Identity::own();
    let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    RingHeader {
        magic: RING_MAGIC,
        version: U32::new(VERSION),
        flags: U32::new(u32::from(light_fences_enabled())),
        session: U64::new(session),
        file_bytes: U64::new(limits.file_bytes()),
        window_bytes: U64::new(limits.window_bytes),
        data_offset: U64::new(limits.data_offset),
        longest_message: U32::new(limits.longest_message),
        topics_max: U32::new(limits.topics_max),
        subscribers_max: U32::new(limits.subscribers_max),
        pid: U32::new(own.pid),
        namespace: U64::new(own.namespace),
        start_time: U64::new(own.start_time),
        created_unix_ns: U64::new(u64::try_from(created.as_nanos()).unwrap_or(u64::MAX)),
        name: own_name(),
    }
}

fn name_of(path: &std::path::Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(crate) fn system(act: &'static str) -> impl Fn(std::io::Error) -> OpenError {
    move |source| OpenError::System { act, source }
}
