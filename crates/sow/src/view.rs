//! Views: what topics come to when their records are joined, grouped and added up.
//!
//! A view is told each [`Change`] of its topics, and takes what the record was before out of the
//! sums that it was in: what a change costs does not depend on how many records there are. What
//! comes of it is a topic of its own, with a record for each group: to be queried, followed, and
//! viewed again. Sums, counts and averages are exact; only what is written of a quotient is
//! rounded.

mod accumulator;
mod aggregation;
mod contribution;
mod decimal;
mod definition;
mod expression;
mod graph;
mod groups;
mod join;
mod materialized;
mod plan;
mod rational;
mod record_writer;
mod value;

pub use decimal::Rounding;
pub use definition::{Clause, Join, ViewDefinition, ViewError};
pub use graph::ViewGraph;
pub use materialized::{RefreshError, View};
