//! Views: topics computed from others by joins, grouping and aggregation, maintained incrementally.
//!
//! A [`View`] gets each [`Change`](crate::Change) of its sources and subtracts the previous
//! record's contribution before it adds the new one, so a change costs the same however many
//! records there are. The result is a topic with a record per group, which can be queried,
//! subscribed to and viewed again. Sums, counts and averages are exact; only a written quotient is
//! rounded.
//!
//! Path of a change: `graph` → `materialized` → (`join`) → `aggregation` → `groups` and
//! `accumulator` → `record_writer`. `plan` compiles the definition.

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
