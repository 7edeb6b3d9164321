//! `lanecast top`: a live view of a domain, drawn at each tick, at a key and at a change of the
//! terminal's size.

pub(crate) mod draw;
pub(crate) mod keys;
mod model;
mod processes;
pub(crate) mod screen;
pub(crate) mod sheet;
pub(crate) mod signals;
mod streams;
#[cfg(test)]
mod tests;

use crate::context::DomainArgs;
use crate::watch::parse_interval;
use crate::{counters, sessions};
use anyhow::bail;
use lanecast::shm;
use model::{Model, Seen};
use screen::{Screen, Wake};
use signals::stop_flag;
use std::io::{IsTerminal, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

/// Arguments of `top`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Keys: ? shows them. Colours stay away if NO_COLOR is set.")]
pub(crate) struct TopArgs {
    /// Time between two looks
    #[arg(long, value_name = "INTERVAL", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,

    /// Show only what contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,

    #[command(flatten)]
    domain: DomainArgs,
}

/// The time until the second look, so that the first rates come soon.
const SOON: Duration = Duration::from_millis(250);

pub(crate) fn run(arguments: &TopArgs) -> anyhow::Result<ExitCode> {
    if !stdout().is_terminal() {
        bail!(
            "top needs a terminal to draw on: elsewhere use `lanecast stat --watch` or \
             `lanecast ls --watch`"
        );
    }
    let stop = stop_flag()?;
    let directory = arguments.domain.directory()?;
    let name = directory.display().to_string();
    let mut model = Model::new(name, arguments.interval, arguments.filter.clone());
    let mut watcher = Watcher::new(directory);
    model.show(watcher.look()?);
    let mut next = Instant::now() + SOON.min(model.interval);
    let mut screen = Screen::open()?;
    loop {
        screen.draw(|frame, palette| draw::draw(frame, &model, palette))?;
        match Screen::wait(next, model.is_typing, &stop)? {
            Wake::End => break,
            Wake::Resized => {}
            Wake::Key(action) => {
                let interval = model.interval;
                if !model.apply(action) {
                    break;
                }
                if model.interval != interval {
                    next = next.min(Instant::now() + model.interval);
                }
            }
            Wake::Time => {
                next = Instant::now() + model.interval;
                if !model.is_paused {
                    model.show(watcher.look_again());
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes snapshots; keeps the earlier ones that rates are computed from.
#[derive(Debug)]
struct Watcher {
    directory: PathBuf,
    sessions: Option<shm::DomainSnapshot>,
    processes: Option<lanecast_stats::StatsSnapshot>,
}

impl Watcher {
    const fn new(directory: PathBuf) -> Self {
        Self { directory, sessions: None, processes: None }
    }

    fn look(&mut self) -> std::io::Result<Seen> {
        let sessions = shm::DomainSnapshot::take(&self.directory)?;
        let processes = lanecast_stats::StatsSnapshot::take(&self.directory)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut errors = sessions::errors(&sessions);
        errors.extend(counters::errors(&processes));
        let seen = Seen {
            sessions: sessions::since(self.sessions.as_ref().unwrap_or(&sessions), &sessions),
            processes: counters::since(self.processes.as_ref(), &processes),
            errors,
            unix_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
        };
        (self.sessions, self.processes) = (Some(sessions), Some(processes));
        Ok(seen)
    }

    /// A look that cannot be taken shows why, and the next one may.
    fn look_again(&mut self) -> Seen {
        self.look().unwrap_or_else(|error| {
            let words = format!("{}: {error}", self.directory.display());
            Seen { errors: vec![words], ..Seen::default() }
        })
    }
}
