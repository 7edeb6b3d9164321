//! Measurement lines, made readable: a page, text for the terminal, files for other tools.
//!
//! Reads what `docs/protocol/measurements.md` describes, and knows nothing of how it was measured.
//! A report can be made again from its lines at any time, on any machine, and every number in it
//! names the line it comes from.
//!
//! ```
//! use lanecast_report::{Report, Source};
//!
//! let line = r#"{"schema":1,"kind":"publisher","size":64,"rate_asked":0,"rate":12500000.0}"#;
//! let report = Report::read(&[Source::lines("run.jsonl", line)])?;
//! assert!(report.to_text(100).contains("12.50 M/s"));
//! assert!(report.to_html().starts_with("<!DOCTYPE html>"));
//! # Ok::<(), lanecast_report::ReadError>(())
//! ```
#![forbid(unsafe_code)]

mod axis;
mod cases;
mod conditions;
mod distribution;
mod doctor;
mod document;
mod fanout;
mod hgrm;
mod hlog;
mod html;
mod line;
#[cfg(test)]
mod normative;
mod number;
mod outcome;
mod read;
mod report;
mod round_trip;
mod sections;
mod series;
mod since;
mod source;
mod spread;
mod text;
mod threads;

pub use read::ReadError;
pub use report::{NoTimes, Report};
pub use since::Since;
pub use source::Source;
