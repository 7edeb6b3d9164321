//! What a repetition came to, as it goes into a measurement line.

use super::case::{Case, Experiment};
use super::reference::Reference;
use serde::Serialize;

/// One repetition of one case: a line of kind `run`.
#[derive(Clone, Debug, Serialize)]
pub struct Run<Y, P, S> {
    /// What it belongs to.
    pub experiment: Experiment,
    /// What was run.
    pub case: Case,
    /// Which repetition, counted from 1.
    pub repetition: u32,
    /// Of how many.
    pub repetitions: u32,
    /// What the machine could do just before.
    pub baseline: Y,
    /// The publisher's result.
    pub publisher: P,
    /// The receivers' results.
    pub subscribers: Vec<S>,
    /// What the document says of this case.
    pub reference: Option<Reference>,
}

/// An experiment, or a case of it, that was left out or failed: a line of kind `skipped`.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped<E = Experiment> {
    /// What it belongs to.
    pub experiment: E,
    /// Why, in words.
    pub why: String,
}
