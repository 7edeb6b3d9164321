//! `lanecast journal inspect` and `verify`.

use super::arguments::JournalArgs;
use crate::output::{print, print_error, print_json};
use crate::printable::printable;
use crate::table::{columns, counted, grouped, render, size, utc};
use indicatif::{ProgressBar, ProgressStyle};
use lanecast_journal::{Directory, JournalReport, SegmentReport, Verdict};
use lanecast_report::{TextTable, wrap};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Arguments of `inspect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Reads headers and the end only; `verify` reads everything.\n\
    Exit status: 0 whole or torn by a crash, 1 corrupt, or an error.")]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    journal: JournalArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Changes nothing, and may run beside a living owner.\n\
    Exit status: 0 whole or torn by a crash, 1 corrupt, or an error.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    journal: JournalArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn inspect(arguments: &InspectArgs) -> anyhow::Result<ExitCode> {
    let directory = arguments.journal.directory();
    show(&directory, &JournalReport::inspect(&directory)?, arguments.json)
}

pub(super) fn verify(arguments: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let directory = arguments.journal.directory();
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} segments  {eta} left")
    {
        bar.set_style(style);
    }
    let report = JournalReport::verify(&directory, |read, all| {
        bar.set_length(all as u64);
        bar.set_position(read as u64);
    });
    bar.finish_and_clear();
    show(&directory, &report?, arguments.json)
}

fn show(directory: &Directory, report: &JournalReport, is_json: bool) -> anyhow::Result<ExitCode> {
    let owner = directory.owner();
    if is_json {
        print_json(&to_json(report, owner))?;
    } else {
        print(&to_text(report, owner))?;
    }
    match &report.verdict {
        Verdict::Corrupt(damage) => {
            print_error(&format!("lanecast: {}", printable(&damage.to_string())));
            Ok(ExitCode::FAILURE)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn to_json(report: &JournalReport, owner: Option<u32>) -> Value {
    let segments: Vec<Value> = report.segments.iter().map(segment_json).collect();
    let mut object = json!({"owner_pid": owner, "segments": segments});
    match &report.verdict {
        Verdict::Intact => object["verdict"] = "whole".into(),
        Verdict::Torn { path, offset, bytes } => {
            object["verdict"] = "torn".into();
            object["torn"] = json!({"path": path, "offset": offset, "bytes": bytes});
        }
        Verdict::Corrupt(damage) => {
            object["verdict"] = "corrupt".into();
            object["damage"] = damage.to_string().into();
        }
    }
    object
}

fn segment_json(segment: &SegmentReport) -> Value {
    json!({
        "segment": segment.segment, "path": segment.path, "bytes": segment.bytes,
        "used_bytes": segment.used_bytes, "created_unix_ns": segment.created_unix_ns,
        "has_damaged_header": segment.has_damaged_header, "is_sealed": segment.is_sealed,
        "records": segment.records, "body_bytes": segment.body_bytes,
        "first": segment.first, "first_unix_ns": segment.first_unix_ns, "last": segment.last,
    })
}

fn to_text(report: &JournalReport, owner: Option<u32>) -> String {
    let titles =
        [">segment", ">size", ">used", ">records", ">first", ">last", "first appended", "state"];
    let mut rows = TextTable::new(&titles);
    for segment in &report.segments {
        let number = |number: u64| if number > 0 { number.to_string() } else { "-".into() };
        let first = segment.first > 0;
        rows.row([
            segment.segment.to_string(),
            size(segment.bytes),
            segment.used_bytes.map_or_else(|| "-".into(), size),
            grouped(segment.records),
            number(segment.first),
            number(segment.last),
            if first { utc(segment.first_unix_ns) } else { "-".into() },
            state(segment).to_owned(),
        ]);
    }
    let records: u64 = report.segments.iter().map(|segment| segment.records).sum();
    let bytes: u64 = report.segments.iter().map(|segment| segment.bytes).sum();
    let segments = report.segments.len() as u64;
    let mut text = render(&rows);
    let (records, segments) = (counted(records, "record"), counted(segments, "segment"));
    let mut summary = format!("{records}, {segments}, {}", size(bytes));
    summary += &match owner {
        Some(0) => "; a living process owns it\n".into(),
        Some(pid) => format!("; process {pid} owns it\n"),
        None => "; no process owns it\n".into(),
    };
    summary += &match &report.verdict {
        Verdict::Intact => "it is whole\n".into(),
        Verdict::Torn { path, offset, bytes } if owner.is_none() => format!(
            "a crash has torn its end: {bytes} bytes at offset {offset} of {}; opening it for \
             writing cuts them off\n",
            printable(path)
        ),
        Verdict::Torn { .. } => "it is whole, and its owner is writing at its end\n".into(),
        Verdict::Corrupt(_) => "it is corrupt\n".into(),
    };
    for line in summary.lines().flat_map(|line| wrap(line, columns())) {
        text += &(line + "\n");
    }
    text
}

fn state(segment: &SegmentReport) -> &'static str {
    match segment {
        SegmentReport { has_damaged_header: true, .. } => "one header damaged: repair it",
        SegmentReport { is_sealed: true, .. } => "sealed",
        SegmentReport { records: 0, .. } => "ready",
        _ => "in use",
    }
}
