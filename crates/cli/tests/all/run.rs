//! Running the binary in a domain of a test's own, with a deadline on everything.

use lanecast_system_tests::Process;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Longer than anything takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(90);

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_lanecast");

/// Waits until `found` gives something.
pub(crate) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    lanecast_system_tests::wait_for(what, DEADLINE, || Ok(found())).unwrap()
}

/// The children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    listed.unwrap_or_default().split_whitespace().filter_map(|it| it.parse().ok()).collect()
}

/// A domain of its own, removed with its contents at the end.
pub(crate) struct Stage(tempfile::TempDir);

impl Stage {
    pub(crate) fn new() -> Self {
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        let made = tempfile::Builder::new().prefix("lanecast-test-").tempdir_in(parent);
        Self(made.unwrap())
    }

    /// A file in the directory in which commands run.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes such a file.
    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), contents).unwrap();
    }

    /// A command in this domain, without input.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).env_remove("LANECAST_CONFIG");
        command.env("LANECAST_SHM__DIRECTORY", self.path("domain"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `lanecast` with the words of `line`, without input.
    pub(crate) fn lanecast(&self, line: &str) -> Command {
        let mut command = self.command(BINARY);
        command.args(line.split_whitespace());
        let lingers = line.starts_with("pub ") || line.starts_with("replay ");
        if lingers && !["--linger", "--server"].iter().any(|it| line.contains(it)) {
            // On a busy machine a subscriber can need longer than the default to read everything.
            command.args(["--linger", "60s"]);
        }
        command
    }

    /// Starts `lanecast` with the words of `line`; its input stays open.
    pub(crate) fn start(&self, line: &str) -> Run {
        let mut command = self.lanecast(line);
        command.stdin(Stdio::piped());
        Run::start(command)
    }

    /// [`lanecast`](Self::lanecast) as a terminal starts it: the tests may run under `nohup`, and
    /// their children would ignore SIGHUP then.
    pub(crate) fn lanecast_at_terminal(&self, line: &str) -> Command {
        let program = self.lanecast(line);
        let mut command = self.command("env");
        command.arg("--default-signal=HUP").arg(program.get_program()).args(program.get_args());
        command
    }

    /// [`start`](Self::start) as a terminal starts it.
    pub(crate) fn start_at_terminal(&self, line: &str) -> Run {
        let mut command = self.lanecast_at_terminal(line);
        command.stdin(Stdio::piped());
        Run::start(command)
    }

    /// Runs `lanecast` with the words of `line`, without input, to its end.
    pub(crate) fn run(&self, line: &str) -> Done {
        Run::start(self.lanecast(line)).finish()
    }

    /// Runs `lanecast COMMAND` with each line of arguments: it ends with `code`, and its error has
    /// the text beside the line.
    pub(crate) fn refuses(&self, code: i32, command: &str, cases: &[(&str, &str)]) {
        for (line, part) in cases {
            let done = self.run(&format!("{command} {line}"));
            assert!(done.refused(code).contains(part), "{line}: {}", done.err);
        }
    }
}

/// A process at work; ended with the test if it has not ended itself.
pub(crate) struct Run(Process);

impl Run {
    /// Starts a command; its input is a pipe that stays open.
    pub(crate) fn start(command: Command) -> Self {
        Self(Process::start(command, Stdio::piped()).unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Writes to its input, which stays open.
    pub(crate) fn feed(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.feed(bytes).unwrap();
    }

    /// Ends its input.
    pub(crate) fn end_input(&mut self) {
        self.0.end_input();
    }

    /// Standard output so far.
    pub(crate) fn out(&self) -> String {
        self.0.out()
    }

    /// Standard error so far.
    pub(crate) fn err(&self) -> String {
        self.0.err()
    }

    /// Waits until standard output contains `text`.
    pub(crate) fn until_out(&self, text: &str) {
        self.0.until_out(text, DEADLINE).unwrap();
    }

    /// Waits until standard error contains `text`.
    pub(crate) fn until_err(&self, text: &str) {
        self.0.until_err(text, DEADLINE).unwrap();
    }

    /// Sends a signal: `INT`, `STOP`, ...
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(status.success());
    }

    /// Ends its input and waits for its end.
    pub(crate) fn finish(mut self) -> Done {
        self.end_input();
        let done = self.0.finish(DEADLINE).unwrap();
        Done { code: done.code, out: done.out, err: done.err }
    }
}

/// Exit status and output of a process.
#[derive(Debug)]
pub(crate) struct Done {
    /// Exit status; `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Done {
    /// Standard output of a successful process.
    pub(crate) fn good(&self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// Error message of a process that ended with `code` and printed no result.
    pub(crate) fn refused(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(!self.err.contains("panicked"), "{}", self.err);
        &self.err
    }
}
