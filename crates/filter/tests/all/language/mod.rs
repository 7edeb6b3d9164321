//! Tests of the filter language: text, semantics, and agreement of plans and indexes.

mod cost;
mod faster;
mod many;
mod meaning;
mod page;
mod random;
mod record;
mod text;
