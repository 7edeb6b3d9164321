//! Keys that change while programs run: none of what arrives is refused, whatever is lost, late or
//! doubled on the way.

use crate::{address, keys, open, seal, socket};
use lanecast_sealing::{DatagramSealing, KeyFile, KeyRing, Refusal};
use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

const PROGRAMS: u16 = 4;
/// A deterministic generator (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// Programs that send to each other over a network that loses, delays and doubles.
struct World {
    chance: Chance,
    programs: Vec<(Arc<KeyRing>, DatagramSealing)>,
    /// Datagrams on their way: receiver, and a number that is its content too.
    on_the_way: Vec<(u16, u32, Vec<u8>)>,
    arrived: HashMap<(u16, u32), u32>,
    sent: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        let programs = (0..PROGRAMS).map(|number| {
            let ring = Arc::new(KeyRing::new(&keys(&[1])));
            let sealing = socket(&ring, number);
            (ring, sealing)
        });
        let programs = programs.collect();
        let (on_the_way, arrived) = (Vec::new(), HashMap::new());
        Self { chance: Chance(seed), programs, on_the_way, arrived, sent: 0 }
    }

    fn send(&mut self) {
        let from = self.chance.below(PROGRAMS.into()) as usize;
        let to = self.chance.below(PROGRAMS.into()) as u16;
        let number = self.sent;
        self.sent += 1;
        let sealing = &mut self.programs[from].1;
        let datagram = seal(sealing, &number.to_le_bytes(), address(to));
        let copies = match self.chance.below(10) {
            0..=1 => 0,
            2 => 2,
            _ => 1,
        };
        (0..copies).for_each(|_| self.on_the_way.push((to, number, datagram.clone())));
    }

    /// One of the datagrams that are on their way arrives.
    fn arrive(&mut self) {
        if self.on_the_way.is_empty() {
            return;
        }
        let at = self.chance.below(self.on_the_way.len() as u64) as usize;
        let (to, number, datagram) = self.on_the_way.swap_remove(at);
        let (frame, refused) = open(&mut self.programs[usize::from(to)].1, &datagram);
        let times = self.arrived.entry((to, number)).or_default();
        if *times == 0 {
            assert_eq!((frame, refused), (number.to_le_bytes().to_vec(), vec![]), "{number}");
        } else {
            assert_eq!((frame, refused), (vec![], vec![Refusal::Repeated]), "{number}");
        }
        *times += 1;
    }

    fn traffic(&mut self, turns: u32) {
        for _ in 0..turns {
            self.send();
            self.arrive();
        }
    }

    fn everything_arrives(&mut self) {
        while !self.on_the_way.is_empty() {
            self.arrive();
        }
    }

    /// Gives each program the keys, one after another in any order, while they send on.
    fn give(&mut self, bytes: &[u8]) {
        let mut left: Vec<usize> = (0..PROGRAMS.into()).collect();
        while !left.is_empty() {
            let at = self.chance.below(left.len() as u64) as usize;
            self.programs[left.swap_remove(at)].0.set(&keys(bytes));
            let turns = self.chance.below(60) as u32;
            self.traffic(turns);
        }
    }
}

#[test]
fn keys_change_under_loss_without_a_refusal() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        world.traffic(50);
        for (old, new) in [(1, 2), (2, 3)] {
            // The new key is known everywhere before it seals, and the old one goes when nothing
            // that it sealed is on its way.
            world.give(&[old, new]);
            world.give(&[new, old]);
            world.everything_arrives();
            world.give(&[new]);
        }
        world.everything_arrives();
        assert!(world.arrived.len() > 300, "seed {seed}: {}", world.arrived.len());
    }
}

#[test]
fn a_key_that_is_taken_away_opens_nothing_any_more() {
    let ring = Arc::new(KeyRing::new(&keys(&[1])));
    let (mut one, mut two) = (socket(&ring, 1), socket(&ring, 2));
    let late = seal(&mut one, b"late", address(2));
    ring.set(&keys(&[2]));
    assert_eq!(open(&mut two, &late), (vec![], vec![Refusal::UnknownKey]));
    let new = seal(&mut one, b"new", address(2));
    assert_eq!(open(&mut two, &new), (b"new".to_vec(), vec![]));
}

#[test]
fn a_file_is_read_again_when_it_changes_and_only_then() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys");
    // As `install` or an editor does: a new file under the name.
    let write = |text: &str, mode: u32| {
        let new = directory.path().join("new");
        fs::write(&new, text).expect("written");
        fs::set_permissions(&new, Permissions::from_mode(mode)).expect("set");
        fs::rename(&new, &path).expect("renamed");
    };
    write(&crate::key(1), 0o600);
    let ring = Arc::new(KeyRing::open(KeyFile::new(&path)).expect("keys"));
    let (mut one, mut two) = (socket(&ring, 1), socket(&ring, 2));
    assert!(!ring.refresh().expect("the same"));
    let old = seal(&mut one, b"old", address(2));

    // Neither a public file, nor a damaged one, nor none: the keys stay, and it is tried again.
    write(&crate::key(2), 0o644);
    assert!(ring.refresh().expect_err("public").to_string().contains("chmod 600"));
    write("damaged", 0o600);
    assert!(ring.refresh().is_err() && ring.refresh().is_err());
    fs::remove_file(&path).expect("removed");
    assert!(ring.refresh().is_err());
    assert_eq!((ring.version(), open(&mut two, &old)), (0, (b"old".to_vec(), vec![])));

    write(&format!("{}\n{}\n", crate::key(2), crate::key(1)), 0o600);
    assert!(ring.refresh().expect("read") && !ring.refresh().expect("the same"));
    let new = seal(&mut one, b"new", address(2));
    assert_ne!(new[4..6], old[4..6], "another key");
    assert_eq!(open(&mut two, &new), (b"new".to_vec(), vec![]));
    assert_eq!(open(&mut two, &old), (vec![], vec![Refusal::Repeated]));
}
