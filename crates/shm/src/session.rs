//! Creates a session: in files for all processes of the host, or in anonymous memory for this
//! process only.

use crate::error::OpenError;
use crate::segment::{Segment, SessionFiles};
use crate::settings::{DomainSettings, SlowConsumerPolicy, Visibility};
use lanecast_base::sync::light_fences_enabled;
use lanecast_os::process::{Identity, own_name, random};
use lanecast_os::{LockByte, MapMode, NewFile, memory_file, private_directory, touch};
use lanecast_wire::shm::{
    FLAG_EVICTS, FLAG_LIGHT_FENCES, GATE_MAGIC, GateHeader, Limits, RING_MAGIC, RingHeader,
    VERSION, gate_bytes,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

/// A new session: mapped, and ready for its first topic.
pub(crate) struct NewSession {
    pub(crate) number: u64,
    pub(crate) segment: Segment,
    /// Files for other processes; `None` if the session is visible within this process only.
    pub(crate) files: Option<UnnamedFiles>,
}

/// A session's files, complete but for their names in the directory.
#[derive(Debug)]
pub(crate) struct UnnamedFiles {
    files: SessionFiles,
    ring: NewFile,
    gate: NewFile,
}

impl UnnamedFiles {
    /// The gate file, with the slots' locks.
    pub(crate) fn gate(&self) -> &File {
        self.gate.file()
    }

    /// Names the files: from then on other processes find the session.
    pub(crate) fn publish(self) -> Result<NamedFiles, OpenError> {
        let Self { files, ring, gate } = self;
        // The gate first: a process that finds the ring must find the gate as well.
        let gate_lock = gate.publish(&name_of(&files.gate))?;
        match ring.publish(&name_of(&files.ring)) {
            Ok(ring_lock) => Ok(NamedFiles { files, _ring_lock: ring_lock, _gate_lock: gate_lock }),
            Err(error) => {
                let _ = files.remove();
                Err(error.into())
            }
        }
    }
}

/// A session's files in the directory, and the locks that prove that its publisher lives.
#[derive(Debug)]
pub(crate) struct NamedFiles {
    files: SessionFiles,
    _ring_lock: LockByte,
    _gate_lock: LockByte,
}

impl NamedFiles {
    /// Touches the ring file, which wakes the conductors that watch the directory. If this fails,
    /// they find the change in their next scan.
    pub(crate) fn touch(&self) {
        let _ = touch(&self.files.ring);
    }

    /// Removes both files; if that fails, the next process to open the domain tries again.
    pub(crate) fn remove(&self) {
        let _ = self.files.remove();
    }
}

pub(crate) fn create(settings: &DomainSettings) -> Result<NewSession, OpenError> {
    settings.check()?;
    let limits = Limits::new(settings.window_bytes, settings.topics_max, settings.subscribers_max);
    let number = random().map_err(OpenError::system("get a random number"))?;
    match settings.visibility {
        Visibility::Host => create_files(settings, number, limits),
        Visibility::Process => create_anonymous(settings, number, limits),
    }
}

/// Creates a session in anonymous memory, which is freed with its last mapping.
fn create_anonymous(
    settings: &DomainSettings,
    number: u64,
    limits: Limits,
) -> Result<NewSession, OpenError> {
    let reserve =
        |bytes| memory_file(bytes).map_err(OpenError::system("reserve the session's memory"));
    let (ring, gate) =
        (reserve(limits.file_bytes())?, reserve(gate_bytes(limits.subscribers_max))?);
    let mut segment = Segment::map(&ring, &gate, limits, MapMode::ReadWrite)
        .map_err(OpenError::system("map the session's memory"))?;
    segment.write_header(&ring_header(settings, number, &limits));
    Ok(NewSession { number, segment, files: None })
}

fn create_files(
    settings: &DomainSettings,
    session: u64,
    limits: Limits,
) -> Result<NewSession, OpenError> {
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
    gate.file()
        .write_all_at(gate_header.as_bytes(), 0)
        .map_err(OpenError::system("write the gate file"))?;
    let ring = NewFile::create(directory, limits.file_bytes(), settings.access.read_mode())?;
    let mut segment = Segment::map(ring.file(), gate.file(), limits, MapMode::ReadWrite)
        .map_err(OpenError::system("map the session's memory"))?;
    segment.write_header(&ring_header(settings, session, &limits));

    let files = Some(UnnamedFiles { files, ring, gate });
    Ok(NewSession { number: session, segment, files })
}

fn ring_header(settings: &DomainSettings, session: u64, limits: &Limits) -> RingHeader {
    let flag = |bit, is_set| if is_set { bit } else { 0 };
    let evicts = settings.slow_consumer != SlowConsumerPolicy::Wait;
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

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
