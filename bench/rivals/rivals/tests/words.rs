//! The program as a person runs it: what goes wrong is told in words.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rivals"));
    command.args(arguments).env("RUST_BACKTRACE", "full").output().expect("it starts")
}

#[test]
fn an_error_is_one_line_and_no_stack_trace() {
    for (arguments, words) in [
        (["--pairs", "0"], "--pairs must be at least 1"),
        (["--seconds", "inf"], "--seconds must be more than 0 and at most 3600"),
        (["--seconds", "1e300"], "--seconds must be more than 0 and at most 3600"),
        (["--threads", "--rows=rate"], "--threads: leave it out, or ask for rows between threads"),
    ] {
        let ended = run(&arguments);
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{told}");
        assert!(told.starts_with("error: ") && told.contains(words), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}
