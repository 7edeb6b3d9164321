//! Contents of a file, as seen by processes and as stored on the disk.

use crate::rng::SimRng;
use std::collections::BTreeSet;
use std::ops::Range;

/// Sector size: the unit that a disk writes atomically, or nearly always.
const SECTOR: usize = 512;

/// A file.
#[derive(Debug, Default)]
pub(super) struct Inode {
    /// Contents seen by processes.
    now: Vec<u8>,
    /// Contents on the disk.
    durable: Vec<u8>,
    /// Writes since the last synchronisation, in order.
    pending: Vec<(usize, Vec<u8>)>,
}

impl Inode {
    pub(super) fn now(&self) -> &[u8] {
        &self.now
    }

    pub(super) fn set_length(&mut self, length: usize) {
        self.now.resize(length, 0);
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.now.len() < end {
            self.now.resize(end, 0);
        }
        self.now[offset..end].copy_from_slice(bytes);
        self.pending.push((offset, bytes.to_vec()));
    }

    pub(super) fn sync(&mut self) {
        let length = self.now.len();
        self.durable.resize(length, 0);
        for (offset, bytes) in self.pending.drain(..) {
            let end = (offset + bytes.len()).min(length);
            if offset < end {
                self.durable[offset..end].copy_from_slice(&bytes[..end - offset]);
            }
        }
    }

    /// Stores part of the pending writes; the rest is lost unless written again.
    pub(super) fn sync_badly(&mut self, rng: &mut SimRng) {
        self.settle(rng);
    }

    /// Discards everything that is not on the disk.
    pub(super) fn crash(&mut self, rng: &mut SimRng) {
        self.settle(rng);
        self.now.clone_from(&self.durable);
    }

    fn settle(&mut self, rng: &mut SimRng) {
        if rng.percent(50) {
            self.durable.resize(self.now.len(), 0);
        }
        let count = self.pending.len() as u64;
        // All, nothing, or each sector at random.
        let most = rng.pick(&[0, count, count, count]);
        let is_whole = rng.percent(20);
        let sectors: BTreeSet<usize> =
            self.pending.iter().flat_map(|(offset, bytes)| sectors(*offset, bytes.len())).collect();
        for sector in sectors {
            let moment = if is_whole { most } else { rng.within(0..=most) };
            for number in 0..moment as usize {
                self.bring(number, sector * SECTOR..(sector + 1) * SECTOR);
            }
            let next = moment as usize;
            if next < self.pending.len() && most > 0 && rng.percent(5) {
                let torn = rng.within(1..=SECTOR as u64 - 1) as usize;
                self.bring(next, sector * SECTOR..sector * SECTOR + torn);
            }
        }
        self.pending.clear();
    }

    /// Stores the part of a pending write that lies in `range`.
    fn bring(&mut self, number: usize, range: Range<usize>) {
        let (offset, bytes) = &self.pending[number];
        let start = range.start.max(*offset);
        let end = range.end.min(offset + bytes.len()).min(self.durable.len());
        if start < end {
            self.durable[start..end].copy_from_slice(&bytes[start - offset..end - offset]);
        }
    }

    pub(super) fn damage(&mut self, offset: u64, with: u8) {
        let offset = offset as usize;
        self.now[offset] ^= with;
        if let Some(byte) = self.durable.get_mut(offset) {
            *byte = self.now[offset];
        }
    }
}

/// The sectors that a write touches.
fn sectors(offset: usize, length: usize) -> Range<usize> {
    offset / SECTOR..(offset + length).div_ceil(SECTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synchronised_bytes_survive_a_crash_and_others_in_part() {
        let (mut lost, mut kept, mut mixed, mut torn) = (0, 0, 0, 0);
        for seed in 0..1000 {
            let mut inode = Inode::default();
            inode.write(0, &[1; 4 * SECTOR]);
            inode.sync();
            inode.write(SECTOR, &[2; 2 * SECTOR]);
            inode.crash(&mut SimRng::new(seed));
            let now = inode.now();
            assert_eq!(now.len(), 4 * SECTOR);
            let untouched = [&now[..SECTOR], &now[3 * SECTOR..]];
            assert!(untouched.iter().all(|part| part.iter().all(|byte| *byte == 1)));
            let twos = now.iter().filter(|byte| **byte == 2).count();
            match twos {
                0 => lost += 1,
                n if n == 2 * SECTOR => kept += 1,
                SECTOR => mixed += 1,
                _ => torn += 1,
            }
        }
        assert!([lost, kept, mixed, torn].iter().all(|count| *count > 20));
    }

    #[test]
    fn bytes_of_a_failed_sync_are_readable_until_the_crash() {
        let lost = (0..100).filter(|seed| {
            let mut rng = SimRng::new(*seed);
            let mut inode = Inode::default();
            inode.write(0, &[1; SECTOR]);
            inode.sync();
            inode.write(0, &[2; SECTOR]);
            inode.sync_badly(&mut rng);
            assert_eq!(inode.now()[0], 2);
            inode.sync();
            inode.crash(&mut rng);
            inode.now()[0] == 1
        });
        assert!(lost.count() > 10);
    }
}
