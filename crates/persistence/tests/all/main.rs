//! Machines driven by hand, at the edges of their numbers and their bounds.

mod copying;
mod edges;
mod pacing;
mod parts;
mod receivers;
mod resends;
