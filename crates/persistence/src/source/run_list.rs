//! The runs that a publisher tells its stores.

use lanecast_wire::store::{RUNS_MAX, Run};

/// Forgets runs that are too many: those without messages first, since logs are compared by the
/// others. As long as there is room they stay: receivers know by them that live messages belong to
/// the stream, though they were never stable.
pub(super) fn shorten(runs: &mut Vec<Run>) {
    while runs.len() > RUNS_MAX {
        let empty = runs.windows(2).position(|pair| pair[0].start == pair[1].start);
        runs.remove(empty.unwrap_or(0));
    }
}
