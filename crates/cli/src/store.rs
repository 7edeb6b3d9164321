//! `lanecast store`: be a store that keeps messages on disk, or look at stores.

mod deregister;
mod limits;
mod ls;
mod name_check;
mod places;
mod silent;
mod survey;
mod which;

use crate::context::WayArgs;
use crate::descriptors;
use crate::output::{print, print_json, warn};
use crate::table::counted;
use anyhow::Context as _;
use lanecast::persistence::STORE_VERSION;
use lanecast::{StoreServer, parse_duration};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longest sleep: a signal is noticed after it.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Interval at which changed streams are printed.
const REPORT: Duration = Duration::from_secs(1);

const LOST_RECORDS: &str = "the journal lacks records that a checkpoint covers, as on a disk that \
    lost its last writes, or in a copy made while the store ran: the store counts as one without \
    its data, until it has copied from the others what is missing";

/// Arguments of `store`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Keeps the messages of publishers that name this store, and gives subscribers \
    what they missed. Data and names survive restarts; a store whose directory is new copies from \
    the others.\n\
    Example: lanecast store a --data /var/lib/lanecast/a\n\
    In another terminal: lanecast store ls a\n\
    Exit status: 0 ended by a signal; 1 error, as when the disk has failed or a store with this \
    name runs already; 2 wrong arguments.",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: Option<StoreCommand>,

    /// Name of the store: publishers and subscribers ask for it
    #[arg(value_name = "NAME", default_value = "store")]
    name: String,

    /// Directory of its data; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "lanecast-store")]
    data: PathBuf,

    /// Print a JSON object for each stream that has changed, once a second
    #[arg(long)]
    json: bool,

    /// Print nothing while running
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    limits: limits::LimitArgs,

    /// Write long batches through the page cache of the system: for disks on which they take longer
    /// past it
    #[arg(long)]
    cached_writes: bool,

    /// Longest time for which messages that keep coming are gathered before they are written, at
    /// most 100ms; 0 writes at once
    #[arg(long, value_name = "DURATION", default_value = "1ms", value_parser = parse_duration)]
    commit_delay: Duration,

    /// Let every client end registrations, not only those that can read the key in DIR
    #[arg(long)]
    permit_deregistration: bool,

    #[command(flatten)]
    way: WayArgs,
}

/// Subcommands of `store`.
#[derive(Debug, clap::Subcommand)]
enum StoreCommand {
    /// List the streams of stores, their quorums, and the receivers with their lags
    Ls(Box<ls::LsArgs>),
    /// End the registration of a receiver that does not return, or of a source
    Deregister(Box<deregister::DeregisterArgs>),
}

pub(crate) fn run(arguments: &StoreArgs) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        None => serve(arguments),
        Some(StoreCommand::Ls(arguments)) => ls::run(arguments),
        Some(StoreCommand::Deregister(arguments)) => deregister::run(arguments),
    }
}

/// Words for the reason why a store keeps nothing for now, and for the end of that.
fn shortage() -> (&'static str, &'static str) {
    if descriptors::are_used_up() {
        (
            "no file descriptor is free: nothing is kept until there is one; raise `ulimit -n`",
            "a file descriptor is free again",
        )
    } else {
        ("the disk is full: nothing is kept until there is space", "the disk has space again")
    }
}

/// Tells of what a store found wrong when it was opened.
fn warn_of(store: &StoreServer) {
    for reason in &store.recovery().refused {
        warn(&format!("{}; it was not used", crate::printable::printable(reason)));
    }
    if store.recovery().has_lost_records {
        warn(LOST_RECORDS);
    }
    if let Some(error) = store.key_failure() {
        warn(&format!("store deregister has no permission until the next start: no key: {error}"));
    }
    if store.longest_kept() < store.longest_sent() {
        warn(&format!(
            "longer messages than {} bytes cannot be kept, and publishers here can send up to {}: \
             give --keep eight times the longest message",
            store.longest_kept(),
            store.longest_sent()
        ));
    }
}

fn serve(arguments: &StoreArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::stop::flag()?;
    descriptors::raise();
    let context = arguments.way.outward()?;
    name_check::check(&context, &arguments.name, stop.clone())?;
    let directory = &arguments.data;
    let mut options = arguments.limits.options();
    options.has_direct_writes = !arguments.cached_writes;
    options.commit_delay = arguments.commit_delay;
    options.permits_deregistration = arguments.permit_deregistration;
    let mut store = context
        .store_with(&arguments.name, directory, options)
        .with_context(|| format!("opening the store in {}", directory.display()))?;
    if !arguments.quiet && !arguments.json {
        let kept = counted(store.streams().count() as u64, "stream");
        print(&format!("store {} in {}, {kept}\n", store.name(), directory.display()))?;
    }
    warn_of(&store);
    let mut has_refused = false;
    let (mut printed, mut report_at, mut shortage_ends) = (Vec::new(), Instant::now(), None);
    let mut other_version = None;
    while !stop() {
        let work = store.poll()?;
        if Instant::now() >= report_at {
            report_at = Instant::now() + REPORT;
            if store.stats().is_disk_full != shortage_ends.is_some() {
                let (begins, ends) = shortage();
                warn(shortage_ends.unwrap_or(begins));
                shortage_ends = shortage_ends.xor(Some(ends));
            }
            if store.stats().too_long > 0 && !has_refused {
                has_refused = true;
                warn(&format!(
                    "a message is longer than {} bytes and cannot be kept, and its publisher waits \
                     in vain: start the store with eight times its length as --keep",
                    store.longest_kept()
                ));
            }
            let version = store.stats().other_version;
            if version != other_version
                && let Some(version) = version
            {
                warn(&format!(
                    "a program sends frames of version {version} of the stores' protocol, this \
                     store reads version {STORE_VERSION}: give both the same version of lanecast"
                ));
            }
            other_version = version;
            if !arguments.quiet {
                report(&store, &mut printed, arguments.json)?;
            }
        }
        store.wait_at_most(work, LONGEST_WAIT);
    }
    store.close()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the streams that have changed.
fn report(store: &StoreServer, printed: &mut Vec<(u64, u64)>, json: bool) -> anyhow::Result<()> {
    for (index, stream) in store.streams().enumerate() {
        let now = (stream.first, stream.next);
        if printed.get(index) == Some(&now) {
            continue;
        }
        printed.resize(printed.len().max(index + 1), (u64::MAX, 0));
        printed[index] = now;
        let topic = crate::printable::printable(stream.topic);
        if json {
            print_json(&json!({
                "topic": stream.topic, "source": stream.source, "first": stream.first,
                "next": stream.next, "copying": stream.is_copying,
            }))?;
        } else {
            let copying = if stream.is_copying { ", copying from another store" } else { "" };
            print(&format!(
                "{topic} of publisher {}: {}..{}{copying}\n",
                stream.source, stream.first, stream.next
            ))?;
        }
    }
    Ok(())
}
