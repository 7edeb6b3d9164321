//! Counters of a member in a file, read by `lanecast stat`.

use crate::refused_frames::RefusedFrames;
use lanecast_membership::{GroupCounters, Member, Nanos};
use lanecast_stats::{CounterLayout, CounterOwner, Counters, Role};
use std::path::Path;

/// Time between two updates of the file, in nanoseconds: the path of a message pays for none.
const UPDATE_INTERVAL: Nanos = 50_000_000;
/// File mode: readable by the user alone.
const MODE: u32 = 0o600;

/// A counter's label, and the function that reads its value.
type Column = (&'static str, fn(&Member) -> u64);

const COLUMNS: [Column; 23] = [
    ("members of the view", |member| member.view().members.len() as u64),
    ("view", |member| member.view().id.epoch),
    ("coordinates the view", |member| u64::from(member.view().id.coordinator == member.me().id)),
    ("messages", |member| member.counters().sent),
    ("bytes", |member| member.counters().sent_bytes),
    ("messages delivered", |member| member.counters().delivered),
    ("bytes delivered", |member| member.counters().delivered_bytes),
    ("messages to one member", |member| member.counters().sent_direct),
    ("messages to this member alone", |member| member.counters().delivered_direct),
    ("acknowledgements", |member| member.counters().acks),
    ("order lists", |member| member.counters().order_lists),
    ("requests for missing frames", |member| member.counters().wants),
    ("frames missed", |member| member.counters().wanted),
    ("frames repaired", |member| member.counters().repairs_sent),
    ("requests cut short", |member| member.counters().repairs_limited),
    ("frames recovered", |member| member.counters().repairs_received),
    ("frames repeated", |member| member.counters().duplicates),
    ("frames of other views", |member| member.counters().other_view),
    ("frames without room", |member| member.counters().no_room),
    ("frames sent again unasked", |member| member.counters().probes),
    ("most bytes retained of a sender", |member| member.counters().highest_retained as u64),
    ("sends blocked", |member| blocked(member.counters(), |by| by.times)),
    ("time sends were blocked, ns", |member| blocked(member.counters(), |by| by.nanos)),
];

/// Label of the last counter, which is not the member's.
const REFUSED: &str = "frames that could not be opened";

/// Sum over the members that held up sending.
fn blocked(counters: &GroupCounters, part: fn(&lanecast_membership::BlockedBy) -> u64) -> u64 {
    counters.blocked.iter().map(part).fold(0, u64::saturating_add)
}

/// The counters file of a member, and the time of its next update.
#[derive(Debug)]
pub(crate) struct Telemetry {
    file: Option<Counters>,
    due: Nanos,
}

impl Telemetry {
    /// Opens the file of `member` of `group` in `directory`. Without a file (the disk is full, say)
    /// the member works all the same.
    pub(crate) fn open(directory: Option<&Path>, member: &Member, group: &str) -> Self {
        let me = member.me();
        let owner = CounterOwner {
            role: Role::Member,
            session: me.id.0,
            transport: "group",
            address: &me.name,
            group,
        };
        let labels: Vec<&str> = COLUMNS.iter().map(|(label, _)| *label).chain([REFUSED]).collect();
        let layout = CounterLayout::session(&labels, owner);
        let file = directory.and_then(|directory| Counters::create(directory, MODE, &layout).ok());
        // Zero: the first update comes at once, so that the file is never seen empty for long.
        let due = if file.is_some() { 0 } else { Nanos::MAX };
        Self { file, due }
    }

    /// Writes the counters, if that is due.
    #[inline]
    pub(crate) fn update(&mut self, now: Nanos, member: &Member, refused: &RefusedFrames) {
        if self.due <= now {
            self.write(now, member, refused);
        }
    }

    #[cold]
    fn write(&mut self, now: Nanos, member: &Member, refused: &RefusedFrames) {
        let Some(file) = &self.file else { return };
        for (index, (_, value)) in COLUMNS.iter().enumerate() {
            file.set(index, value(member));
        }
        file.set(COLUMNS.len(), refused.frames);
        self.due = now.saturating_add(UPDATE_INTERVAL);
    }
}
