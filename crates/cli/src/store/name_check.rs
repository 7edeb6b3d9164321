//! The check that no other store has the name of the one that starts: publishers and subscribers
//! could not tell the two apart.

use super::places::places;
use anyhow::bail;
use lanecast::Context;
use lanecast::persistence::StoreInspection;
use lanecast_stats::{Role, StatsReport, StatsSnapshot};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest wait for the answer of a store that runs on this host, which may be busy.
const HERE: Duration = Duration::from_secs(10);
/// Longest wait for the answer of a store on another host, which may not be there.
const ELSEWHERE: Duration = Duration::from_secs(1);
/// Time after which the store of this host may have ended.
const LOOK: Duration = Duration::from_millis(500);

/// Checks that no store with this name answers, until `stop` is true at most.
///
/// Stores of this host are known by their counters, so shared memory alone costs no time. Between
/// hosts only an answer tells: one that does not come in time, or from a store that starts at the
/// same moment, does not count.
pub(super) fn check(
    context: &Context,
    name: &str,
    stop: impl Fn() -> bool + Clone + Send + Sync + 'static,
) -> anyhow::Result<()> {
    let config = context.config();
    let mut here = running(&config.shm.directory, name)?;
    if here.is_none() && config.transports.kind().is_none() {
        return Ok(());
    }
    let mut administrator = context.store_administrator(&[name])?;
    administrator.stop_when(stop.clone());
    let start = Instant::now();
    let mut has_answered = false;
    while !has_answered && !stop() {
        let time = if here.is_some() { HERE } else { ELSEWHERE };
        let left = time.saturating_sub(start.elapsed());
        if left.is_zero() {
            // A silent one of this host takes part in another network.
            return Ok(());
        }
        has_answered = administrator.inspect(left.min(LOOK)).iter().any(is_there);
        if !has_answered {
            here = running(&config.shm.directory, name)?;
        }
    }
    if !has_answered {
        return Ok(());
    }
    let holder = here.map_or_else(
        || "on another host, or in another domain of this one".to_owned(),
        |it| format!("process {} of this host", it.process.pid),
    );
    bail!(
        "a store with the name {name} runs already ({holder}), and answers by {}: publishers and \
         subscribers could not tell the two apart. Give this one another name, or end the other \
         one first",
        places(config)
    )
}

const fn is_there(store: &StoreInspection) -> bool {
    store.incarnation.is_some() || store.other_version.is_some()
}

/// The store of this host that runs under a name.
fn running(directory: &Path, name: &str) -> anyhow::Result<Option<StatsReport>> {
    let is_it = |it: &StatsReport| it.is_alive && it.role == Role::Store && it.address == name;
    Ok(StatsSnapshot::take(directory)?.reports.into_iter().find(is_it))
}
