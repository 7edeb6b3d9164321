//! Forged sessions: true ones, copied and spoiled, with a living owner.

use super::rng::Rng;
use super::{PATIENCE, Scene, WINDOW_BYTES};
use lanecast_os::LockByte;
use lanecast_shm::{clean, inspect};
use lanecast_transport::{Event, Publish, Subscribe};
use lanecast_wire::shm::{
    GATE_LIVE_OFFSET, RING_LIVE_OFFSET, RingHeader, RingLive, SLOTS_OFFSET, TOPICS_OFFSET, Word,
};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

const CASES: u64 = 2_400;
const SESSION_OFFSET: usize = 16;
const VERSION_OFFSET: usize = 8;

/// The two files' bytes.
#[derive(Clone)]
struct Forgery {
    ring: Vec<u8>,
    gate: Vec<u8>,
}

impl Forgery {
    /// The beacon's own files, after it has published.
    fn of(scene: &mut Scene) -> Self {
        scene.beacon.add_topic("wanted").expect("a topic");
        for number in 0..200usize {
            let topic = lanecast_transport::TopicId((number % 2) as u32);
            scene.beacon.send_on(topic, &vec![number as u8; number]).expect("room");
        }
        let session = scene.beacon.session();
        let read = |kind| fs::read(scene.path().join(format!("{session}.{kind}"))).expect("a file");
        Self { ring: read("ring"), gate: read("gate") }
    }

    /// As session `number`, to be read from its first message on.
    fn numbered(&self, number: u64) -> Self {
        let mut forgery = self.clone();
        let session = SESSION_OFFSET..SESSION_OFFSET + 8;
        forgery.ring[session.clone()].copy_from_slice(&number.to_le_bytes());
        forgery.gate[session].copy_from_slice(&number.to_le_bytes());
        forgery.ring[RING_LIVE_OFFSET..RING_LIVE_OFFSET + 8].fill(0);
        forgery
    }

    fn data(&mut self) -> &mut [u8] {
        let start = self.ring.len() - WINDOW_BYTES as usize;
        &mut self.ring[start..]
    }

    fn spoil(&mut self, rng: &mut Rng) {
        let live = RING_LIVE_OFFSET..RING_LIVE_OFFSET + size_of::<RingLive>();
        match rng.below(12) {
            0 => rng.spoil(&mut self.ring[..size_of::<RingHeader>()]),
            1 => rng.spoil(&mut self.ring[live]),
            2 => rng.spoil(&mut self.ring[live.start..live.start + 16]),
            3 => rng.spoil(&mut self.ring[TOPICS_OFFSET..TOPICS_OFFSET + 8 * 256]),
            4 => rng.spoil(&mut self.data()[..4_096]),
            5 => rng.spoil(&mut self.gate[GATE_LIVE_OFFSET..SLOTS_OFFSET]),
            6 => rng.spoil(&mut self.gate[SLOTS_OFFSET..SLOTS_OFFSET + 1_024]),
            7 => rng.spoil(&mut self.gate[..24]),
            8 => self.ring.truncate(rng.below(self.ring.len())),
            9 => self.gate.truncate(rng.below(self.gate.len())),
            10 => self.ring.resize(self.ring.len() + 1 + rng.below(70_000), rng.next() as u8),
            _ => {
                rng.spoil(&mut self.ring);
                rng.spoil(&mut self.gate);
            }
        }
    }

    /// Puts the files into `directory`, whole and owned.
    fn plant(&self, directory: &Path, number: u64) -> Planted {
        let path = |kind: &str| directory.join(format!("{number:016x}.{kind}"));
        let paths = [path("gate"), path("ring")];
        let locks = [(&self.gate, &paths[0]), (&self.ring, &paths[1])].map(|(bytes, path)| {
            let hidden = path.with_extension("new");
            let options = File::options().read(true).write(true).create_new(true).open(&hidden);
            let file = options.expect("a file");
            file.write_all_at(bytes, 0).expect("room");
            let lock = LockByte::try_take(file, 0).expect("locks work").expect("a new file");
            fs::rename(hidden, path).expect("a name");
            lock
        });
        Planted { paths, _locks: locks }
    }
}

/// A forged session in the directory; gone when dropped.
struct Planted {
    paths: [PathBuf; 2],
    _locks: [LockByte; 2],
}

impl Drop for Planted {
    fn drop(&mut self) {
        for path in &self.paths {
            // Another domain may have reclaimed it.
            let _ = fs::remove_file(path);
        }
    }
}

#[test]
fn damaged_sessions_do_not_harm_others() {
    let mut rng = Rng::new();
    let mut scene = Scene::new();
    let genuine = Forgery::of(&mut scene);
    let (mut joined, mut refused) = (0, 0);
    for case in 1..=CASES {
        let mut forgery = genuine.numbered(case);
        forgery.spoil(&mut rng);
        let planted = forgery.plant(&scene.path(), case);
        let (mut subscriber, others) = scene.subscriber("wanted");
        joined += u64::from(others);
        listen(&mut subscriber, case);
        let reports = inspect(&scene.path()).expect("the directory");
        refused += reports.iter().filter(|report| report.is_err()).count();
        for error in reports.into_iter().filter_map(Result::err) {
            assert!(error.to_string().contains(&format!("{case:016x}.")), "which file: {error}");
        }
        let stale = clean(&scene.path(), true).expect("the directory");
        assert!(stale.iter().all(|file| file.error.is_none()));
        drop(planted);
        if case % 100 == 0 {
            check_beacon(&mut scene);
        }
    }
    println!("{CASES} cases: {joined} joined, {refused} refused");
    assert!(joined > 0 && refused > 0, "both kinds came up: {joined} and {refused}");
}

/// Polls often enough to reach any damage of the session.
fn listen(subscriber: &mut lanecast_shm::Subscriber, case: u64) {
    let start = Instant::now();
    for _ in 0..30 {
        subscriber.poll(64, |event| {
            if let Event::Message(message) = event {
                let sum: u64 = message.bytes().iter().copied().map(u64::from).sum();
                std::hint::black_box(sum);
            }
        });
    }
    assert!(start.elapsed() < PATIENCE, "case {case} took {:?}", start.elapsed());
}

/// Checks that the honest publisher's messages still arrive.
fn check_beacon(scene: &mut Scene) {
    let (mut subscriber, _) = scene.subscriber("nothing");
    scene.beacon.send(b"here").expect("room");
    super::until("the beacon's message", || {
        let mut heard = false;
        subscriber.poll(64, |event| {
            heard |= matches!(event, Event::Message(message) if message.bytes() == b"here");
        });
        heard
    });
}

#[test]
fn a_ring_without_end_does_not_keep_the_reader() {
    let mut scene = Scene::new();
    let mut forgery = Forgery::of(&mut scene).numbered(1);
    // Empty messages in the whole ring, of an unwanted topic.
    for frame in forgery.data().chunks_exact_mut(16) {
        frame[..4].copy_from_slice(&Word::message(0).0.to_le_bytes());
        frame[4..8].copy_from_slice(&0u32.to_le_bytes());
    }
    let names = [("unwanted", TOPICS_OFFSET), ("wanted", TOPICS_OFFSET + 256)];
    for (name, offset) in names {
        forgery.ring[offset..offset + 4].copy_from_slice(&(name.len() as u32).to_le_bytes());
        forgery.ring[offset + 4..offset + 4 + name.len()].copy_from_slice(name.as_bytes());
    }
    let _planted = forgery.plant(&scene.path(), 1);
    let (mut subscriber, _) = scene.subscriber("wanted");
    for _ in 0..100 {
        let work = subscriber.poll(64, |_| {});
        subscriber.wait(work);
    }
}

#[test]
fn each_mismatch_has_its_error_text() {
    let mut scene = Scene::new();
    let genuine = Forgery::of(&mut scene);
    type Change = fn(&mut Forgery);
    let cases: [(&str, Change); 8] = [
        ("version 3, this program reads version 4", |forgery| forgery.ring[VERSION_OFFSET] = 3),
        ("version 3, this program reads version 4", |forgery| forgery.gate[VERSION_OFFSET] = 3),
        ("version 9", |forgery| forgery.ring[VERSION_OFFSET] = 9),
        ("version 9", |forgery| forgery.gate[VERSION_OFFSET] = 9),
        ("not lanecast's", |forgery| forgery.ring.fill(b'x')),
        ("too short", |forgery| forgery.ring.truncate(50)),
        ("length", |forgery| forgery.ring.truncate(100_000)),
        ("another ring", |forgery| forgery.gate[SESSION_OFFSET] ^= 1),
    ];
    for (number, (words, spoil)) in (1..).zip(cases) {
        let mut forgery = genuine.numbered(number);
        spoil(&mut forgery);
        let _planted = forgery.plant(&scene.path(), number);
        let reports = inspect(&scene.path()).expect("the directory");
        let errors: Vec<_> = reports.into_iter().filter_map(Result::err).collect();
        let [error] = errors.as_slice() else { panic!("one error of {words}: {errors:?}") };
        assert!(error.to_string().contains(words), "{error}");
        check_beacon(&mut scene);
    }
}
