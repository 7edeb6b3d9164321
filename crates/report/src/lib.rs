//! Renders measurement lines: a page, text for the terminal, files for other tools.
//!
//! The lines are those of `docs/protocol/measurements.md`. A report can be made again from its
//! lines at any time, on any machine, and every number in it names the line it comes from.
//!
//! The path through the files: [`Source`] → `read` (checks each line against `schema`, makes a
//! `line`) → `cases` (groups repetitions) → `sections` (tables and charts of a `document`) → `html`
//! or `text`. Distributions go to `hgrm` and `hlog` instead.
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
mod distribution;
mod document;
mod hgrm;
mod hlog;
mod html;
mod line;
mod number;
mod read;
mod report;
mod schema;
mod sections;
mod since;
mod source;
mod spread;
mod text;
mod text_table;

pub use read::ReadError;
pub use report::{NoTimes, Report};
pub use since::Since;
pub use source::Source;
pub use text_table::{TextTable, wrap};
