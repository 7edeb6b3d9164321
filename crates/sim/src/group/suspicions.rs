//! Suspicions that one member's application was told: each crash once.

use crate::ensure;
use crate::group::event::OwnedEvent;
use crate::violation::Verdict;
use lanecast_membership::MemberId;
use lanecast_protocol::{MILLISECOND, Nanos};
use std::collections::BTreeMap;

/// Signs of life that come sooner after the suspicion may be from before the crash.
const DETOUR: Nanos = 500 * MILLISECOND;
/// Kind of a heartbeat, by `docs/protocol/group.md`.
const HEARTBEAT: u8 = 1;

/// Suspected members that have not shown themselves since, and when that was told.
#[derive(Clone, Debug, Default)]
pub struct Suspicions(BTreeMap<MemberId, Nanos>);

impl Suspicions {
    /// The member handles a frame.
    pub fn on_frame(&mut self, now: Nanos, bytes: &[u8]) {
        let sender = bytes.get(8..16).and_then(|bytes| bytes.try_into().ok());
        if let (Some(&HEARTBEAT), Some(sender)) = (bytes.get(1), sender) {
            self.refute(now, MemberId(u64::from_le_bytes(sender)));
        }
    }

    fn refute(&mut self, now: Nanos, id: MemberId) {
        if self.0.get(&id).is_some_and(|told| now >= told + DETOUR) {
            self.0.remove(&id);
        }
    }

    /// Checks the events of the member `observer`.
    ///
    /// # Errors
    /// If one repeats a suspicion.
    pub fn on_events(&mut self, now: Nanos, observer: MemberId, events: &[OwnedEvent]) -> Verdict {
        for event in events {
            match event {
                OwnedEvent::View(view, _) => {
                    view.members.iter().for_each(|member| self.refute(now, member.id));
                }
                OwnedEvent::Suspected(id, why) => {
                    let told = self.0.insert(*id, now);
                    ensure!(told.is_none(), "{observer} suspects {id} again: {why:?}");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_membership::Departure;

    #[test]
    fn a_second_suspicion_needs_a_sign_of_life_in_between() {
        let (observer, id) = (MemberId(1), MemberId(7));
        let mut suspicions = Suspicions::default();
        let crash = [OwnedEvent::Suspected(id, Departure::Crashed)];
        let silence = [OwnedEvent::Suspected(id, Departure::Silent)];
        let mut heartbeat = vec![0, HEARTBEAT, 0, 0, 0, 0, 0, 0];
        heartbeat.extend_from_slice(&id.0.to_le_bytes());
        suspicions.on_events(1, observer, &silence).unwrap();
        suspicions.on_frame(DETOUR, &heartbeat);
        assert!(suspicions.on_events(DETOUR, observer, &crash).is_err(), "from before the crash");
        let mut suspicions = Suspicions::default();
        suspicions.on_events(1, observer, &silence).unwrap();
        suspicions.on_frame(DETOUR + 1, &heartbeat);
        suspicions.on_events(DETOUR + 2, observer, &crash).unwrap();
    }
}
