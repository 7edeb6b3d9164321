//! CPU use of other processes and of other virtual machines.

use super::finding::{Check, Finding};
use super::words::{joined, percent};
use crate::root::Root;
use std::collections::BTreeMap;
use std::time::Instant;

const LOAD: Check = Check::new("background-load", "background load");
const STEAL: Check = Check::new("steal", "time for other machines");

/// Ticks of `/proc/stat` and `/proc/PID/stat` in a second: USER_HZ is 100 on every Linux that
/// lanecast runs on.
const TICKS_PER_SECOND: f64 = 100.0;
/// CPUs in use by others: the lower bounds of a note and of a disturbance.
const NOTED_CPUS: f64 = 0.05;
const DISTURBING_CPUS: f64 = 0.2;
/// Shares of stolen time: the lower bounds of a note and of a disturbance.
const NOTED_STEAL: f64 = 0.001;
const DISTURBING_STEAL: f64 = 0.01;
/// Number of processes that are named.
const NAMED: usize = 3;

/// The CPU times of the machine and of its processes at one moment, in ticks since its start.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    taken: Instant,
    times: Option<Times>,
    processes: BTreeMap<u32, (String, u64)>,
}

/// CPU times of all CPUs together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    busy: u64,
    stolen: u64,
    all: u64,
}

impl Snapshot {
    pub(super) fn take(root: &Root) -> Self {
        let process = |name: String| {
            let pid: u32 = name.parse().ok()?;
            Some((pid, process_time(&root.text(&format!("proc/{pid}/stat"))?)?))
        };
        let processes = root.names("proc").into_iter().filter_map(process).collect();
        let times = root.text("proc/stat").and_then(|stat| Times::parse(&stat));
        Self { taken: Instant::now(), times, processes }
    }
}

impl Times {
    /// proc(5): user, nice, system, idle, iowait, irq, softirq, steal; guests' time is the users'.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times = line.split_whitespace().take(8).map(str::parse);
        let times: Vec<u64> = times.collect::<Result<_, _>>().ok()?;
        let sum = |which: &[usize]| {
            which.iter().filter_map(|&index| times.get(index)).copied().fold(0, u64::saturating_add)
        };
        Some(Self {
            busy: sum(&[0, 1, 2, 5, 6]),
            stolen: sum(&[7]),
            all: sum(&[0, 1, 2, 3, 4, 5, 6, 7]),
        })
    }
}

/// The name and the ticks in a process's stat line; the name may hold anything.
fn process_time(stat: &str) -> Option<(String, u64)> {
    let (front, fields) = stat.rsplit_once(')')?;
    let name = front.split_once('(')?.1.to_owned();
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((name, user.saturating_add(system)))
}

/// CPU use between two snapshots.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Load {
    /// CPUs that others kept busy.
    pub(super) busy_cpus: Option<f64>,
    /// Names of processes and the CPUs each kept busy, largest first.
    top: Vec<(String, f64)>,
}

impl Load {
    /// Between two moments; `own` is this process's number.
    pub(super) fn between(before: &Snapshot, after: &Snapshot, own: u32) -> Self {
        let seconds = (after.taken - before.taken).as_secs_f64().max(1e-3);
        let cpus = |ticks: u64| ticks as f64 / TICKS_PER_SECOND / seconds;
        let used = |pid: &u32| {
            let (_, ticks) = after.processes.get(pid)?;
            let earlier = before.processes.get(pid).map_or(0, |(_, ticks)| *ticks);
            Some(ticks.saturating_sub(earlier))
        };
        let own_ticks = used(&own).unwrap_or(0);
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (pid, (name, _)) in after.processes.iter().filter(|(pid, _)| **pid != own) {
            *by_name.entry(name).or_default() += used(pid).unwrap_or(0);
        }
        let mut top: Vec<_> = by_name
            .into_iter()
            .filter(|(_, ticks)| *ticks > 0)
            .map(|(name, ticks)| (name.to_owned(), cpus(ticks)))
            .collect();
        top.sort_by(|a, b| b.1.total_cmp(&a.1));
        let busy = before.times.zip(after.times).map(|(before, after)| {
            cpus(after.busy.saturating_sub(before.busy).saturating_sub(own_ticks))
        });
        Self { busy_cpus: busy, top }
    }

    pub(super) fn check(&self) -> Finding {
        let Some(busy) = self.busy_cpus else { return LOAD.unavailable() };
        let who = self.top.iter().take(NAMED).filter(|(_, cpus)| *cpus >= NOTED_CPUS);
        let who = who.map(|(name, cpus)| format!("{name} {cpus:.1}"));
        let who = joined(who);
        let found = match (busy < NOTED_CPUS, who.is_empty()) {
            (true, _) => return LOAD.good(format!("{busy:.2} CPUs busy")),
            (false, true) => format!("{busy:.1} CPUs busy"),
            (false, false) => format!("{busy:.1} CPUs busy: {who}"),
        };
        let finding = if busy < DISTURBING_CPUS { LOAD.note(found) } else { LOAD.disturbs(found) };
        finding
            .effect("measured threads share their CPUs and caches with it")
            .mend("stop it, or move it to another CPU: taskset -pc CPU PID")
    }
}

/// Rates the load average, which needs no measurement.
pub(super) fn check_average(root: &Root) -> Finding {
    let load = root.value::<f64>("proc/loadavg").filter(|load| load.is_finite());
    let Some(load) = load else { return LOAD.unavailable() };
    let found = format!("{load:.2} threads on average, over a minute");
    if load < DISTURBING_CPUS {
        return LOAD.good(found);
    }
    let finding = if load < 1.0 { LOAD.note(found) } else { LOAD.disturbs(found) };
    finding
        .effect("measured threads share their CPUs and caches with others")
        .mend("lanecast doctor (without --quick) names them")
}

/// Rates the time stolen by other virtual machines, between the snapshots and since the start.
pub(super) fn check_steal(before: &Snapshot, after: &Snapshot) -> Finding {
    let (Some(before), Some(now)) = (before.times, after.times) else {
        return STEAL.unavailable();
    };
    let share = |stolen: u64, all: u64| stolen as f64 / all.max(1) as f64;
    let lately =
        share(now.stolen.saturating_sub(before.stolen), now.all.saturating_sub(before.all));
    let always = share(now.stolen, now.all);
    let found = if before == now {
        format!("{} since the start", percent(always))
    } else {
        format!("{} now, {} since the start", percent(lately), percent(always))
    };
    let worst = lately.max(always);
    if worst < NOTED_STEAL {
        return STEAL.good(found);
    }
    let finding = if lately.max(always / 3.0) < DISTURBING_STEAL {
        STEAL.note(found)
    } else {
        STEAL.disturbs(found)
    };
    finding
        .effect("threads stand still while other machines run; no figure of theirs shows why")
        .mend("a machine with CPUs of its own; else measure when the neighbours are quiet")
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;
    use crate::root::tests::tree;
    use std::time::Duration;

    /// A snapshot of a made-up machine, so many milliseconds after `start`.
    fn snapshot(start: Instant, ms: u64, stat: &str, processes: &[(u32, &str, u64)]) -> Snapshot {
        let tree = tree(&[("proc/stat", stat), ("proc/self/stat", "nonsense")]);
        for (pid, name, ticks) in processes {
            let line = format!("{pid} ({name}) S 1 2 3 4 5 6 7 8 9 10 {ticks} 0 0 0");
            crate::root::tests::put(&tree, &format!("proc/{pid}/stat"), line);
        }
        let taken = start + Duration::from_millis(ms);
        Snapshot { taken, ..Snapshot::take(&Root::new(tree.path())) }
    }

    const START: &str = "cpu  1000 0 500 98400 0 50 50 0 0 0\ncpu0 1 2 3\n";

    #[test]
    fn the_busiest_are_named_and_this_process_is_not() {
        let start = Instant::now();
        let before =
            snapshot(start, 0, START, &[(7, "doctor", 10), (8, "cc) (1", 100), (9, "ld", 5)]);
        // In half a second: 50 ticks of cc, 10 of a second ld, 30 of this process.
        let later = "cpu  1080 0 510 98410 0 50 50 0 0 0\n";
        let processes = [(7, "doctor", 40), (8, "cc) (1", 150), (9, "ld", 5), (10, "ld", 10)];
        let after = snapshot(start, 500, later, &processes);
        let load = Load::between(&before, &after, 7);
        assert!((load.busy_cpus.unwrap() - 1.2).abs() < 1e-9, "{load:?}");
        let found = load.check();
        assert_eq!(found.found, "1.2 CPUs busy: cc) (1 1.0, ld 0.2");
        assert_eq!(found.state, State::Disturbs);
    }

    #[test]
    fn a_quiet_machine_is_good_and_a_silent_one_unknown() {
        let start = Instant::now();
        let quiet = snapshot(start, 0, START, &[]);
        let load = Load::between(&quiet, &snapshot(start, 500, START, &[]), 7);
        assert_eq!(load.check().state, State::Good);
        assert_eq!(check_steal(&quiet, &quiet).state, State::Good);
        let silent = snapshot(start, 0, "intr 7\n", &[]);
        assert_eq!(Load::between(&silent, &silent, 7).check().state, State::Unknown);
        assert_eq!(check_steal(&silent, &silent).state, State::Unknown);
    }

    #[test]
    fn stolen_time_is_reported_for_now_and_since_the_start() {
        let start = Instant::now();
        let before = snapshot(start, 0, START, &[]);
        let after = snapshot(start, 0, "cpu  1000 0 500 98490 0 50 50 10 0 0\n", &[]);
        let found = check_steal(&before, &after);
        assert_eq!(found.found, "10.0 % now, under 0.01 % since the start");
        assert_eq!(found.state, State::Disturbs);
        assert_eq!(check_steal(&after, &after).state, State::Good);
        let much = snapshot(start, 0, "cpu  1000 0 500 97600 0 50 50 2000 0 0\n", &[]);
        assert_eq!(check_steal(&much, &much).state, State::Note);
    }

    #[test]
    fn the_average_alone_is_judged_without_measuring() {
        let state =
            |load: &str| check_average(&Root::new(tree(&[("proc/loadavg", load)]).path())).state;
        assert_eq!(
            ["0.10 1 1", "0.5", "3.2", "NaN", ""].map(state),
            [State::Good, State::Note, State::Disturbs, State::Unknown, State::Unknown]
        );
    }
}
