//! A histogram of times in nanoseconds, as exact as one in 128: members print theirs, and the
//! runner adds them up, so that a percentile is that of all deliveries and not of one member's.

/// Times below 2^`BITS` × 2 have a bucket each; longer ones share 2^`BITS` buckets an octave.
const BITS: u32 = 7;

/// Counts of times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    counts: Vec<u64>,
    total: u64,
}

impl Times {
    /// Counts one.
    pub fn add(&mut self, time: u64) {
        self.add_many(bucket(time), 1);
    }

    fn add_many(&mut self, bucket: usize, count: u64) {
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += count;
        self.total += count;
    }

    /// Adds those of a member, as it has printed them; nothing of words that are no histogram.
    pub fn add_printed(&mut self, text: &str) {
        for word in text.split(',') {
            let Some((bucket, count)) = word.split_once(':') else { continue };
            let (Ok(bucket), Ok(count)) = (bucket.parse::<usize>(), count.parse()) else {
                continue;
            };
            if bucket <= self::bucket(u64::MAX) {
                self.add_many(bucket, count);
            }
        }
    }

    /// As members print it: buckets and counts.
    pub fn printed(&self) -> String {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let words: Vec<String> = counts.map(|(at, count)| format!("{at}:{count}")).collect();
        words.join(",")
    }

    /// Number of times.
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// The time that this share of all did not exceed; 0 without any.
    pub fn percentile(&self, per_cent: f64) -> u64 {
        let rank = (self.total as f64 * per_cent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        at.map_or(0, middle)
    }
}

fn bucket(time: u64) -> usize {
    let shift = (u64::BITS - 1 - time.max(1).leading_zeros()).saturating_sub(BITS);
    ((u64::from(shift) << BITS) + (time >> shift)) as usize
}

/// The time in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> BITS).saturating_sub(1);
    let low = (bucket - (shift << BITS)) << shift;
    low + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_times_to_one_in_128() {
        let all = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for time in all.chain([u64::MAX, 12_200, 74_123]) {
            let shown = middle(bucket(time));
            assert!(shown.abs_diff(time) <= time / 128, "{time}: {shown}");
        }
        assert!((0..100_000).is_sorted_by_key(bucket));
    }

    #[test]
    fn printed_times_add_up() {
        let (mut one, mut other) = (Times::default(), Times::default());
        (1..=90).for_each(|time| one.add(time));
        (91..=100).for_each(|time| other.add(time));
        let mut sum = Times::default();
        sum.add_printed(&one.printed());
        sum.add_printed(&other.printed());
        sum.add_printed("x:1,2,99999999999:1,");
        assert_eq!(sum.count(), 100);
        let percentiles = [1.0, 50.0, 90.0, 99.0, 100.0].map(|it| sum.percentile(it));
        assert_eq!(percentiles, [1, 50, 90, 99, 100]);
        assert_eq!(Times::default().percentile(50.0), 0);
    }
}
