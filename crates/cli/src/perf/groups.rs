//! The experiments in groups, as `perf --help` and `perf list` show them.

/// A title, and the names of its experiments with a line about each.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

const GROUPS: [Group; 6] = [
    (
        "Between threads of one process",
        &[
            ("pipes", "two threads through pipes, beside local sockets"),
            ("rings", "threads through rings of every shape"),
        ],
    ),
    (
        "Shared memory and hosts, one program each (--transport shm, rm, ru, tcp)",
        &[
            ("pub", "publish at a rate, or flat out, and say how fast that was"),
            ("sub", "count messages, check their order, measure their latency"),
            ("ping", "round trips of messages that are sent on a schedule"),
            ("pong", "send a ping's messages back"),
        ],
    ),
    (
        "Content server",
        &[("fanout", "bursts from a few publishers to many subscribers with filters")],
    ),
    ("Groups", &[("group", "every member receives the messages of all senders")]),
    (
        "Floors of this machine",
        &[
            ("floor", "bare UDP and TCP sockets, the limit of any protocol over them"),
            ("jitter", "interruptions of a spinning thread"),
        ],
    ),
    (
        "Whole series, beside published reference figures",
        &[
            ("smx-report", "every experiment of the SMX document"),
            ("lat-report", "the streaming tests of the UM latency document"),
            ("persist-report", "the UM throughput document's series, with and without stores"),
            ("group-report", "members and sizes of the JGroups document"),
        ],
    ),
];

/// Width of the names.
const NAMES: usize = 14;

/// The groups as text, without an end of the last line.
pub(crate) fn text() -> String {
    let group = |(title, experiments): &Group| {
        let lines = experiments.iter().map(|(name, about)| format!("\n  {name:<NAMES$}  {about}"));
        format!("{title}:{}", lines.collect::<String>())
    };
    GROUPS.iter().map(group).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::PerfCommand;
    use clap::Subcommand;

    #[test]
    fn each_experiment_is_in_one_group() {
        let command = PerfCommand::augment_subcommands(clap::Command::new("perf"));
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        let mut names: Vec<_> = shown.map(clap::Command::get_name).collect();
        names.retain(|name| *name != "list");
        let mut grouped: Vec<_> =
            GROUPS.iter().flat_map(|group| group.1).map(|experiment| experiment.0).collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, names);
        assert!(text().lines().all(|line| line.len() <= 80), "{}", text());
    }
}
