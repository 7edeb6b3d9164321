//! Running the binary in a domain of a test's own, with a deadline on everything.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than anything takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(90);
/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_lanecast");

/// Waits until `found` gives something.
pub(crate) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain for {what}");
        std::thread::sleep(LOOK);
    }
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

    /// Starts `lanecast` with the words of `line`; its input stays open.
    pub(crate) fn start(&self, line: &str) -> Run {
        let mut command = self.command(BINARY);
        command.args(line.split_whitespace()).stdin(Stdio::piped());
        Run::start(command)
    }

    /// Runs `lanecast` with the words of `line`, without input, to its end.
    pub(crate) fn run(&self, line: &str) -> Done {
        let mut command = self.command(BINARY);
        command.args(line.split_whitespace());
        Run::start(command).finish()
    }
}

/// Output of a process, collected by a thread, so that no pipe fills up.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Output {
    fn collect(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut part = [0; 1 << 16];
            while let Ok(length @ 1..) = pipe.read(&mut part) {
                collected.lock().unwrap().extend_from_slice(&part[..length]);
            }
        });
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn finish(self) -> Vec<u8> {
        self.reader.join().unwrap();
        std::mem::take(&mut self.bytes.lock().unwrap())
    }
}

/// A process at work; ended with the test if it has not ended itself.
pub(crate) struct Run {
    what: String,
    child: Reaped,
    out: Output,
    err: Output,
}

struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Run {
    pub(crate) fn start(mut command: Command) -> Self {
        let what = format!("{command:?}");
        let mut child = command.spawn().unwrap();
        let out = Output::collect(child.stdout.take().unwrap());
        let err = Output::collect(child.stderr.take().unwrap());
        Self { what, child: Reaped(child), out, err }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Writes to its input, which stays open.
    pub(crate) fn feed(&mut self, bytes: impl AsRef<[u8]>) {
        self.child.0.stdin.as_mut().unwrap().write_all(bytes.as_ref()).unwrap();
    }

    /// Ends its input.
    pub(crate) fn end_input(&mut self) {
        self.child.0.stdin = None;
    }

    /// Standard output so far.
    pub(crate) fn out(&self) -> String {
        self.out.text()
    }

    /// Waits until standard output contains `text`.
    pub(crate) fn until_out(&self, text: &str) {
        wait_for(&format!("{text:?} of {}", self.what), || {
            self.out.text().contains(text).then_some(())
        });
    }

    /// Waits until standard error contains `text`.
    pub(crate) fn until_err(&self, text: &str) {
        wait_for(&format!("{text:?} of {}", self.what), || {
            self.err.text().contains(text).then_some(())
        });
    }

    /// Standard error so far.
    pub(crate) fn err(&self) -> String {
        self.err.text()
    }

    /// Sends a signal: `INT`, `STOP`, ...
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Done {
        self.end_input();
        let child = &mut self.child.0;
        let status = wait_for(&format!("the end of {}", self.what), || child.try_wait().unwrap());
        let err = String::from_utf8_lossy(&self.err.finish()).into_owned();
        Done { code: status.code(), out: self.out.finish(), err }
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
