//! The record of a run as JSON: every repetition, not only the medians.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::campaign::Outcome;
use crate::cell::name_of;
use crate::host::{Host, load};
use crate::options::{Options, Row};
use crate::sides::Side;
use crate::summary::{Summary, figure, p50, rate, ratio};

/// Everything that a later reader needs.
#[derive(Debug, Serialize)]
pub struct Record {
    host: Host,
    load_after: f64,
    command: Vec<String>,
    pairs: usize,
    seconds: f64,
    publisher_cpu: usize,
    subscriber_cpu: usize,
    sides: Value,
    rows: Vec<Value>,
}

impl Record {
    /// An empty record.
    pub fn new(host: Host, sides: &[Box<dyn Side>], options: &Options) -> Self {
        let versions = sides.iter().map(|side| (side.name().to_owned(), side.version().into()));
        Self {
            host,
            load_after: 0.0,
            command: std::env::args().skip(1).collect(),
            pairs: options.pairs(),
            seconds: options.seconds(),
            publisher_cpu: options.publisher_cpu,
            subscriber_cpu: options.subscriber_cpu,
            sides: Value::Object(versions.collect()),
            rows: Vec::new(),
        }
    }

    /// Adds the cells of one row, each with its medians and ratios.
    pub fn add(&mut self, row: Row, outcomes: &[Outcome]) {
        let cells: Vec<Value> = outcomes.iter().map(|outcome| cell(row, outcome)).collect();
        self.rows.push(json!({ "row": name_of(row), "cells": cells }));
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(mut self, path: &Path) -> Result<()> {
        self.load_after = load();
        let text = serde_json::to_string_pretty(&self).context("cannot encode the record")?;
        fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
    }
}

fn cell(row: Row, outcome: &Outcome) -> Value {
    let by_p50 = matches!(row, Row::Latency | Row::Wake | Row::Bare);
    let of = |side: &str| -> Option<Summary> {
        if by_p50 { ratio(outcome, side, p50) } else { ratio(outcome, side, rate) }
    };
    let mut summary = serde_json::Map::new();
    for runs in &outcome.sides {
        summary.insert(
            runs.side.to_owned(),
            json!({
                "rate": figure(runs, rate),
                "p50_ns": figure(runs, p50),
                "lanecast_to_side": of(runs.side),
            }),
        );
    }
    json!({ "runs": outcome, "summary": summary })
}
