//! Messages that a store has missed: sent again, or the store that has them is named.

use super::known_store::KnownStore;
use super::window::Window;
use crate::outlet::SourceOutlet;
use lanecast_wire::store::{Ballot, RecordsWriter, StoreFrame};

/// Frames of messages that one request of a store is answered with.
pub(crate) const RESENDS_MAX: usize = 8;

/// Answers `store`, which misses the messages of the run from sequence `from` on.
pub(super) fn send_again(
    window: &Window,
    stores: &[KnownStore],
    (store, ballot, from): (usize, Ballot, u64),
    longest_frame: usize,
    out: &mut dyn SourceOutlet,
) {
    let until = window.first();
    if from < until {
        let others = stores.iter().enumerate().filter_map(|(index, it)| {
            let state = it.state.as_ref().filter(|state| state.next >= until)?;
            let is_other = index != store && it.has_begun(ballot);
            // Behind those that retention has given up, the store would begin anew.
            let has_all = state.first <= from && !it.is_lost;
            is_other.then_some((has_all, it.heard, it))
        });
        if let Some((.., donor)) = others.max_by_key(|&(has_all, heard, _)| (has_all, heard)) {
            out.request(store, &StoreFrame::Elsewhere { ballot, until, donor: &donor.name });
        }
        return;
    }
    let mut next = from;
    for _ in 0..RESENDS_MAX {
        let (first, mut writer) = (next, RecordsWriter::default());
        while let Some(body) = window.get(next) {
            if !writer.is_empty() && writer.len() + body.len() > longest_frame {
                break;
            }
            writer.add(body);
            next += 1;
        }
        if writer.is_empty() {
            return;
        }
        let records = writer.records();
        out.request(store, &StoreFrame::Resend { ballot, first, records });
    }
}
