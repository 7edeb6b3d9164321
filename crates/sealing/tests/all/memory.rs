//! Keys in the memory of the process: none stays behind once it is no longer used.

use crate::keys;
use lanecast_sealing::{KeyFile, KeySchedule, Opener, Refusal, Sealer, SharedKeys};
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt, PermissionsExt};

/// Longest mapping that is searched: longer ones are no heap.
const MAPPING_MAX: usize = 256 << 20;

/// The bytes of a key, each inverted: the test itself must not hold the key.
fn inverted() -> [u8; 32] {
    std::array::from_fn(|at| !(at as u8).wrapping_mul(41).wrapping_add(99))
}

/// The key's line in a file of keys.
fn line() -> String {
    inverted().iter().map(|byte| format!("{:02x}", !byte)).collect()
}

/// Copies of a text in the writable memory of this process, stacks excepted, whose bytes are
/// `inverted`.
fn copies(inverted: &[u8]) -> usize {
    let local = 0_u8;
    let stack = (&raw const local).addr();
    let memory = File::open("/proc/self/mem").expect("own memory");
    let maps = fs::read_to_string("/proc/self/maps").expect("own mappings");
    let mut found = 0;
    for map in maps.lines().filter(|map| map.contains(" rw") && !map.ends_with("[stack]")) {
        let (range, _) = map.split_once(' ').expect("a range");
        let (start, end) = range.split_once('-').expect("two addresses");
        let [start, end] = [start, end].map(|at| usize::from_str_radix(at, 16).expect("a number"));
        if (start..end).contains(&stack) || end - start > MAPPING_MAX {
            continue;
        }
        // A page at a time, and what reaches into the next: copies in this buffer are on the stack.
        let mut page = [0; 4_096 + 128];
        for at in (start..end).step_by(4_096) {
            let length = (end - at).min(4_096 + inverted.len() - 1);
            // Another thread's mapping may be gone by now.
            if memory.read_exact_at(&mut page[..length], at as u64).is_err() {
                break;
            }
            let parts = page[..length].windows(inverted.len());
            let is_copy = |part: &&[u8]| part.iter().zip(inverted).all(|(a, b)| *a == !*b);
            found += parts.filter(is_copy).count();
        }
    }
    found
}

fn sealed(by: &mut Sealer) -> (lanecast_sealing::SealMark, Vec<u8>) {
    let (mark, mut bytes) = (by.next(), b"text".to_vec());
    let tag = by.seal(b"header", &mut bytes);
    bytes.extend(tag);
    (mark, bytes)
}

#[test]
fn a_key_that_is_gone_stays_nowhere_in_memory_and_its_senders_stay_known() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys");
    let mut file = File::create(&path).expect("a file");
    file.set_permissions(Permissions::from_mode(0o600)).expect("set");
    inverted().iter().for_each(|byte| write!(file, "{:02x}", !byte).expect("written"));
    let read = KeyFile::new(path).read().expect("keys");
    let schedule = KeySchedule::new(&read.clone(), "test", b"");
    assert!(copies(&inverted()) > 0, "keys that are in use are found");
    let (mut opener, mut sealer) = (Opener::new(schedule.clone()), Sealer::new(&schedule, 7, 0));
    let (mark, bytes) = sealed(&mut sealer);
    assert!(opener.open(mark, b"header", &mut bytes.clone(), 0).is_ok());
    opener.set_keys(KeySchedule::new(&keys(&[9]), "test", b""));
    drop((read, schedule, sealer));
    assert_eq!((opener.senders(), copies(&inverted())), (1, 0));
    // Without the whole line in memory.
    let digits = inverted().map(|byte| format!("{:02x}", !byte).into_bytes());
    let digits: Vec<u8> = digits.iter().flatten().map(|byte| !byte).collect();
    assert_eq!(copies(&digits), 0, "nor the text of the file");
    // The key comes back.
    let again = SharedKeys::parse(&line()).expect("a key");
    opener.set_keys(KeySchedule::new(&again, "test", b""));
    let repeated = opener.open(mark, b"header", &mut bytes.clone(), 0);
    assert_eq!(repeated, Err(Refusal::Repeated));
}
