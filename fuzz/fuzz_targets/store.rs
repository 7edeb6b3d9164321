//! Frames and records of persistence from any bytes: refused, or read and written again as they
//! were; and a store and a publisher that hear them between each other's frames.
#![no_main]

use lanecast_persistence::{
    GroupRule, Source, SourceEvent, SourceOutlet, SourceSettings, Store, StoreGroups, StoreOutlet,
    StoreSettings,
};
use lanecast_sim::persistence::log::SimLog;
use lanecast_sim::rng::SimRng;
use lanecast_wire::store::{LogRecord, STORE_VERSION, StoreAddress, StoreFrame};
use libfuzzer_sys::fuzz_target;

const SESSION: u64 = 1;

/// Frames of one call.
#[derive(Default)]
struct Frames(Vec<Vec<u8>>);

impl Frames {
    fn add(&mut self, frame: &StoreFrame<'_>) {
        let mut bytes = Vec::new();
        frame.write(StoreAddress { client: SESSION, source: 7, topic: "t" }, &mut bytes);
        self.0.push(bytes);
    }
}

impl SourceOutlet for Frames {
    fn request(&mut self, _: usize, frame: &StoreFrame<'_>) {
        self.add(frame);
    }

    fn event(&mut self, _: SourceEvent) {}
}

impl StoreOutlet for Frames {
    fn reply(&mut self, _: u64, _: &str, _: u64, frame: &StoreFrame<'_>) {
        self.add(frame);
    }

    fn request(&mut self, _: &str, _: &str, _: u64, _: &StoreFrame<'_>) {}
}

/// A publisher, its only store, and the frames that are on their way to each.
struct Pair {
    source: Source,
    store: Store,
    log: SimLog,
    rng: SimRng,
    now: u64,
    sent: u64,
    to_store: Vec<Vec<u8>>,
    to_source: Vec<Vec<u8>>,
}

impl Pair {
    fn new() -> Self {
        let groups = StoreGroups::new(vec![vec!["s"]], GroupRule::Any).expect("one store");
        let settings = SourceSettings { flight_bytes: 4_096, ..SourceSettings::new(groups) };
        let settings_of_store = StoreSettings { streams_max: 4, ..StoreSettings::default() };
        Self {
            source: Source::new(settings, SESSION, 0, 0),
            store: Store::new(settings_of_store, 9),
            log: SimLog::new(1_000),
            rng: SimRng::new(1),
            now: 0,
            sent: 0,
            to_store: Vec::new(),
            to_source: Vec::new(),
        }
    }

    /// One round of frames, messages and synchronizations.
    fn turn(&mut self) {
        self.now += 50_000_000;
        let (mut from_source, mut from_store) = (Frames::default(), Frames::default());
        for bytes in std::mem::take(&mut self.to_source) {
            if let Ok((_, frame)) = StoreFrame::read(&bytes) {
                self.source.on_frame(0, &frame, self.now, &mut from_source);
            }
        }
        self.source.tick(self.now, &mut from_source);
        if self.source.check_room(4).is_ok() {
            self.source.sent(b"body");
            let out = &mut from_store;
            self.store.on_message(SESSION, self.sent, b"body", self.now, &mut self.log, out);
            self.sent += 1;
        }
        for bytes in std::mem::take(&mut self.to_store) {
            if let Ok((address, frame)) = StoreFrame::read(&bytes) {
                self.store.on_frame(address, &frame, self.now, &mut self.log, &mut from_store);
            }
        }
        self.store.tick(self.now, &mut self.log, &mut from_store);
        self.log.synchronize(&mut self.rng);
        self.store.on_persisted(&self.log, &mut from_store);
        // Bounded, whatever was heard.
        assert!(from_source.0.len() + from_store.0.len() < 1_000);
        self.to_store.extend(from_source.0);
        self.to_source.extend(from_store.0);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut again = Vec::new();
    if let Ok((address, frame)) = StoreFrame::read(bytes) {
        frame.write(address, &mut again);
        assert_eq!(StoreFrame::read(&again), Ok((address, frame)));
    }
    if let Some(record) = LogRecord::read(bytes) {
        record.write(&mut again);
        assert_eq!(LogRecord::read(&again), Some(record));
    }
    // Scripts: a length, and a frame without the header that a stranger would hardly guess; or a
    // record of a damaged log.
    let mut pair = Pair::new();
    (0..8).for_each(|_| pair.turn());
    let mut damaged = Store::new(StoreSettings::default(), 3);
    let _ = damaged.replay(&LogRecord::Stream { stream: 0, topic: "t", source: 7 });
    let mut rest = bytes;
    while let Some((&length, more)) = rest.split_first() {
        let (body, left) = more.split_at(more.len().min(length.into()));
        rest = left;
        let Some((&selector, body)) = body.split_first() else { continue };
        let kind = selector % 45;
        let mut frame = vec![STORE_VERSION, kind, 1, 0, 0, 0, 0, 0];
        frame.extend(SESSION.to_le_bytes());
        frame.extend(7_u64.to_le_bytes());
        frame.push(b't');
        frame.extend(body);
        let to = if kind < 32 { &mut pair.to_store } else { &mut pair.to_source };
        to.push(frame);
        pair.turn();
        let mut record = vec![selector % 16, 0, 0, 0, 0];
        record.extend(body);
        if let Some(record) = LogRecord::read(&record) {
            let _ = damaged.replay(&record);
        }
    }
    let state = pair.store.state("t", 7);
    assert!(state.is_none_or(|state| state.first <= state.next));
});
