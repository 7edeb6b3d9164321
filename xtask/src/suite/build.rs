//! A build by cargo whose test programs are handed on as soon as they are linked.

use super::cpu;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The crates whose orderings the model checker explores.
const LOOM: [&str; 4] = ["lanecast-base", "lanecast-os", "lanecast-ring", "lanecast-shm"];

/// Packages without a library: a build of libraries compiles nothing of them, and takes crates from
/// elsewhere with the features that these ask for, which are those of the tests' build.
const FEATURES: [&str; 3] = ["lanecast-cli", "lanecast-examples", "xtask"];

/// One run of `cargo test --no-run`.
#[derive(Debug)]
pub(crate) struct Build {
    /// Name in the report.
    pub(crate) name: &'static str,
    command: Command,
    ends_last: &'static [&'static str],
    is_of_models: bool,
}

/// A test program that is built.
#[derive(Debug)]
pub(crate) struct Program {
    /// Package of the test.
    pub(crate) package: String,
    /// Name of the test: the package's for unit tests.
    pub(crate) target: String,
    /// Path of the program.
    pub(crate) path: PathBuf,
    /// Working directory, as cargo sets it: that of the manifest.
    pub(crate) directory: PathBuf,
    /// Whether its tests are models, which map stacks for each schedule that they try: threads of
    /// one program only wait for each other's mappings.
    pub(crate) is_of_models: bool,
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    profile: Option<Profile>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

impl Build {
    /// All tests of the workspace, with the programs and examples that they start; with `lints`,
    /// the compiler lints them too, and a warning is an error.
    pub(crate) fn workspace(root: &Path, lints: bool) -> Self {
        let mut command = cargo(root);
        command.arg("--workspace").envs(compiler(root, lints));
        // These start programs or examples, which cargo may link after them.
        let ends_last = &["lanecast-cli", "lanecast-examples", "lanecast-system-tests"];
        Self { name: "build of the tests", command, ends_last, is_of_models: false }
    }

    /// The model checker's.
    pub(crate) fn loom(root: &Path) -> Self {
        let mut command = cargo(root);
        let packages = LOOM.iter().chain(&FEATURES);
        command
            .args(["--config", "tests/loom.toml", "--lib"])
            .args(packages.flat_map(|package| ["-p", package]));
        Self { name: "build of loom", command, ends_last: &[], is_of_models: true }
    }

    /// Builds, and hands each program to `each`; returns whether everything was built, and how
    /// many seconds CPUs worked for it.
    pub(crate) fn run(mut self, mut each: impl FnMut(Program)) -> Result<(bool, f64)> {
        let mut child = self.command.spawn().context("cargo cannot be started")?;
        let output = child.stdout.take().context("cargo's output is not there")?;
        let mut last = Vec::new();
        for line in BufReader::new(output).lines() {
            let Some(mut program) = program(&line?) else { continue };
            program.is_of_models = self.is_of_models;
            if self.ends_last.contains(&program.package.as_str()) {
                last.push(program);
            } else {
                each(program);
            }
        }
        // Its output ends a moment before it does.
        let cpu_seconds = cpu::seconds(child.id());
        let built = child.wait()?.success();
        if built {
            last.into_iter().for_each(each);
        }
        Ok((built, cpu_seconds))
    }
}

/// Environment of cargo that has it call the suite's compiler for the crates of the workspace.
///
/// Clippy is the compiler with more lints: as the tests' compiler, it lints for a fraction of the
/// time that checking everything once more for it would take.
pub(crate) fn compiler(root: &Path, lints: bool) -> Vec<(&'static str, OsString)> {
    let script = if lints { "tests/clippy.sh" } else { "tests/rustc.sh" };
    let mut variables = vec![("RUSTC_WORKSPACE_WRAPPER", root.join(script).into_os_string())];
    if lints {
        // As `cargo clippy` hands on `-D warnings`.
        variables.push(("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__".into()));
    }
    variables
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["test", "--locked", "--no-run", "--quiet"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// The test program that one of cargo's messages tells of.
fn program(line: &str) -> Option<Program> {
    let message: Message = serde_json::from_str(line).ok()?;
    let is_test = message.reason == "compiler-artifact" && message.profile?.test;
    let path = message.executable.filter(|_| is_test)?;
    let directory = message.manifest_path?.parent()?.to_owned();
    let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).ok()?;
    let package = package(&manifest)?.to_owned();
    Some(Program { package, target: message.target?.name, path, directory, is_of_models: false })
}

/// The package's name, from its manifest.
fn package(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("name = \""))?;
    line.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_linked_tests_are_programs() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let line = |test: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"{manifest}","profile":
                {{"test":{test}}},"target":{{"name":"all"}},"executable":{executable}}}"#
            )
        };
        let found = program(&line("true", "\"/t/all-1\"")).expect("a test");
        assert_eq!((found.package.as_str(), found.target.as_str()), ("xtask", "all"));
        assert_eq!(found.directory, Path::new(env!("CARGO_MANIFEST_DIR")));
        assert!(program(&line("false", "\"/t/lanecast\"")).is_none(), "a program for people");
        assert!(program(&line("true", "null")).is_none(), "not linked");
        assert!(program("{\"reason\":\"build-finished\",\"success\":true}").is_none());
    }
}
