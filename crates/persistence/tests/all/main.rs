//! Machines driven by hand, at the edges of their numbers and their bounds.

mod absent_members;
mod cluster;
mod copying;
mod detaching;
mod edges;
mod ends;
mod gaps;
mod lifetimes;
mod membership;
mod offers;
mod pacing;
mod parts;
mod positions;
mod ranges;
mod receivers;
mod refusals;
mod renewal;
mod resends;
mod silence;
mod slow_answers;
mod undecided_runs;
mod unkept;
mod unsettled;
