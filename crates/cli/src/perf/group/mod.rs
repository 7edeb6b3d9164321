//! `lanecast perf group`: the group test of the JGroups document, and `perf group-report`: its
//! matrix.

mod arguments;
mod carrier;
mod local;
mod member;
mod props;
mod series;
mod table;

pub(crate) use arguments::{GroupArgs, long_words};
pub(crate) use series::SeriesArgs;

use super::files::Times;
use super::priority;
use crate::output::{INCOMPLETE, print, print_line, wrong_arguments};
use lanecast_measure::Head;
use std::process::ExitCode;

/// Runs one member, or several on this machine.
pub(super) fn run(arguments: &GroupArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    let head = Head::now();
    let config = match arguments.read()? {
        Ok(config) => config,
        Err(error) => return Ok(wrong_arguments(&error.to_string())),
    };
    if arguments.own_session {
        priority::leave_session()?;
    }
    let files = arguments.files.open(Times::None("a group test has no latencies"))?;
    if !arguments.own_session {
        for note in &config.notes {
            crate::output::print_error(note);
        }
    }
    let line = match arguments.local.local {
        Some(_) => local::run(arguments, &config, &head, stop)?,
        None => member::run(arguments, &config, &head, stop)?,
    };
    files.write(&[line.to_string()])?;
    if arguments.json {
        print_line(&line.to_string())?;
    } else {
        print(&table::shown(&line))?;
    }
    Ok(ExitCode::from(if line["complete"] == true { 0 } else { INCOMPLETE }))
}

/// Runs `perf group-report`.
pub(super) fn run_series(
    arguments: &SeriesArgs,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<ExitCode> {
    series::run(arguments, stop)
}
