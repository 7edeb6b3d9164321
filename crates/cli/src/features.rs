//! `docs/features.md` read as a table: its counts are those of its rows. Each command that it and
//! `docs/threat-model.md` show is one that this tree understands.
//!
//! Nothing is run. A command of `lanecast` goes through the program's own command line, a test must
//! be of a crate and of a module or function that is there, an example, a bench, a target of make
//! and a script must exist.

use crate::Arguments;
use clap::Parser;
use clap::error::ErrorKind;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const STATES: [&str; 3] = ["works", "partly", "not yet"];

/// One row of an area's table.
#[derive(Debug)]
struct Row {
    line: usize,
    area: String,
    feature: String,
    state: String,
    command: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/features.md")).unwrap()
}

/// The columns of a table's line; none of any other line.
fn columns(line: &str) -> Option<Vec<&str>> {
    let line = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(line.split('|').map(str::trim).collect())
}

fn rows(page: &str) -> Vec<Row> {
    let (mut area, mut rows) = (String::new(), Vec::new());
    for (number, line) in page.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            area = title.to_owned();
        }
        let Some(columns) = columns(line) else { continue };
        let [feature, origin, state, command] = columns[..] else { continue };
        if origin == "comes from" || feature.starts_with("---") {
            continue;
        }
        let [feature, state, command] = [feature, state, command].map(str::to_owned);
        rows.push(Row { line: number + 1, area: area.clone(), feature, state, command });
    }
    rows
}

/// The commands of a row: what stands between backticks.
fn commands(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The words of a command as a shell without variables would have them.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for letter in command.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, ' ') => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words
}

/// Why a command is not one of this tree.
fn fault(command: &str) -> Option<String> {
    let words = words(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["lanecast", ..] => understood(&words),
        ["cargo", "test", ref rest @ ..] => test(rest),
        ["cargo", "bench", "-p", package] => {
            crate_of(package).and_then(|folder| there(&folder.join("benches")))
        }
        ["cargo", "bench", "-p", package, "--bench", name] => {
            let file = format!("benches/{name}.rs");
            crate_of(package).and_then(|folder| there(&folder.join(file)))
        }
        ["cargo", "run", "--example", name]
        | ["cargo", "run", "-p", "lanecast-examples", "--example", name] => {
            there(&root().join(format!("examples/rust/{name}.rs")))
        }
        ["make", target] => {
            let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
            let rule = format!("{target}:");
            let is_there = makefile.lines().any(|line| line.starts_with(&rule));
            is_there.then_some(()).ok_or(format!("make has no target {target}"))
        }
        ["bench/rivals/run.sh", ref options @ ..] => rivals(options),
        _ => Err("no kind of command that can be checked".to_owned()),
    };
    done.err()
}

/// The program's own command line; what it would ask beyond that, it asks when it runs.
fn understood(words: &[&str]) -> Result<(), String> {
    match Arguments::try_parse_from(words) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// `-p CRATE [--test TARGET] [FILTER]`.
fn test(words: &[&str]) -> Result<(), String> {
    let ["-p", package, ref rest @ ..] = words[..] else {
        return Err("cargo test without -p".to_owned());
    };
    let folder = crate_of(package)?;
    let (sources, filter) = match *rest {
        ["--test", target, ref filter @ ..] => {
            let (file, tests) = (format!("{target}.rs"), folder.join("tests"));
            let main = tests.join(target).join("main.rs");
            there(&tests.join(file)).or_else(|_| there(&main))?;
            (vec![tests], filter)
        }
        ref filter => (vec![folder.join("src"), folder.join("tests")], filter),
    };
    let [filter] = filter else {
        return if filter.is_empty() { Ok(()) } else { Err("several filters".to_owned()) };
    };
    let names: Vec<String> = sources.iter().flat_map(|folder| names(folder)).collect();
    let missing = filter.split("::").find(|part| !names.iter().any(|name| name.contains(part)));
    missing.map_or(Ok(()), |part| Err(format!("{package} has no test by the name of {part}")))
}

/// The names of modules and functions below a folder.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(names(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let named = text.lines().filter_map(|line| {
                let line = line.trim_start().trim_start_matches("pub ");
                line.strip_prefix("fn ").or_else(|| line.strip_prefix("mod "))
            });
            found.extend(named.map(|name| name.split(['(', ';', ' ']).next().unwrap().to_owned()));
            found.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
        found.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    found
}

/// The options of the comparison, whose command line is of another workspace.
fn rivals(options: &[&str]) -> Result<(), String> {
    let folder = root().join("bench/rivals");
    let script = fs::read_to_string(folder.join("run.sh")).unwrap();
    let known = fs::read_to_string(folder.join("rivals/src/options.rs")).unwrap();
    let rows = fs::read_to_string(folder.join("rivals/src/row.rs")).unwrap();
    for option in options {
        let is_known = match option.strip_prefix("--") {
            Some(name) => {
                known.contains(&format!("pub {}:", name.replace('-', "_")))
                    || script.contains(&format!("asked_for {option} "))
            }
            None => option.split(',').all(|row| {
                let camel: String = row.split('-').map(capital).collect();
                rows.contains(&format!("    {camel},"))
            }),
        };
        if !is_known {
            return Err(format!("run.sh does not know {option}"));
        }
    }
    Ok(())
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

fn there(path: &Path) -> Result<(), String> {
    if path.exists() { Ok(()) } else { Err(format!("{} is not there", path.display())) }
}

/// The folder of a crate.
fn crate_of(package: &str) -> Result<PathBuf, String> {
    let folder = root().join("crates").join(package.trim_start_matches("lanecast-"));
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    let named = format!("name = \"{package}\"");
    let is_it = manifest.lines().any(|line| line == named);
    is_it.then_some(folder).ok_or(format!("there is no crate {package}"))
}

/// The expected counts, as lines of the page.
fn counted(rows: &[Row]) -> Vec<String> {
    let mut areas: Vec<&str> = Vec::new();
    let mut counts = BTreeMap::<(&str, &str), usize>::new();
    for row in rows {
        if areas.last() != Some(&&*row.area) {
            areas.push(&row.area);
        }
        *counts.entry((&row.area, &row.state)).or_default() += 1;
    }
    let count = |area: &str, state: &'static str| {
        let of = counts.iter().filter(|((a, s), _)| (area == "all" || *a == area) && *s == state);
        of.map(|(_, count)| count).sum::<usize>()
    };
    let line = |area: &str| {
        let counts = STATES.map(|state| count(area, state));
        let all = counts.iter().sum::<usize>();
        if area == "all" {
            let [works, partly, not_yet] = counts;
            return format!("| **all** | **{works}** | **{partly}** | **{not_yet}** | **{all}** |");
        }
        let anchor = area.to_lowercase().replace(' ', "-").replace([',', '\''], "");
        let [works, partly, not_yet] = counts;
        format!("| [{area}](#{anchor}) | {works} | {partly} | {not_yet} | {all} |")
    };
    areas.iter().copied().chain(["all"]).map(line).collect()
}

#[test]
fn the_counts_are_those_of_the_rows() {
    let page = page();
    let expected = counted(&rows(&page));
    let printed: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("| area |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert_eq!(printed, expected, "\nwrite:\n{}\n", expected.join("\n"));
}

#[test]
fn every_row_says_what_it_must() {
    let rows = rows(&page());
    assert!(rows.len() > 400, "{} rows: is the page read at all?", rows.len());
    for Row { line, feature, state, command, .. } in &rows {
        assert!(STATES.contains(&state.as_str()), "line {line}: '{state}' is no state");
        let has_command = !commands(command).is_empty();
        assert_eq!(state != "not yet", has_command, "line {line}: {state}, by {command}");
        if state == "partly" {
            assert!(feature.contains('('), "line {line}: says in no brackets what is missing");
        }
    }
}

#[test]
fn every_command_is_one_of_this_tree() {
    let mut faults = Vec::new();
    for Row { line, command, .. } in rows(&page()) {
        for command in commands(&command) {
            faults.extend(fault(command).map(|why| format!("line {line}: {command}: {why}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_bound_of_the_threat_model_is_shown_by_a_test_of_this_tree() {
    let page = fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let (mut faults, mut tests) = (Vec::new(), 0);
    for (number, line) in page.lines().enumerate() {
        let Some(columns) = columns(line) else { continue };
        let &[attempt, bound, shown] = columns.as_slice() else { continue };
        if attempt == "attempt" || attempt.starts_with("---") {
            continue;
        }
        let shown = commands(shown);
        tests += shown.len();
        if shown.is_empty() && !bound.starts_with("**not defended**") {
            faults.push(format!("line {}: neither a test nor a word why not", number + 1));
        }
        let wrong = shown.iter().filter_map(|command| fault(command));
        faults.extend(wrong.map(|why| format!("line {}: {why}", number + 1)));
    }
    assert!(tests > 30, "{tests} tests: is the page read at all?");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_that_fail_are_found() {
    for command in [
        "lanecast perf sub -L",
        "lanecast query",
        "lanecast perf pingpong",
        "cargo test -p lanecast-nothing",
        "cargo test -p lanecast-broker --test nothing",
        "cargo test -p lanecast-broker --test all no_such_module",
        "cargo bench -p lanecast-cli",
        "cargo bench -p lanecast --bench nothing",
        "cargo run --example nothing",
        "make nothing",
        "bench/rivals/run.sh --nothing",
        "bench/rivals/run.sh --rows nothing",
        "rm -r /",
    ] {
        assert!(fault(command).is_some(), "{command}");
    }
    for command in [
        "lanecast perf pub -h",
        "lanecast query orders -f \"/qty > 100\"",
        "cargo test -p lanecast-shm",
        "bench/rivals/run.sh --network --rows loss-pingpong,queue",
    ] {
        assert_eq!(fault(command), None, "{command}");
    }
    assert_eq!(words("a 'b c' \"d\""), ["a", "b c", "d"]);
}
