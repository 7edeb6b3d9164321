//! Every test of the project: built once, run beside each other and beside the builds that follow.
//!
//! The main thread builds: the workspace's tests, and when these are built, the other steps that
//! compile. Workers run the test programs as cargo finishes them, the scripts, the house's checks
//! and the documentation's tests. A test that waits leaves its CPU to a compiler.

mod build;
mod cpu;
mod groups;
mod pool;
mod report;
mod work;

use crate::metadata::Metadata;
use anyhow::{Result, bail};
use build::Build;
use pool::Pool;
use report::Report;
use std::path::Path;
use work::Work;

/// Scripts that test what cargo does not; they use the programs of the workspace's build.
const SCRIPTS: [&str; 3] = ["page", "browser", "python"];

/// Options of `cargo xtask suite`.
#[derive(Debug)]
pub(crate) struct Options {
    check: bool,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        match words {
            [] => Ok(Self { check: false }),
            [word] if word == "--check" => Ok(Self { check: true }),
            _ => bail!("cargo xtask suite takes --check and nothing else"),
        }
    }
}

/// Builds and runs everything; returns whether all passed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let root = Metadata::of_workspace()?.workspace_root;
    let logs = root.join("target/suite");
    std::fs::create_dir_all(&logs)?;
    let report = Report::default();
    let pool = Pool::new(&logs, &report);
    std::thread::scope(|scope| {
        for _ in 0..pool::workers() {
            scope.spawn(|| pool.work());
        }
        let built = steps(options, &root, &pool);
        pool.close();
        built
    })?;
    let passed = report.print();
    std::fs::write(logs.join("counts"), format!("{}\n", report.counts().0))?;
    Ok(passed)
}

/// Everything that compiles, one after another: two compilers at once only divide the CPUs. Not so
/// the documentation's, which leaves all CPUs but one idle.
fn steps(options: &Options, root: &Path, pool: &Pool<'_>) -> Result<()> {
    // The tests between hosts are of the same group, so they find what this installs.
    pool.add(Work::script("tests/prepare.sh", root, &["bash", "tests/prepare.sh"]).of("killers"));
    let lints = options.check;
    if lints {
        // This program is built: another build would wait for the one that begins now.
        let xtask = format!("XTASK='{}'", std::env::current_exe()?.display());
        pool.add(Work::script("make house", root, &["make", "house", &xtask]));
    }
    if !pool.build(Build::workspace(root, lints))? {
        return Ok(());
    }
    for script in SCRIPTS {
        let file = format!("tests/{script}.sh");
        pool.add(Work::script(&file, root, &["bash", &file]).env("BUILT", "target/debug"));
    }
    let mut documentation = cargo("documentation tests", root, lints, &["--doc"]);
    if lints {
        documentation = documentation.env("RUSTDOC", root.join("tests/rustdoc.sh"));
    }
    pool.add(documentation);
    pool.build(Build::loom(root))?;
    let rivals = ["make", "rivals-smoke", "BUILT=target/debug"];
    pool.step(Work::script("make rivals-smoke", root, &rivals))?;
    if lints {
        pool.step(cargo("benchmarks compile", root, lints, &["--benches", "--no-run"]))?;
    }
    Ok(())
}

/// A command of cargo that uses the crates as the tests' build has compiled them.
fn cargo(name: &str, root: &Path, lints: bool, words: &[&str]) -> Work {
    let command = [&["cargo", "test", "--locked", "--workspace"], words].concat();
    let variables = build::compiler(root, lints);
    let work = Work::script(name, root, &command);
    variables.into_iter().fold(work, |work, (name, value)| work.env(name, value))
}
