//! Inputs of a target: kept ones, and variations of them.

use lanecast_sim::rng::SimRng;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest input; targets that read scripts say much in little.
const LENGTH_MAX: usize = 400;

/// Runs `target` over its kept inputs, then over variations until its time is up.
pub(crate) fn run(name: &str, target: fn(&[u8])) {
    let kept = kept(name);
    assert!(!kept.is_empty(), "fuzz/kept/{name} has no inputs");
    for input in &kept {
        Shown::run(input, target);
    }
    let is_long = std::env::var_os("LONG_TESTS").is_some();
    let time = Duration::from_secs(if is_long { 60 } else { 2 });
    let start = Instant::now();
    let numbers = (0u64..).take_while(|_| start.elapsed() < time);
    let last = numbers.inspect(|number| Shown::run(&vary(&kept, *number), target)).last();
    println!("{name}: {} kept inputs, {} variations", kept.len(), last.unwrap_or_default());
}

fn kept(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/kept").join(name);
    let files = std::fs::read_dir(&folder).expect("a folder of kept inputs");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("an input")).collect()
}

/// An input that is printed when its target panics, for `fuzz/kept`.
struct Shown<'a>(&'a [u8]);

impl Shown<'_> {
    fn run(input: &[u8], target: fn(&[u8])) {
        let shown = Shown(input);
        target(shown.0);
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
            println!("the input, for xxd -r -p: {hex}");
        }
    }
}

/// Variation `number`: a few changes to one of the kept inputs, or noise.
fn vary(kept: &[Vec<u8>], number: u64) -> Vec<u8> {
    let mut dice = SimRng::new(number);
    let mut any = |end: usize| dice.within(0..=end as u64) as usize;
    let mut input = kept[any(kept.len() - 1)].clone();
    if any(7) == 0 {
        input = (0..any(LENGTH_MAX)).map(|_| any(255) as u8).collect();
    }
    for _ in 0..=any(5) {
        let at = any(input.len());
        let end = (at + any(16)).min(input.len());
        let noise = [any(255) as u8, 0, 1, 0x7f, 0x80, 0xff][any(5)];
        match any(5) {
            0 => drop(input.drain(at..end)),
            1 => input.extend_from_within(at..end),
            2 => input.insert(at, noise),
            3 => input.truncate(end),
            _ => input[at..end].iter_mut().take(2).for_each(|byte| *byte = noise),
        }
    }
    input.truncate(LENGTH_MAX.max(kept[0].len()));
    input
}

#[test]
fn variations_differ_and_repeat() {
    let kept = [b"abcdefgh".to_vec()];
    assert_eq!(vary(&kept, 7), vary(&kept, 7));
    let all: std::collections::BTreeSet<_> = (0..100).map(|number| vary(&kept, number)).collect();
    assert!(all.len() > 50, "{}", all.len());
}
