//! Do the checks notice a weakened memory ordering? Weakens one after the other and looks.

pub(crate) mod check;
mod regions;
mod surgery;

use crate::metadata::Metadata;
use crate::source::Source;
use crate::tree::Tree;
use anyhow::{Context, Result, bail};
use check::{Check, Outcome};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};
use surgery::Mutation;

/// The sources whose orderings are weakened, and the models that must notice; the first that fits
/// counts.
const MODELS: [(&str, &str); 9] = [
    ("crates/base/src/", "-p lanecast-ring --lib rings::loom::sleeping"),
    ("crates/os/src/biased", "-p lanecast-os --lib biased::loom"),
    ("crates/ring/src/bytes/", "-p lanecast-ring --lib bytes::loom"),
    ("crates/ring/src/handlers/", "-p lanecast-ring --lib handlers::loom"),
    ("crates/ring/src/pipe/", "-p lanecast-ring --lib pipe::loom"),
    ("crates/ring/src/signal/", "-p lanecast-ring --lib signal::loom"),
    ("crates/ring/src/", "-p lanecast-ring --lib rings::loom"),
    ("crates/shm/src/", "-p lanecast-shm --lib loom"),
    ("crates/transport/src/topic_selection", "-p lanecast-shm --lib loom::room"),
];

/// Pairs that are left alone, and why.
const SKIPPED: [(&str, &str); 5] = [
    ("asleep-wakes", "orders a load before an exchange, which loom never runs the other way"),
    ("watch-ended", "lets an exchange that fails see what is newest, which loom always does"),
    ("runner-stop", "a flag that guards no other data, between threads of the standard library"),
    ("pollset-sleep", "orders a load before an exchange, which loom never runs the other way"),
    ("socket-summary", "orders exchanges of two words, which loom always runs in this order"),
];

/// Options of the command line.
#[derive(Debug)]
pub(crate) struct Options {
    list: bool,
    pair: Option<String>,
    check: Option<String>,
    timeout: Duration,
}

impl Options {
    /// Reads the words after the verb.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options =
            Self { list: false, pair: None, check: None, timeout: Duration::from_secs(600) };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value =
                || words.next().cloned().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--list" => options.list = true,
                "--pair" => options.pair = Some(value()?),
                "--check" => options.check = Some(value()?),
                "--timeout-s" => {
                    let seconds = value()?.parse().context("--timeout-s needs whole seconds")?;
                    options.timeout = Duration::from_secs(seconds);
                }
                _ => bail!("'{word}' is no option of mutate-orderings"),
            }
        }
        Ok(options)
    }

    /// The check that must notice what is weakened in the file at `path`; `None` if nothing is.
    fn check_of(&self, path: &str) -> Option<String> {
        let (_, models) = MODELS.iter().find(|(prefix, _)| path.starts_with(prefix))?;
        let by_models = || format!("RUSTFLAGS=\"--cfg loom\" cargo test --release {models}");
        Some(self.check.clone().unwrap_or_else(by_models))
    }

    fn is_under_loom(&self) -> bool {
        self.check.as_ref().is_none_or(|check| check.contains("--cfg loom"))
    }
}

/// Runs the check on every mutation and prints a table; returns whether all were noticed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let root = Metadata::of_workspace()?.workspace_root;
    let tree = Tree::open(&root)?;
    let mutations = plan(&tree, options);
    if mutations.is_empty() {
        bail!("there is nothing to weaken: no PAIRS comment of that name governs an ordering");
    }
    if options.list {
        for Planned { mutation, reason, .. } in &mutations {
            println!("{}", row(mutation, reason.as_deref().unwrap_or("would be weakened")));
        }
        return Ok(true);
    }
    let copy = tempfile::tempdir().context("no temporary directory can be made")?;
    copy_tree(&tree, copy.path())?;
    let check = Check {
        directory: copy.path(),
        target: &root.join("target/mutants"),
        timeout: options.timeout,
    };
    let tried = mutations.iter().filter(|planned| planned.reason.is_none());
    let commands: BTreeSet<&str> = tried.map(|planned| planned.command.as_str()).collect();
    for command in &commands {
        eprintln!("without any mutation: {command}");
        check.must_pass(command)?;
    }
    let verdicts = weaken_all(&mutations, &check)?;
    // Else what failed was not the mutations.
    for command in &commands {
        check.must_pass(command).context("with all mutations taken back")?;
    }
    for (line, _) in &verdicts {
        println!("{line}");
    }
    let (bad, skipped) = (
        verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Bad).count(),
        verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Skipped).count(),
    );
    let caught = verdicts.len() - bad - skipped;
    println!("mutate-orderings: {caught} caught, {bad} not caught, {skipped} skipped");
    Ok(bad == 0)
}

/// A mutation to be tried.
struct Planned {
    /// The file's text.
    text: String,
    mutation: Mutation,
    /// The check that must notice.
    command: String,
    /// Why it is not tried, if so.
    reason: Option<String>,
}

fn plan(tree: &Tree, options: &Options) -> Vec<Planned> {
    let sources: Vec<Source> = tree
        .rust_files()
        .filter(|path| options.check_of(path).is_some())
        .filter_map(|path| Some(Source::new(path, tree.text(path)?)))
        .collect();
    let under_loom = options.is_under_loom();
    let unseen = regions::unseen_files(&sources, under_loom);
    let mut planned = Vec::new();
    for source in sources {
        let Some(command) = options.check_of(&source.path) else { continue };
        let excluded =
            regions::Excluded::of(&source, under_loom, unseen.get(&source.path).copied());
        for mutation in surgery::mutations(&source) {
            if options.pair.as_ref().is_some_and(|pair| !mutation.names.contains(pair)) {
                continue;
            }
            let listed = SKIPPED.iter().find(|(name, _)| mutation.names.iter().any(|n| n == name));
            let reason = listed.map(|(_, reason)| *reason).or_else(|| excluded.reason(&mutation));
            let reason = reason.map(|reason| format!("skipped: {reason}"));
            let (text, command) = (source.text.clone(), command.clone());
            planned.push(Planned { text, mutation, command, reason });
        }
    }
    planned
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Caught,
    Bad,
    Skipped,
}

fn weaken_all(mutations: &[Planned], check: &Check<'_>) -> Result<Vec<(String, Verdict)>> {
    let mut verdicts = Vec::new();
    for (number, planned) in mutations.iter().enumerate() {
        let Planned { text, mutation, command, reason } = planned;
        if let Some(reason) = reason {
            verdicts.push((row(mutation, reason), Verdict::Skipped));
            continue;
        }
        let path = check.directory.join(&mutation.path);
        std::fs::write(&path, mutation.apply(text)).context("the copy is not writable")?;
        let start = Instant::now();
        let outcome = check.run(command)?;
        std::fs::write(&path, text).context("the copy is not writable")?;
        let (word, verdict) = judge(&outcome);
        let line = row(mutation, &format!("{word} ({:.0} s)", start.elapsed().as_secs_f64()));
        eprintln!("{}/{} {line}", number + 1, mutations.len());
        verdicts.push((line, verdict));
    }
    Ok(verdicts)
}

fn judge(outcome: &Outcome) -> (&'static str, Verdict) {
    match outcome {
        Outcome::Passed { .. } => ("SURVIVED", Verdict::Bad),
        Outcome::Failed { .. } => ("caught", Verdict::Caught),
        Outcome::TimedOut => ("caught: no end", Verdict::Caught),
        Outcome::NotCompiled { .. } => ("DOES NOT COMPILE", Verdict::Bad),
    }
}

fn row(mutation: &Mutation, verdict: &str) -> String {
    let place = format!("{}:{}", mutation.path, mutation.line);
    format!("{:<24} {place:<36} {:<28} {verdict}", mutation.names.join("+"), mutation.what)
}

fn copy_tree(tree: &Tree, to: &Path) -> Result<()> {
    for name in tree.files() {
        let target = to.join(name);
        let directory = target.parent().context("a file without a directory")?;
        std::fs::create_dir_all(directory)?;
        std::fs::copy(tree.root().join(name), &target)
            .with_context(|| format!("{name} cannot be copied"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options> {
        Options::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let options = parse("--pair ring-tail --timeout-s 5 --check true --list").expect("valid");
        assert_eq!(options.pair.as_deref(), Some("ring-tail"));
        assert_eq!((options.check.as_deref(), options.timeout.as_secs()), (Some("true"), 5));
        assert!(options.list);
        assert_eq!(parse("").expect("valid").check, None);
        assert!(parse("--pair").is_err() && parse("--timeout-s soon").is_err());
        assert!(parse("ring-tail").is_err());
    }

    #[test]
    fn each_source_has_its_models() {
        let check_of = |options: &str, path: &str| parse(options).expect("valid").check_of(path);
        let ends = |path: &str, models: &str| {
            assert!(check_of("", path).expect("a subject").ends_with(models), "{path}");
        };
        ends("crates/ring/src/pipe/writer.rs", "-p lanecast-ring --lib pipe::loom");
        ends("crates/ring/src/cursor.rs", "-p lanecast-ring --lib rings::loom");
        ends("crates/shm/src/memory.rs", "-p lanecast-shm --lib loom");
        assert_eq!(check_of("--check true", "crates/shm/src/memory.rs").as_deref(), Some("true"));
        assert_eq!(check_of("--check true", "crates/cli/src/main.rs"), None);
    }

    #[test]
    fn only_a_failing_check_has_noticed() {
        let output = String::new;
        assert_eq!(judge(&Outcome::Passed { output: output() }).1, Verdict::Bad);
        assert_eq!(judge(&Outcome::NotCompiled { output: output() }).1, Verdict::Bad);
        assert_eq!(judge(&Outcome::Failed { output: output() }).1, Verdict::Caught);
        assert_eq!(judge(&Outcome::TimedOut).1, Verdict::Caught);
    }
}
