//! Running `ip` and `nft`, with words for what goes wrong.

use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs `program` with `input`; returns the output of a success.
pub(crate) fn run(program: &str, arguments: &[&str], input: &str) -> Result<String> {
    let line = || format!("{program} {}", arguments.join(" "));
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(line)?;
    // A program that ends early closes its input, and tells why in its own words.
    let _ = child.stdin.take().expect("a piped input").write_all(input.as_bytes());
    let output = child.wait_with_output().with_context(line)?;
    ensure!(
        output.status.success(),
        "{}: {}\n{input}",
        line(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs lines of `ip` commands.
pub(crate) fn ip(script: &str) -> Result<()> {
    run("ip", &["-batch", "-"], script).map(drop)
}
