//! Which tests may run beside which, and how many threads each program gets.

use super::build::Program;

/// Tests that never run beside others of the same group.
struct Rule {
    package: &'static str,
    /// Beginning of the tests' names; everything if empty.
    tests: &'static str,
    group: &'static str,
    /// Whether they run beside each other.
    beside_itself: bool,
}

/// Programs that measure time by killing and stopping others, or cut cables between namespaces.
const RULES: [Rule; 3] = [
    Rule {
        package: "lanecast-conformance",
        tests: "processes::",
        group: "killers",
        beside_itself: false,
    },
    Rule {
        package: "lanecast-group",
        tests: "processes::",
        group: "killers",
        beside_itself: false,
    },
    // Each in namespaces of its own; they mostly wait.
    Rule { package: "lanecast-system-tests", tests: "", group: "killers", beside_itself: true },
];

/// Packages whose tests mostly wait for sockets, disks and programs that they start.
const WAITING: [&str; 7] = [
    "lanecast-broker",
    "lanecast-cli",
    "lanecast-client",
    "lanecast-content",
    "lanecast-group",
    "lanecast-journal",
    "lanecast-net",
];

/// Packages whose tests build thousands of worlds, and free each: giving the memory back to the
/// system would be a tenth of their time.
const WORLDS: [&str; 1] = ["lanecast-sim"];

/// Threads for each CPU in a program whose tests mostly wait.
const THREADS_THAT_WAIT: usize = 3;

/// Part of a program's tests.
#[derive(Debug, PartialEq)]
pub(crate) struct Part {
    /// Arguments that select the tests.
    pub(crate) arguments: Vec<String>,
    /// Which others may not run beside them.
    pub(crate) group: Option<&'static str>,
}

/// The parts of `program`'s tests on a machine of `cpus`.
pub(crate) fn parts(program: &Program, cpus: usize) -> Vec<Part> {
    let package = program.package.as_str();
    let is_unit = program.target != "all" && package != "lanecast-system-tests";
    let rules = RULES.iter().filter(|rule| rule.package == package && !is_unit);
    let mut parts = Vec::new();
    let waits = WAITING.contains(&package);
    let threads = match (program.is_of_models, waits) {
        (true, _) => 1,
        (false, true) => cpus * THREADS_THAT_WAIT,
        (false, false) => cpus,
    };
    let mut rest = vec![format!("--test-threads={threads}")];
    let mut is_left = true;
    for rule in rules {
        let threads = if rule.beside_itself { cpus } else { 1 };
        let mut arguments = vec![format!("--test-threads={threads}")];
        if rule.tests.is_empty() {
            is_left = false;
        } else {
            arguments.push(rule.tests.to_owned());
            rest.extend(["--skip".to_owned(), rule.tests.to_owned()]);
        }
        parts.push(Part { arguments, group: Some(rule.group) });
    }
    if is_left {
        parts.push(Part { arguments: rest, group: None });
    }
    parts
}

/// Whether memory that the tests of `package` free is kept for the next.
pub(crate) fn keeps_memory(package: &str) -> bool {
    WORLDS.contains(&package)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(package: &str, target: &str) -> Vec<String> {
        let (package, target) = (package.to_owned(), target.to_owned());
        let (path, directory) = ("p".into(), "d".into());
        let is_of_models = target == "models";
        let program = Program { package, target, path, directory, is_of_models };
        parts(&program, 2).iter().map(|part| part.arguments.join(" ")).collect()
    }

    #[test]
    fn each_test_is_in_exactly_one_part() {
        assert_eq!(arguments("lanecast-ring", "all"), ["--test-threads=2"]);
        assert_eq!(arguments("lanecast-cli", "all"), ["--test-threads=6"]);
        assert_eq!(arguments("lanecast-ring", "models"), ["--test-threads=1"]);
        assert_eq!(
            arguments("lanecast-conformance", "all"),
            ["--test-threads=1 processes::", "--test-threads=2 --skip processes::"]
        );
        assert_eq!(arguments("lanecast-conformance", "lanecast_conformance").len(), 1);
        assert_eq!(arguments("lanecast-system-tests", "transports"), ["--test-threads=2"]);
    }
}
