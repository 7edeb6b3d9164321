//! Arguments of `lanecast watch`.

use crate::content::form::{Form, parse_path};
use crate::content::order::{Orders, parse_orders};
use crate::content::server::{RecordsArgs, ServerArgs};
use crate::watch::parse_interval;
use lanecast_filter::path::Path;
use std::time::Duration;

/// Arguments of `watch`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "lanecast watch <TOPIC> [OPTIONS]",
    after_help = "On a terminal the records are a table that is drawn again and again, with \
    what has changed since the last time in bold. Elsewhere each change is a line: + for a record \
    that is new, ~ for one that has changed, - for one that is gone.\n\
    Keys: q quits; arrows, j, k, PgUp, PgDn, g, G choose a row, which the last line shows whole; \
    s sorts by the next column, r turns the order.\n\
    Examples:\n  \
    lanecast watch orders -f \"/qty >= 5000\" --order-by \"/qty DESC\"\n  \
    lanecast watch orders --columns /symbol,/qty\n  \
    lanecast watch orders --json | jq 'select(.change == \"-\")'\n\
    Exit status: 0 ended by the user, a signal or --count, 1 error, 2 wrong arguments."
)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(super) records: RecordsArgs,

    /// Sort by fields, such as "/price DESC, /id"
    #[arg(long, value_name = "FIELDS", value_parser = parse_orders)]
    pub(super) order_by: Option<Orders>,

    /// The fields to show, such as /id,/price; by default those that the first records have
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', value_parser = parse_path)]
    pub(super) columns: Vec<Path>,

    /// Time between two pictures
    #[arg(long, value_name = "INTERVAL", default_value = "500ms", value_parser = parse_interval)]
    pub(super) interval: Duration,

    /// End after this many changes, where standard output is no terminal
    #[arg(long, value_name = "COUNT")]
    pub(super) count: Option<u64>,

    /// Output format: table on a terminal, raw and json as lines [default: table on a terminal,
    /// raw elsewhere]
    #[arg(long, value_name = "FORM", value_enum)]
    format: Option<Form>,

    /// With JSON, also what changes came by: command, topic, correlation
    #[arg(long)]
    meta: bool,

    /// Short for --format json --meta
    #[arg(long, conflicts_with = "format")]
    json: bool,

    #[command(flatten)]
    pub(super) server: ServerArgs,
}

impl WatchArgs {
    pub(super) fn is_json(&self) -> bool {
        self.json || self.meta && self.format.is_none() || self.format == Some(Form::Json)
    }

    pub(super) fn has_meta(&self) -> bool {
        self.json || self.meta
    }

    /// Whether changes are printed as lines, on a terminal too.
    #[cfg(feature = "top")]
    pub(super) fn is_lines(&self) -> bool {
        self.is_json() || self.format == Some(Form::Raw)
    }
}
