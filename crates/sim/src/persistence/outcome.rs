//! Counts of runs.

/// Counts of a run, so that runs which prove nothing show.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct StoreOutcome {
    pub stable: u64,
    pub runs: u64,
    pub superseded: u64,
    pub store_crashes: u64,
    pub publisher_crashes: u64,
    pub wipes: u64,
    pub healed_wipes: u64,
    pub lost: u64,
    pub frames: u64,
    pub inherited: u64,
    pub trims: u64,
    pub handed_out: u64,
    pub resumed: u64,
    pub caught_up: u64,
    pub discarded: u64,
    pub lost_messages: u64,
    pub other_lists: u64,
    pub members_changed: u64,
    pub evictions: u64,
    pub not_stored: u64,
    pub left: u64,
    pub left_unseen: u64,
    pub later_starts: u64,
    pub ended: u64,
    pub departures: u64,
    pub partial_departures: u64,
    pub full_disks: u64,
}

impl StoreOutcome {
    /// Adds another run.
    pub fn add(&mut self, other: &Self) {
        self.stable += other.stable;
        self.runs += other.runs;
        self.superseded += other.superseded;
        self.store_crashes += other.store_crashes;
        self.publisher_crashes += other.publisher_crashes;
        self.wipes += other.wipes;
        self.healed_wipes += other.healed_wipes;
        self.lost += other.lost;
        self.frames += other.frames;
        self.inherited += other.inherited;
        self.trims += other.trims;
        self.handed_out += other.handed_out;
        self.resumed += other.resumed;
        self.caught_up += other.caught_up;
        self.discarded += other.discarded;
        self.lost_messages += other.lost_messages;
        self.other_lists += other.other_lists;
        self.members_changed += other.members_changed;
        self.evictions += other.evictions;
        self.not_stored += other.not_stored;
        self.left += other.left;
        self.left_unseen += other.left_unseen;
        self.later_starts += other.later_starts;
        self.ended += other.ended;
        self.departures += other.departures;
        self.partial_departures += other.partial_departures;
        self.full_disks += other.full_disks;
    }
}
