use super::*;

const LAP_BYTES: u64 = 1 << 20;

/// A stream whose laps take `plain` microseconds, or `flushed` after a lap with the flush.
fn read(flush: &mut CacheFlush, laps: u32, plain: u64, flushed: u64) -> u32 {
    let (mut was_on, mut laps_on) = (flush.is_on(), 0);
    for _ in 0..laps {
        let micros = if was_on { flushed } else { plain };
        was_on = flush.is_on();
        laps_on += u32::from(was_on);
        flush.decide(Duration::from_micros(micros));
    }
    laps_on
}

#[test]
fn a_slow_line_has_it_on_after_one_trial() {
    let mut flush = CacheFlush::with_laps(LAP_BYTES);
    read(&mut flush, LAPS_MIN + 2 * LAPS_TIMED + LAPS_SETTLING, 800, 400);
    assert!(flush.is_on());
    let laps_on = read(&mut flush, 10_000, 800, 400);
    assert!(laps_on > 9_800, "{laps_on} of 10,000");
}

#[test]
fn a_fast_line_tries_it_seldom() {
    let mut flush = CacheFlush::with_laps(LAP_BYTES);
    let laps_on = read(&mut flush, 10_000, 320, 400);
    assert!((5..150).contains(&laps_on), "{laps_on} of 10,000");
}

#[test]
fn a_trial_takes_a_small_share_of_the_time() {
    let mut flush = CacheFlush::with_laps(LAP_BYTES);
    let (plain, flushed) = (3, 150);
    let laps = 1_000_000;
    let laps_on = read(&mut flush, laps, plain, flushed);
    let share = f64::from(laps_on) * flushed as f64 / (f64::from(laps) * plain as f64);
    assert!(share < 0.02, "{share} of the time for {laps_on} laps of trials");
    assert!(laps_on > 8, "it is tried again");
    // After a second at most, if the line has become slow.
    read(&mut flush, 1_250 + LAPS_MAX, 800, 400);
    assert!(flush.is_on());
}

/// Bursts that are shorter than the rest after a trial that was lost.
#[test]
fn bursts_are_tried_again_after_a_lost_trial() {
    let mut flush = CacheFlush::with_laps(LAP_BYTES);
    read(&mut flush, LAPS_MIN + 2 * LAPS_TIMED + LAPS_SETTLING, 320, 400);
    assert!(!flush.is_on() && flush.rest_time > Duration::from_millis(100), "lost");
    let mut laps_on = 0;
    for _ in 0..100 {
        read(&mut flush, 1, 10_000, 10_000);
        laps_on += read(&mut flush, 20, 800, 400);
    }
    assert!(laps_on > 100, "{laps_on} of 2,000 laps over a line that has become slow");
}

/// The same over a fast line: pauses make trials no more frequent than their rest does.
#[test]
fn bursts_over_a_fast_line_try_it_seldom() {
    let mut flush = CacheFlush::with_laps(LAP_BYTES);
    let mut laps_on = 0;
    for _ in 0..1_000 {
        read(&mut flush, 1, 3_000, 3_000);
        laps_on += read(&mut flush, 20, 320, 400);
    }
    assert!((9..700).contains(&laps_on), "{laps_on} of 20,000 laps");
}

#[test]
fn a_gain_too_small_to_be_sure_of_leaves_it_off() {
    let mut flush = CacheFlush::with_laps(LAP_BYTES);
    read(&mut flush, 10_000, 400, 380);
    assert!(!flush.is_on());
}

#[test]
fn a_line_that_changes_is_followed() {
    let mut flush = CacheFlush::with_laps(LAP_BYTES);
    for _ in 0..3 {
        read(&mut flush, 3_000, 800, 400);
        assert!(flush.is_on());
        read(&mut flush, 3_000, 320, 400);
        assert!(!flush.is_on());
    }
}

#[test]
fn a_writer_with_little_to_send_is_left_alone() {
    let mut flush = CacheFlush::with_laps(LAP_BYTES);
    assert_eq!(read(&mut flush, 10_000, 2_500, 2_500), 0);
    read(&mut flush, 100, 800, 400);
    assert!(flush.is_on());
    assert!(read(&mut flush, 100, 2_500, 2_500) <= 1, "the flush ends with the burst");
}

#[test]
fn a_trial_that_was_broken_off_leaves_no_times_behind() {
    let mut flush = CacheFlush::with_laps(LAP_BYTES);
    read(&mut flush, LAPS_MIN + 2 * LAPS_TIMED + LAPS_SETTLING - 1, 800, 100);
    read(&mut flush, 1, 2_500, 2_500);
    read(&mut flush, 30, 320, 400);
    assert!(!flush.is_on(), "by the times of the new trial");
}

#[test]
fn flushed_bytes_are_as_before() {
    let mut flush = CacheFlush::with_laps(LAP_BYTES);
    flush.is_on = is_supported();
    let bytes: Vec<u8> = (0..1_000u32).map(|byte| byte as u8).collect();
    for (start, end) in [(0, 0), (0, 1), (3, 64), (63, 65), (0, 1_000), (999, 1_000)] {
        flush.flush(&bytes[start..end]);
    }
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8));
}
