//! Output formats of messages and records.

use super::fields;
use super::grid::Grid;
use super::kind::KindArgs;
use crate::output::{StandardOutput, standard_output};
use crate::printable::{printable, printable_json};
use crate::pubsub::Frames;
use crate::watch::terminal_size;
use clap::ValueEnum;
use lanecast_filter::path::Path;
use serde_json::Value;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::SystemTime;

/// Messages from which the columns of a table are made.
const SAMPLE: usize = 50;

/// Bytes that wait for a flush.
const BUFFER: usize = 1 << 16;

/// A way to print messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Each as it is, on a line
    Raw,
    /// Each as an object of its fields, on a line of JSON
    Json,
    /// Their fields in columns
    Table,
}

/// Options of the output format.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormArgs {
    /// Output format of messages [default: raw; table for the records of a query on a terminal]
    #[arg(long, value_name = "FORM", value_enum)]
    format: Option<Form>,

    /// The columns of the table, such as /id,/price; by default those that the first messages have
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', value_parser = parse_path)]
    columns: Vec<Path>,

    /// With JSON, also what messages came by: command, topic, key, correlation; from a publisher
    /// also its address or id (source) and the message's number
    #[arg(long)]
    meta: bool,

    /// Short for --format json --meta
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Prefixes of messages that are printed as they are.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct StreamArgs {
    /// Precede each message by its length (4 bytes, little-endian) instead of ending it by a line
    #[arg(long, conflicts_with_all = ["timestamps", "topic_names"])]
    #[arg(conflicts_with_all = ["format", "json", "meta", "columns"])]
    binary: bool,

    /// Begin each line with the time of receipt, in seconds since 1970
    #[arg(long, conflicts_with_all = ["format", "json", "meta", "columns"])]
    timestamps: bool,

    /// Begin each line with the topic
    #[arg(long, conflicts_with_all = ["format", "json", "meta", "columns"])]
    topic_names: bool,
}

/// A message or a record, and what it came by.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) command: &'static str,
    pub(crate) topic: String,
    pub(crate) key: Option<u64>,
    pub(crate) correlation: Option<String>,
    /// Why a record left.
    pub(crate) reason: Option<String>,
    pub(crate) origin: Option<Origin>,
    /// Other members of the object that tells what it came by.
    pub(crate) details: Vec<(&'static str, Value)>,
    pub(crate) body: Vec<u8>,
}

/// The stream of a message that came from its publisher, and its place there.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The publisher: its address, or its stable id.
    pub(crate) source: String,
    /// Number of the message in the stream.
    pub(crate) number: u64,
    /// Whether it came from a store, where stores may have it.
    pub(crate) is_recovered: Option<bool>,
}

impl Item {
    /// One that came by nothing else.
    pub(crate) fn new(command: &'static str, topic: String, body: Vec<u8>) -> Self {
        let (key, correlation, reason, origin) = (None, None, None, None);
        let details = Vec::new();
        Self { command, topic, key, correlation, reason, origin, details, body }
    }
}

/// Prints items in one form.
#[derive(Debug)]
pub(crate) struct Printer {
    form: Form,
    kind: KindArgs,
    columns: Vec<Path>,
    has_meta: bool,
    is_terminal: bool,
    stream: StreamArgs,
    /// Items that wait until the table's columns are known.
    sample: Vec<Item>,
    grid: Option<Grid>,
    output: BufWriter<StandardOutput>,
}

/// A field's path, with or without the slash at its beginning.
pub(crate) fn parse_path(text: &str) -> Result<Path, String> {
    let text = text.trim();
    let slash = if text.starts_with(['/', '[']) { "" } else { "/" };
    format!("{slash}{text}").parse().map_err(|error| format!("{error}"))
}

impl FormArgs {
    /// Whether a form was wished for.
    pub(crate) const fn is_chosen(&self) -> bool {
        self.format.is_some() || !self.columns.is_empty() || self.meta || self.json
    }

    /// A printer; without a wish for any other form, of `usual`.
    pub(crate) fn printer(&self, kind: KindArgs, usual: Form) -> Printer {
        self.printer_of(kind, usual, self.meta || self.json)
    }

    /// One that says what messages came by as well, unless another form is wished for: they
    /// mean different things.
    pub(crate) fn telling_printer(&self, kind: KindArgs) -> Printer {
        let is_other = self.format.is_some() || !self.columns.is_empty();
        self.printer_of(kind, Form::Json, self.meta || !is_other)
    }

    fn printer_of(&self, kind: KindArgs, usual: Form, has_meta: bool) -> Printer {
        let chosen = match (self.format, self.json) {
            (Some(form), _) => form,
            (None, true) => Form::Json,
            (None, false) if !self.columns.is_empty() => Form::Table,
            (None, false) if self.meta => Form::Json,
            (None, false) => usual,
        };
        Printer {
            form: chosen,
            kind,
            columns: self.columns.clone(),
            has_meta,
            is_terminal: io::stdout().is_terminal(),
            stream: StreamArgs::default(),
            sample: Vec::new(),
            grid: None,
            output: BufWriter::with_capacity(BUFFER, standard_output()),
        }
    }
}

impl Printer {
    /// The same printer, with these prefixes.
    pub(crate) fn with_stream(self, stream: StreamArgs) -> Self {
        Self { stream, ..self }
    }

    /// Prints a message of `topic`, whose bytes may be changed, as [`print`](Self::print) does.
    pub(crate) fn print_message(
        &mut self,
        topic: &str,
        body: &mut Vec<u8>,
        origin: impl FnOnce() -> Origin,
    ) -> anyhow::Result<()> {
        if self.form == Form::Raw {
            return Ok(self.raw(topic, body)?);
        }
        let origin = self.has_meta.then(origin);
        let body = std::mem::take(body);
        self.print(Item { origin, ..Item::new("p", topic.to_owned(), body) })
    }

    /// Prints a message as it is, after its prefixes.
    fn raw(&mut self, topic: &str, body: &mut [u8]) -> io::Result<()> {
        if self.stream.binary {
            return Frames::Lengths.write(&mut self.output, body);
        }
        if self.stream.timestamps {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            write!(self.output, "{}.{:09} ", now.as_secs(), now.subsec_nanos())?;
        }
        if self.stream.topic_names {
            write!(self.output, "{} ", printable(topic))?;
        }
        self.kind.typed(body);
        self.write_line(body)
    }

    /// Prints an item, now or at the next [`flush`](Self::flush).
    pub(crate) fn print(&mut self, mut item: Item) -> anyhow::Result<()> {
        match (self.form, &mut self.grid) {
            (Form::Raw, _) => self.raw(&item.topic, &mut item.body)?,
            (Form::Json, _) => {
                let line = printable_json(self.object(&item));
                self.write_line(line.as_bytes())?;
            }
            (Form::Table, Some(grid)) => {
                let line = grid.line(&item.body, columns(self.is_terminal));
                writeln!(self.output, "{line}")?;
            }
            (Form::Table, None) => {
                self.sample.push(item);
                if self.sample.len() >= SAMPLE {
                    self.begin_table()?;
                }
            }
        }
        Ok(())
    }

    /// Has everything on its way.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        if !self.sample.is_empty() {
            self.begin_table()?;
        }
        Ok(self.output.flush()?)
    }

    fn begin_table(&mut self) -> anyhow::Result<()> {
        let sample = std::mem::take(&mut self.sample);
        let bodies = sample.iter().map(|item| &*item.body);
        let mut grid = Grid::new(self.kind, &self.columns, bodies)?;
        let columns = columns(self.is_terminal);
        writeln!(self.output, "{}", grid.head(columns))?;
        for item in &sample {
            writeln!(self.output, "{}", grid.line(&item.body, columns))?;
        }
        self.grid = Some(grid);
        Ok(())
    }

    /// On a terminal nothing but text gets through; elsewhere everything does.
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_terminal {
            return writeln!(self.output, "{}", printable(&String::from_utf8_lossy(line)));
        }
        Frames::Lines.write(&mut self.output, line)
    }

    fn object(&self, item: &Item) -> String {
        let mut members = Vec::new();
        let mut member = |name: &str, json: String| members.push(format!("\"{name}\":{json}"));
        let quoted = |text: &str| Value::from(text).to_string();
        if self.has_meta {
            member("command", quoted(item.command));
            member("topic", quoted(&item.topic));
            // A text, as it may be too great for a number of JSON.
            item.key.iter().for_each(|key| member("sow_key", quoted(&key.to_string())));
            item.reason.iter().for_each(|text| member("reason", quoted(text)));
            if let Some(origin) = &item.origin {
                member("source", quoted(&origin.source));
                member("number", origin.number.to_string());
                origin.is_recovered.iter().for_each(|it| member("recovered", it.to_string()));
            }
            item.correlation.iter().for_each(|text| member("correlation_id", quoted(text)));
            item.details.iter().for_each(|(name, value)| member(name, value.to_string()));
        }
        match fields::parse(self.kind.kind, &item.body) {
            Ok(fields) if self.has_meta => member("message", fields.json()),
            Ok(fields) => return fields.json(),
            Err(error) => {
                let text = String::from_utf8_lossy(&item.body);
                member("malformed", quoted(&error));
                member("text", quoted(&text));
            }
        }
        format!("{{{}}}", members.join(","))
    }
}

/// The width that lines are cut to.
fn columns(is_terminal: bool) -> Option<usize> {
    is_terminal.then(|| terminal_size().0)
}
