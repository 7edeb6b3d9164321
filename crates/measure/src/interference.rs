//! Interference with a run: the time that other threads and other virtual machines took from the
//! measured thread.

use crate::names::named;
use crate::pinning::Cpus;
use crate::real_time::LONGEST;
use serde::Serialize;
use std::fs;
use std::time::Instant;

/// Nanoseconds in a tick of `/proc/stat`: USER_HZ is 100 on every Linux that lanecast runs on.
const STAT_TICK_NS: u64 = 10_000_000;
/// Share of lost time beyond which averages and high percentiles show the machine rather than
/// lanecast.
const DOUBTFUL_PERCENT: f64 = 1.0;
/// Involuntary switches a second beyond which tails are doubtful even if little time is lost: at
/// some 20 us each, one message in a thousand meets one.
const DOUBTFUL_SWITCHES_PER_SECOND: f64 = 50.0;
/// The gap beyond which the maximum shows the machine: no interrupt takes that long.
const DOUBTFUL_GAP_NS: u64 = 1_000_000;
/// With this number of threads more than CPUs, threads take turns. One thread above the CPUs is
/// left behind by a previous run that used all of them.
const DOUBTFUL_LOAD_BEYOND_CPUS: f64 = 1.0;

/// The counters of the calling thread and its host at one moment.
#[derive(Clone, Debug)]
pub struct CounterSnapshot {
    taken: Instant,
    cpu: Option<usize>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    involuntary_switches: Option<u64>,
    voluntary_switches: Option<u64>,
    waited_ns: Option<u64>,
    stolen_ns: Option<u64>,
}

named! {
    /// The time at which gaps between clock readings were watched.
    pub enum Watched: "time" {
        /// During the measured part, by the readings of a thread that waits for its schedule.
        During = "during",
        /// Just before and just after the measured part.
        Around = "around",
    }
}

impl CounterSnapshot {
    /// Reads the counters, with the stolen time of `cpu` or of the whole host.
    pub fn take(cpu: Option<usize>) -> Self {
        Self { taken: Instant::now(), cpu, counters: Counters::read(cpu) }
    }

    /// Interference with the calling thread since this snapshot.
    pub fn since(&self) -> Interference {
        let elapsed_ns = u64::try_from(self.taken.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = Counters::read(self.cpu);
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let then = &self.counters;
        Interference::new(
            elapsed_ns,
            Counters {
                involuntary_switches: grown(now.involuntary_switches, then.involuntary_switches),
                voluntary_switches: grown(now.voluntary_switches, then.voluntary_switches),
                waited_ns: grown(now.waited_ns, then.waited_ns),
                stolen_ns: grown(now.stolen_ns, then.stolen_ns),
            },
        )
    }
}

impl Counters {
    fn read(cpu: Option<usize>) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let status = read("/proc/thread-self/status");
        Self {
            involuntary_switches: labelled(&status, "nonvoluntary_ctxt_switches:"),
            voluntary_switches: labelled(&status, "voluntary_ctxt_switches:"),
            waited_ns: waited(&read("/proc/thread-self/schedstat")),
            stolen_ns: stolen(&read("/proc/stat"), cpu),
        }
    }
}

/// The machine's load average over the last minute.
pub(crate) fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

fn labelled(status: &str, label: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(label))?.trim().parse().ok()
}

/// The second number: nanoseconds in which the thread could have run, but another one did.
fn waited(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// The eighth number of the CPU's line: time in which the host ran other machines.
fn stolen(stat: &str, cpu: Option<usize>) -> Option<u64> {
    let label = cpu.map_or_else(|| "cpu".to_owned(), |cpu| format!("cpu{cpu}"));
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&label))?;
    line.split_whitespace().nth(8)?.parse::<u64>().ok()?.checked_mul(STAT_TICK_NS)
}

/// Interference with a measured thread. Members that the system does not provide are absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interference {
    /// Time between the two readings of the counters.
    pub elapsed_ns: u64,
    /// Involuntary context switches of the thread.
    pub involuntary_switches: Option<u64>,
    /// Voluntary context switches.
    pub voluntary_switches: Option<u64>,
    /// Time the thread was runnable while another one had the CPU.
    pub waited_ns: Option<u64>,
    /// Time the CPU (without pinning: all CPUs together) was given to other virtual machines, in
    /// steps of 10 ms.
    pub stolen_ns: Option<u64>,
    /// Longest gap between clock readings of a thread that does nothing else.
    pub longest_gap_ns: Option<u64>,
    /// Time at which gaps were watched.
    pub gap_watched: Option<Watched>,
    /// Reasons to doubt the figures; empty for a quiet run.
    pub doubts: Vec<String>,
}

impl Interference {
    fn new(elapsed_ns: u64, counters: Counters) -> Self {
        let mut found = Self {
            elapsed_ns,
            involuntary_switches: counters.involuntary_switches,
            voluntary_switches: counters.voluntary_switches,
            waited_ns: counters.waited_ns,
            stolen_ns: counters.stolen_ns,
            longest_gap_ns: None,
            gap_watched: None,
            doubts: Vec::new(),
        };
        let [waited, interrupted] = found.turns();
        let stolen = found.share(found.stolen_ns);
        let stolen = stolen.map(|s| format!("{s:.1} % of the time went to other virtual machines"));
        found.doubts.extend([waited, stolen, interrupted].into_iter().flatten());
        found
    }

    /// Share of `ns` in per cent, if large enough for a doubt.
    fn share(&self, ns: Option<u64>) -> Option<f64> {
        let percent = 100.0 * ns? as f64 / self.elapsed_ns.max(1) as f64;
        (percent >= DOUBTFUL_PERCENT).then_some(percent)
    }

    /// Doubts because other threads had the CPU: waiting time and involuntary switches.
    fn turns(&self) -> [Option<String>; 2] {
        let waited = self.share(self.waited_ns);
        let per_second = |count: u64| count as f64 * 1e9 / self.elapsed_ns.max(1) as f64;
        let interrupted = self
            .involuntary_switches
            .filter(|count| *count > 2)
            .map(per_second)
            .filter(|rate| *rate >= DOUBTFUL_SWITCHES_PER_SECOND);
        [
            waited.map(|s| format!("{s:.1} % of the time went to other threads on the CPU")),
            interrupted.map(|rate| format!("the thread was interrupted {rate:.0} times a second")),
        ]
    }

    /// Removes these doubts where the other threads are measured, too: the figure includes their
    /// turns.
    pub(crate) fn remove_turns(&mut self) {
        let turns = self.turns();
        self.doubts.retain(|doubt| !turns.iter().flatten().any(|turn| turn == doubt));
    }

    /// Adds the longest gap between clock readings.
    pub(crate) fn set_gap(&mut self, longest_ns: u64, watched: Watched) {
        self.longest_gap_ns = Some(longest_ns);
        self.gap_watched = Some(watched);
        if longest_ns >= DOUBTFUL_GAP_NS {
            let when = match watched {
                Watched::During => "",
                Watched::Around => ", just before or after",
            };
            self.doubts.push(format!(
                "a thread that only read the clock was held up for {:.1} ms{when}",
                longest_ns as f64 / 1e6
            ));
        }
    }

    /// Adds doubts about the CPU: a thread without pinning, and other programs (`load` is the load
    /// average).
    pub(crate) fn doubt_cpu(&mut self, cpus: &Cpus, load: Option<f64>) {
        if cpus.pinned.is_none() {
            self.doubts.push("the thread was not kept on one CPU (see -a)".to_owned());
        }
        let online = cpus.online;
        if let Some(load) = load.filter(|l| *l >= online as f64 + DOUBTFUL_LOAD_BEYOND_CPUS) {
            self.doubts.push(format!(
                "the machine was busy before: {load:.1} threads on average wanted to run on \
                 {online} CPUs"
            ));
        }
    }

    /// Adds a doubt that the real-time priority ended before the measured part.
    pub(crate) fn doubt_short_real_time(&mut self) {
        let ms = LONGEST.as_millis();
        self.doubts.push(format!("the thread ran in real time for the first {ms} ms only"));
    }

    /// Adds a doubt if there are more measured threads than CPUs.
    pub(crate) fn doubt_shared_cpus(&mut self, threads: usize, online: usize) {
        if threads > online {
            let cpus = if online == 1 { "1 CPU".to_owned() } else { format!("{online} CPUs") };
            let doubt = format!("{threads} measured threads take turns on {cpus}");
            self.doubts.push(doubt);
        }
    }

    /// Summary of the doubts in words.
    pub fn verdict(&self) -> String {
        if self.doubts.is_empty() {
            return "quiet".to_owned();
        }
        format!("doubtful: {}; judge by min, p50 and p90", self.doubts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pinning::PinChoice;

    const STAT: &str = "cpu  11 2 3 4 5 6 7 8 9 0\ncpu0 1 1 1 1 1 1 1 3 0 0\n\
                        cpu1 1 1 1 1 1 1 1 5 0 0\ncpu10 1 1 1 1 1 1 1 9 0 0\nintr 1\n";

    const PINNED: Cpus = Cpus { pinned: Some(1), choice: PinChoice::Given, ran_on: 1, online: 2 };

    #[test]
    fn counters_are_found_in_the_system_s_files() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(labelled(status, "voluntary_ctxt_switches:"), Some(12));
        assert_eq!(labelled(status, "nonvoluntary_ctxt_switches:"), Some(7));
        assert_eq!(waited("542459 1234 1\n"), Some(1234));
        assert_eq!(stolen(STAT, None), Some(8 * STAT_TICK_NS));
        assert_eq!(stolen(STAT, Some(1)), Some(5 * STAT_TICK_NS));
        assert_eq!(stolen(STAT, Some(2)), None);
        assert_eq!((labelled("", "x"), waited(""), stolen("", None)), (None, None, None));
    }

    #[test]
    fn a_quiet_run_is_called_quiet() {
        let quiet = Counters {
            involuntary_switches: Some(2),
            voluntary_switches: Some(1000),
            waited_ns: Some(9_000_000),
            stolen_ns: Some(0),
        };
        assert_eq!(Interference::new(1_000_000_000, quiet).verdict(), "quiet");
        assert_eq!(Interference::new(1_000_000_000, Counters::default()).verdict(), "quiet");
    }

    #[test]
    fn each_disturbance_is_named() {
        let busy = Counters {
            involuntary_switches: Some(250),
            voluntary_switches: Some(0),
            waited_ns: Some(455_000_000),
            stolen_ns: Some(30_000_000),
        };
        let mut found = Interference::new(1_000_000_000, busy);
        found.set_gap(4_060_000, Watched::Around);
        assert_eq!(found.doubts.len(), 4);
        found.doubt_cpu(&Cpus { pinned: None, ..PINNED }, Some(3.04));
        found.doubt_shared_cpus(3, 2);
        assert_eq!(found.doubts.len(), 7);
        let verdict = found.verdict();
        for part in [
            "doubtful",
            "45.5 %",
            "other threads",
            "3.0 %",
            "virtual",
            "250 times",
            "held up for 4.1 ms, just before or after",
            "not kept on one CPU",
            "3.0 threads on average",
            "3 measured threads take turns on 2 CPUs",
        ] {
            assert!(verdict.contains(part), "{part}: {verdict}");
        }
    }

    #[test]
    fn turns_that_measured_threads_take_are_no_doubt() {
        let counters = Counters {
            involuntary_switches: Some(500),
            waited_ns: Some(500_000_000),
            stolen_ns: Some(20_000_000),
            ..Counters::default()
        };
        let mut found = Interference::new(1_000_000_000, counters);
        assert_eq!(found.doubts.len(), 3);
        found.remove_turns();
        assert_eq!(found.doubts, ["2.0 % of the time went to other virtual machines"]);
    }

    #[test]
    fn a_machine_in_use_by_the_run_alone_is_no_doubt() {
        let mut found = Interference::new(1_000_000_000, Counters::default());
        found.set_gap(DOUBTFUL_GAP_NS - 1, Watched::During);
        found.doubt_cpu(&PINNED, Some(2.9));
        found.doubt_cpu(&PINNED, None);
        found.doubt_shared_cpus(2, 2);
        assert_eq!(found.verdict(), "quiet");
        assert_eq!(
            (found.longest_gap_ns, found.gap_watched),
            (Some(999_999), Some(Watched::During))
        );
    }

    #[test]
    fn this_thread_s_counters_grow() {
        let baseline = CounterSnapshot::take(None);
        std::thread::yield_now();
        let found = baseline.since();
        assert!(found.elapsed_ns > 0 && found.involuntary_switches.is_some());
    }
}
