//! Making a session: files for all processes of the host, or memory for this one alone.

use crate::error::OpenError;
use crate::segment::{Segment, SessionFiles};
use crate::settings::{Reach, Settings, Stalled};
use lanecast_base::sync::light_fences_enabled;
use lanecast_os::process::{Identity, own_name, random};
use lanecast_os::{LockByte, MapMode, NewFile, memory_file, private_directory};
use lanecast_wire::shm::{
    FLAG_EVICTS, FLAG_LIGHT_FENCES, GATE_MAGIC, GateHeader, Limits, RING_MAGIC, RingHeader,
    VERSION, gate_bytes,
};
use std::fs::{File, FileTimes};
use std::os::unix::fs::FileExt;
use std::time::SystemTime;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

/// A session that has just been made: mapped, and ready for its first topic.
pub(crate) struct Session {
    pub(crate) number: u64,
    pub(crate) segment: Segment,
    /// Its files, for other processes to find; `None` if they are not to.
    pub(crate) hidden: Option<Hidden>,
}

/// A session's files, complete but for their names.
#[derive(Debug)]
pub(crate) struct Hidden {
    files: SessionFiles,
    ring: NewFile,
    gate: NewFile,
}

impl Hidden {
    /// The gate file, by which its slots can be locked and looked at.
    pub(crate) fn gate(&self) -> &File {
        self.gate.file()
    }

    /// Names them: from now on others find the session.
    pub(crate) fn publish(self) -> Result<Names, OpenError> {
        let Self { files, ring, gate } = self;
        // The gate first: whoever finds the ring finds the gate as well.
        let gate_lock = gate.publish(&name_of(&files.gate))?;
        match ring.publish(&name_of(&files.ring)) {
            Ok(ring_lock) => Ok(Names { files, ring_lock, _gate_lock: gate_lock }),
            Err(error) => {
                let _ = files.remove();
                Err(error.into())
            }
        }
    }
}

/// A session's files in the directory, and the locks that prove that its publisher lives.
#[derive(Debug)]
pub(crate) struct Names {
    files: SessionFiles,
    ring_lock: LockByte,
    _gate_lock: LockByte,
}

impl Names {
    /// Touches the ring file: that wakes those who watch the directory.
    ///
    /// If it fails, they find what is new at their next look.
    pub(crate) fn touch(&self) {
        let now = SystemTime::now();
        // Both times: one alone is no change of attributes to inotify.
        let both = FileTimes::new().set_accessed(now).set_modified(now);
        let _ = self.ring_lock.file().set_times(both);
    }

    /// Removes both; if that fails, the next one to open the domain tries again.
    pub(crate) fn remove(&self) {
        let _ = self.files.remove();
    }
}

pub(crate) fn create(settings: &Settings) -> Result<Session, OpenError> {
    settings.check()?;
    let limits = Limits::new(settings.window_bytes, settings.topics_max, settings.subscribers_max);
    let number = random().map_err(system("get a random number"))?;
    match settings.reach {
        Reach::Host => in_files(settings, number, limits),
        Reach::Process => in_memory(settings, number, limits),
    }
}

/// In memory that has no name: it is gone with its last mapping.
fn in_memory(settings: &Settings, number: u64, limits: Limits) -> Result<Session, OpenError> {
    let reserve = |bytes| memory_file(bytes).map_err(system("reserve the session's memory"));
    let (ring, gate) =
        (reserve(limits.file_bytes())?, reserve(gate_bytes(limits.subscribers_max))?);
    let mut segment = Segment::map(&ring, &gate, limits, MapMode::ReadWrite)
        .map_err(system("map the session's memory"))?;
    segment.write_header(&ring_header(settings, number, &limits));
    Ok(Session { number, segment, hidden: None })
}

fn in_files(settings: &Settings, session: u64, limits: Limits) -> Result<Session, OpenError> {
    let directory = &settings.directory;
    private_directory(directory, settings.access)?;
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
    segment.write_header(&ring_header(settings, session, &limits));

    Ok(Session { number: session, segment, hidden: Some(Hidden { files, ring, gate }) })
}

fn ring_header(settings: &Settings, session: u64, limits: &Limits) -> RingHeader {
    let flag = |bit, is_set| if is_set { bit } else { 0 };
    let evicts = settings.stalled != Stalled::Wait;
    let flags = flag(FLAG_LIGHT_FENCES, light_fences_enabled()) | flag(FLAG_EVICTS, evicts);
    let own = Identity::own();
    let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    RingHeader {
        magic: RING_MAGIC,
        version: U32::new(VERSION),
        flags: U32::new(flags),
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
    move |error| OpenError::System { act, error }
}
