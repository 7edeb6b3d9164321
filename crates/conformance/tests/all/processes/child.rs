//! An actor in a process of its own.

use super::{PATIENCE, until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The environment variable that tells the actor its part.
pub(crate) const PART: &str = "TEST_PART";

/// A child process; it is killed when dropped.
pub(crate) struct Child {
    process: process::Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Child {
    /// Starts an actor over shared memory: a role and its `key=value` words.
    pub(crate) fn start(directory: &Path, part: &str) -> Self {
        Self::start_over(&format!("directory={}", directory.display()), part)
    }

    /// Starts an actor over a transport, which words tell.
    pub(crate) fn start_over(transport: &str, part: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut process = Command::new(program)
            .args(["processes::actor::acts", "--exact", "--ignored", "--nocapture"])
            .env(PART, format!("{part} {transport}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("an actor");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, lines, seen: Vec::new() }
    }

    /// Waits for the line `key=...`; returns what follows.
    pub(crate) fn tells(&mut self, key: &str) -> String {
        let start = Instant::now();
        let prefix = format!("{key}=");
        loop {
            let left = PATIENCE.saturating_sub(start.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    assert!(!line.starts_with("broken="), "{line}");
                    self.seen.push(line.clone());
                    if let Some(value) = line.strip_prefix(&prefix) {
                        return value.to_owned();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no line {prefix} in time, but {:?}", self.seen)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("it ended without {prefix}, after {:?}", self.seen)
                }
            }
        }
    }

    /// The number on the line `key=...`.
    pub(crate) fn tells_number(&mut self, key: &str) -> u64 {
        self.tells(key).parse().expect("a number")
    }

    /// Lets it go on, or end.
    pub(crate) fn say(&mut self, word: &str) {
        let input = self.process.stdin.as_mut().expect("its input");
        writeln!(input, "{word}").expect("it listens");
    }

    /// Waits for its end; all its lines.
    pub(crate) fn ends(mut self) -> Vec<String> {
        let mut seen = std::mem::take(&mut self.seen);
        let start = Instant::now();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
            assert!(!line.starts_with("broken="), "{line}");
            seen.push(line);
        }
        assert!(start.elapsed() < PATIENCE, "it does not end, after {seen:?}");
        assert!(self.process.wait().expect("its status").success(), "it failed after {seen:?}");
        seen
    }

    /// Sends it a signal other than the deadly one.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).expect("a process number");
        let pid = Pid::from_raw(pid).expect("a process number");
        kill_process(pid, signal).expect("it lives");
    }

    /// Stops it until it is continued. The kernel lets one thread stop the others, once that thread
    /// has a processor: until then the others run on.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.pid());
        until("all threads to stop", || {
            let tasks = std::fs::read_dir(&tasks).expect("it lives");
            let stats = tasks.filter_map(Result::ok).map(|task| task.path().join("stat"));
            // A thread that has ended meanwhile has no state.
            let mut stats = stats.filter_map(|stat| std::fs::read_to_string(stat).ok());
            // The name may contain anything; the state follows its last parenthesis.
            stats.all(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
        });
    }

    /// SIGKILL, now.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it could be killed");
        self.process.wait().expect("its status");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Keeps a core busy for so long: shorter than any sleep can be.
pub(crate) fn delay(duration: Duration) {
    let start = Instant::now();
    while start.elapsed() < duration {
        std::hint::spin_loop();
    }
}
