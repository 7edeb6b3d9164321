//! Do the checks notice a weakened memory ordering? Weakens one after the other and looks.

mod check;
mod regions;
mod surgery;

use crate::metadata::Metadata;
use crate::source::Source;
use crate::tree::Tree;
use anyhow::{Context, Result, bail};
use check::{Check, Outcome};
use std::path::Path;
use std::time::{Duration, Instant};
use surgery::Mutation;

/// The crates whose orderings are weakened.
const SUBJECTS: [&str; 3] = ["crates/base/src/", "crates/ring/src/", "crates/shm/src/"];

/// The check that must notice.
const CHECK: &str = "RUSTFLAGS=\"--cfg loom\" cargo test --release \
                     -p lanecast-ring -p lanecast-shm --lib --no-fail-fast loom";

/// Pairs that are left alone, and why.
const SKIPPED: [(&str, &str); 3] = [
    ("runner-stop", "a flag that guards no other data, between threads of the standard library"),
    ("pollset-sleep", "orders a load before an exchange, which loom never runs the other way"),
    ("socket-summary", "orders exchanges of two words, which loom always runs in this order"),
];

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Options {
    list: bool,
    pair: Option<String>,
    check: String,
    timeout: Duration,
}

impl Options {
    /// Reads the words after the verb.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            list: false,
            pair: None,
            check: CHECK.to_owned(),
            timeout: Duration::from_secs(600),
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value =
                || words.next().cloned().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--list" => options.list = true,
                "--pair" => options.pair = Some(value()?),
                "--check" => options.check = value()?,
                "--timeout-s" => {
                    let seconds = value()?.parse().context("--timeout-s needs whole seconds")?;
                    options.timeout = Duration::from_secs(seconds);
                }
                _ => bail!("'{word}' is no option of mutate-orderings"),
            }
        }
        Ok(options)
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
        for (_, mutation, reason) in &mutations {
            println!("{}", row(mutation, reason.as_deref().unwrap_or("would be weakened")));
        }
        return Ok(true);
    }
    let copy = tempfile::tempdir().context("no temporary directory can be made")?;
    copy_tree(&tree, copy.path())?;
    let check = Check {
        command: &options.check,
        directory: copy.path(),
        target: &root.join("target/mutants"),
        timeout: options.timeout,
    };
    eprintln!("without any mutation: {}", options.check);
    check.must_pass()?;
    let verdicts = weaken_all(&mutations, &check)?;
    // Else what failed was not the mutations.
    check.must_pass().context("with all mutations taken back")?;
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

/// A file's text, a mutation of it, and the reason if it is not to be tried.
type Planned = (String, Mutation, Option<String>);

fn plan(tree: &Tree, options: &Options) -> Vec<Planned> {
    let is_subject = |path: &&str| SUBJECTS.iter().any(|subject| path.starts_with(subject));
    let sources: Vec<Source> = tree
        .rust_files()
        .filter(is_subject)
        .filter_map(|path| Some(Source::new(path, tree.text(path)?)))
        .collect();
    let under_loom = options.check.contains("--cfg loom");
    let unseen = regions::unseen_files(&sources, under_loom);
    let mut planned = Vec::new();
    for source in sources {
        let excluded =
            regions::Excluded::of(&source, under_loom, unseen.get(&source.path).copied());
        for mutation in surgery::mutations(&source) {
            if options.pair.as_ref().is_some_and(|pair| !mutation.names.contains(pair)) {
                continue;
            }
            let listed = SKIPPED.iter().find(|(name, _)| mutation.names.iter().any(|n| n == name));
            let reason = listed.map(|(_, reason)| *reason).or_else(|| excluded.reason(&mutation));
            let reason = reason.map(|reason| format!("skipped: {reason}"));
            planned.push((source.text.clone(), mutation, reason));
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
    for (number, (text, mutation, reason)) in mutations.iter().enumerate() {
        if let Some(reason) = reason {
            verdicts.push((row(mutation, reason), Verdict::Skipped));
            continue;
        }
        let path = check.directory.join(&mutation.path);
        std::fs::write(&path, mutation.apply(text)).context("the copy is not writable")?;
        let start = Instant::now();
        let outcome = check.run()?;
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
        assert_eq!((options.check.as_str(), options.timeout.as_secs()), ("true", 5));
        assert!(options.list);
        assert_eq!(parse("").expect("valid").check, CHECK);
        assert!(parse("--pair").is_err() && parse("--timeout-s soon").is_err());
        assert!(parse("ring-tail").is_err());
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
