//! A log in memory, and outlets that keep frames as bytes: each frame is written and read again.

use lanecast_persistence::{
    GroupRule, LogFull, ReceiverEvent, ReceiverOutlet, SourceEvent, SourceOutlet, Store,
    StoreGroups, StoreLog, StoreOutlet, StoreSettings,
};
use lanecast_wire::store::{
    Ballot, Consumption, LogRecord, Members, Registered, Run, StoreAddress, StoreFrame,
};
use std::collections::BTreeMap;

pub(crate) const TOPIC: &str = "orders";
pub(crate) const SESSION: u64 = 1;
pub(crate) const NOW: u64 = 1_000_000_000;

/// The only store of a publisher or a receiver.
pub(crate) fn groups() -> StoreGroups {
    StoreGroups::new(vec![vec!["a"]], GroupRule::Any).expect("groups")
}

/// Records that are durable at once, but for the last ones.
#[derive(Debug, Default)]
pub(crate) struct MemoryLog {
    records: Vec<Vec<u8>>,
    /// Records at the end that are not durable.
    pub(crate) unwritten: u64,
    /// The log has no room.
    pub(crate) is_full: bool,
    pub(crate) unix_ns: u64,
}

impl MemoryLog {
    /// An empty log whose clock says this time.
    pub(crate) fn at(unix_ns: u64) -> Self {
        Self { unix_ns, ..Self::default() }
    }

    /// All records.
    pub(crate) fn all(&self) -> impl Iterator<Item = LogRecord<'_>> {
        self.records.iter().filter_map(|bytes| LogRecord::read(bytes))
    }

    /// The last record.
    pub(crate) fn last(&self) -> Option<LogRecord<'_>> {
        LogRecord::read(self.records.last()?)
    }

    /// The store as it comes back.
    pub(crate) fn restore(&self, mut store: Store) -> Store {
        for record in self.all() {
            store.replay(&record).expect("records that follow from each other");
        }
        store
    }
}

impl StoreLog for MemoryLog {
    fn append(&mut self, record: &LogRecord<'_>) -> Result<u64, LogFull> {
        if self.is_full {
            return Err(LogFull);
        }
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        assert!(LogRecord::read(&bytes).is_some(), "unreadable: {record:?}");
        self.records.push(bytes);
        Ok(self.records.len() as u64)
    }

    fn persisted(&self) -> u64 {
        self.records.len() as u64 - self.unwritten
    }

    /// Each message is written at its sequence.
    fn first_since(&self, _: u32, unix_ns: u64) -> Option<u64> {
        Some(unix_ns)
    }

    fn bytes_from(&self, stream: u32, from: u64) -> u64 {
        let mut bytes = 0;
        self.read(stream, from, &mut |_, _, body| {
            bytes += body.len() as u64;
            true
        });
        bytes
    }

    fn unix_ns(&self) -> u64 {
        self.unix_ns
    }

    /// Each message is written at its sequence, but for copies. Void ones are left out.
    fn read(&self, stream: u32, from: u64, visit: &mut dyn FnMut(u64, u64, &[u8]) -> bool) {
        let mut messages: BTreeMap<u64, (u64, &[u8])> = BTreeMap::new();
        for bytes in &self.records {
            match LogRecord::read(bytes) {
                Some(LogRecord::Message { stream: it, sequence, body }) if it == stream => {
                    messages.insert(sequence, (sequence, body));
                }
                Some(LogRecord::Copied { stream: it, sequence, unix_ns, body }) if it == stream => {
                    messages.insert(sequence, (unix_ns, body));
                }
                Some(LogRecord::Truncated { stream: it, next }) if it == stream => {
                    messages.split_off(&next);
                }
                _ => {}
            }
        }
        let mut messages = messages.range(from..);
        let _ = messages.all(|(sequence, (unix_ns, body))| visit(*sequence, *unix_ns, body));
    }
}

/// The report of a receiver that holds its publisher back.
pub(crate) const fn report_of<'a>(receiver: u64, consumption: Consumption) -> StoreFrame<'a> {
    StoreFrame::Consumed(Registered::new(receiver, consumption))
}

/// A store that holds a stream whose next sequence is `start`.
pub(crate) fn store_at(start: u64) -> Store {
    store_with(StoreSettings::default(), start)
}

/// The same with other settings.
pub(crate) fn store_with(settings: StoreSettings, start: u64) -> Store {
    let mut store = Store::new(settings, 5);
    let members = Members::without_groups(1, vec![("a".to_owned(), 5)]);
    let ballot = Ballot { epoch: 3, session: 9 };
    let runs = vec![Run { ballot, start }];
    let records = [
        LogRecord::Stream { stream: 0, topic: TOPIC, source: 7 },
        LogRecord::Promised { stream: 0, ballot },
        LogRecord::Began { stream: 0, number: 0, first: start, members, runs },
    ];
    for record in &records {
        store.replay(record).expect("records that follow from each other");
    }
    store
}

/// Frames and events of calls.
#[derive(Debug, Default)]
pub(crate) struct Outlet {
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) to_peers: usize,
    pub(crate) source_events: Vec<SourceEvent>,
    pub(crate) receiver_events: Vec<String>,
}

impl Outlet {
    fn keep(&mut self, source: u64, frame: &StoreFrame<'_>) {
        let mut bytes = Vec::new();
        frame.write(StoreAddress { client: 1, source, topic: TOPIC }, &mut bytes);
        assert!(StoreFrame::read(&bytes).is_ok(), "unreadable: {frame:?}");
        self.frames.push(bytes);
    }
}

impl SourceOutlet for Outlet {
    fn request(&mut self, _: usize, frame: &StoreFrame<'_>) {
        self.keep(7, frame);
    }

    fn event(&mut self, event: SourceEvent) {
        self.source_events.push(event);
    }
}

impl StoreOutlet for Outlet {
    fn reply(&mut self, _: u64, _: &str, source: u64, frame: &StoreFrame<'_>) {
        self.keep(source, frame);
    }

    fn request(&mut self, _: &str, _: &str, source: u64, frame: &StoreFrame<'_>) {
        self.keep(source, frame);
        self.to_peers += 1;
    }
}

impl ReceiverOutlet for Outlet {
    fn request(&mut self, _: usize, source: u64, frame: &StoreFrame<'_>) {
        self.keep(source, frame);
    }

    fn event(&mut self, event: ReceiverEvent<'_>) {
        self.receiver_events.push(format!("{event:?}"));
    }
}
