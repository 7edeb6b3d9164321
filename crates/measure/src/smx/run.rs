//! Results of repetitions, as measurement lines hold them.

use super::case::{Case, Experiment};
use super::reference::Reference;
use serde::Serialize;

/// One repetition of one case: a line of kind `run`.
#[derive(Clone, Debug, Serialize)]
pub struct Run<Y, P, S> {
    /// Experiment of the case.
    pub experiment: Experiment,
    /// Parameters of the run.
    pub case: Case,
    /// Which repetition, counted from 1.
    pub repetition: u32,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Baseline just before the run.
    pub baseline: Y,
    /// The publisher's result.
    pub publisher: P,
    /// The receivers' results.
    pub subscribers: Vec<S>,
    /// Reference figures of the document.
    pub reference: Option<Reference>,
}

/// An experiment, or a case of it, that was left out or failed: a line of kind `skipped`.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped<E = Experiment> {
    /// Experiment of the case.
    pub experiment: E,
    /// Why, in words.
    pub why: String,
}
