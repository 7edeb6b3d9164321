//! The house's own checks: `cargo xtask tidy`, `suite` and `mutate-orderings`.
#![forbid(unsafe_code)]

mod atomics;
mod circles;
mod crate_map;
mod error_sources;
mod finding;
mod floors;
mod fuzz_targets;
mod impls;
mod lengths;
mod metadata;
mod mutate;
mod packages;
mod pairs;
mod plain;
mod safety;
mod source;
mod suite;
mod tidy;
mod tree;
mod unsafe_code;
mod words;

use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask tidy [--circles [PACKAGE]]
    Checks beyond the compiler's: the direction of dependencies, circles of imports, lengths, impls
    apart from their types, unsafe code, memory orderings and their pairs, words (licences are
    cargo deny's: tests/deny.sh). Exit code 1 after a finding.
    --circles  show all circles of imports, or those of one package, such as crates/ring

cargo xtask suite [--check]
    Builds all tests once and runs them, programs beside each other and beside what is built next;
    prints the slowest tests, each step's time and the counts. Output of each step is in
    target/suite. Exit code 1 if something fails.
    --check      runs make check too, beside the tests

cargo xtask mutate-orderings [--list] [--pair NAME] [--check COMMAND] [--timeout-s SECONDS]
    Weakens the memory orderings of one PAIRS comment at a time to Relaxed, in a copy of the
    tree, and runs the check, which must fail each time. Exit code 1 if it passes once.
    --list       show what would be weakened, and run nothing
    --pair       only the pair of this name
    --check      the command that must fail (bash, in the copy's root)
    --timeout-s  a check that takes longer has noticed something too [default: 600]
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<bool> {
    match arguments.split_first() {
        Some((verb, options)) if verb == "tidy" => tidy::run(options),
        Some((verb, options)) if verb == "suite" => suite::run(&suite::Options::parse(options)?),
        Some((verb, options)) if verb == "mutate-orderings" => {
            mutate::run(&mutate::Options::parse(options)?)
        }
        Some((verb, [])) if matches!(verb.as_str(), "help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(true)
        }
        _ => bail!("'{}' is not understood\n\n{HELP}", arguments.join(" ")),
    }
}
