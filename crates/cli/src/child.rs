//! Processes of this program, started by it: demonstrations and series of measurements.

use crate::life_lock::hold;
use anyhow::{Context as _, bail};
use lanecast_os::{affinity, process};
use serde::de::DeserializeOwned;
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at the stop flag while an actor is silent.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Names are `lanecast-run-<word>-<number>`: no earlier version made such, which it would not hold
/// by a lock.
const PREFIX: &str = "lanecast-run-";

/// A directory of our own, in memory if possible, removed with its contents at the end. One whose
/// process was killed is removed when the next one is made beside it.
#[derive(Debug)]
pub(crate) struct TempDomain {
    path: PathBuf,
    /// The directory, with a lock on it: the system ends that with the process.
    _lock: File,
}

impl TempDomain {
    pub(crate) fn build(name: &str) -> anyhow::Result<Self> {
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        Self::within(name, &parent)
    }

    /// The same on disk: below `parent`, or where temporary files are.
    pub(crate) fn on_disk(name: &str, parent: Option<&Path>) -> anyhow::Result<Self> {
        Self::within(name, parent.unwrap_or(&std::env::temp_dir()))
    }

    fn within(name: &str, parent: &Path) -> anyhow::Result<Self> {
        clear_stale(parent);
        loop {
            let number = process::random()?;
            let path = parent.join(format!("{PREFIX}{name}-{number:016x}"));
            let made = std::fs::create_dir(&path);
            made.with_context(|| format!("cannot make {}", path.display()))?;
            // Another process may take it for stale until it is locked, and remove it.
            if let Some(lock) = hold(&path)? {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    /// A path inside.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for TempDomain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes the directories of this user in `parent` whose processes have ended without doing so.
fn clear_stale(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // A link's own description: of a directory that is ours no other user can make one.
        let is_ours = |it: Metadata| it.is_dir() && it.uid() == process::own_user();
        if !entry.metadata().is_ok_and(is_ours) {
            continue;
        }
        // The lock keeps others from it until it is gone.
        let directory = File::open(entry.path());
        if directory.as_ref().is_ok_and(|it| it.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// When to give up on actors.
pub(crate) struct Deadline<'a> {
    pub(crate) until: Instant,
    pub(crate) stop: &'a dyn Fn() -> bool,
}

/// This program in another process, which does not outlive this value.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    role: &'static str,
    child: Child,
    lines: Receiver<std::io::Result<String>>,
    errors: Option<JoinHandle<String>>,
}

impl ChildProcess {
    /// Starts it with the arguments `words`; `role` names it in errors.
    pub(crate) fn start(role: &'static str, words: &[String]) -> anyhow::Result<Self> {
        Self::start_in(role, &[], words)
    }

    /// The same, with the words of a program before it that becomes this one, such as `ip netns
    /// exec NAME`.
    pub(crate) fn start_in(
        role: &'static str,
        before: &[String],
        words: &[String],
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let mut command = match before.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args(words);
        Self::spawn(role, command)
    }

    /// The same as [`start`](Self::start), with all its threads on `cpu`.
    pub(crate) fn start_on(
        cpu: usize,
        role: &'static str,
        words: &[String],
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let mut command = Command::new(program);
        command.args(words);
        affinity::pin_child(&mut command, cpu)?;
        Self::spawn(role, command)
    }

    /// Starts it. It ends with the calling thread, so that has to outlive it.
    fn spawn(role: &'static str, mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        process::end_child_with_parent(&mut command);
        let mut child = command.spawn().with_context(|| format!("cannot start the {role}"))?;
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            // Ends with the process, or when the receiver is dropped.
            std::thread::spawn(move || {
                BufReader::new(output).lines().try_for_each(|line| sender.send(line))
            });
        }
        let errors = child.stderr.take().map(|mut errors| {
            std::thread::spawn(move || {
                let mut text = String::new();
                // What cannot be read is not told.
                let _ = errors.read_to_string(&mut text);
                text
            })
        });
        Ok(Self { role, child, lines, errors })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints, as data.
    pub(crate) fn read<T: DeserializeOwned>(
        &mut self,
        deadline: &Deadline<'_>,
    ) -> anyhow::Result<T> {
        loop {
            let left = deadline.until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(CHECK_INTERVAL)) {
                Ok(line) => {
                    let line = line.with_context(|| format!("cannot read the {}", self.role))?;
                    return serde_json::from_str(&line)
                        .with_context(|| format!("the {} printed no JSON: {line}", self.role));
                }
                // Ctrl-C reaches the actors, too: an actor's end is not what has gone wrong then.
                Err(_) if (deadline.stop)() => bail!("interrupted"),
                Err(RecvTimeoutError::Disconnected) => bail!(self.failure()),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    let why = format!("the {} (process {}) hangs", self.role, self.pid());
                    self.end();
                    bail!("{why}: {}", self.errors());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits until it has ended, and gives what it wrote to standard error.
    pub(crate) fn finish(mut self, deadline: &Deadline<'_>) -> anyhow::Result<String> {
        // The output ends with the process; lines without a reader are dropped.
        loop {
            let left = deadline.until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(CHECK_INTERVAL)) {
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if left.is_zero() || (deadline.stop)() => {
                    bail!("the {} (process {}) does not end", self.role, self.pid());
                }
                _ => {}
            }
        }
        self.child.wait()?;
        Ok(self.errors())
    }

    /// Ends it at once (kill -9).
    pub(crate) fn end(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn failure(&mut self) -> String {
        let status = self.child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
        let (role, pid) = (self.role, self.pid());
        format!("the {role} (process {pid}) ended without a result ({status}): {}", self.errors())
    }

    fn errors(&mut self) -> String {
        let thread = self.errors.take();
        let text = thread.and_then(|thread| thread.join().ok()).unwrap_or_default();
        text.trim().to_owned()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_killed_processes_are_removed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        let names = ["lanecast-run-lat-1", "lanecast-lat-1", "lanecast-run-file", "other"];
        let [killed, earlier, file, other] = names.map(path);
        std::fs::create_dir_all(killed.join("domain")).unwrap();
        for directory in [&earlier, &other] {
            std::fs::create_dir(directory).unwrap();
        }
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&other, path("lanecast-run-link")).unwrap();
        let living = TempDomain::on_disk("lat", Some(parent.path())).unwrap();
        assert!(!killed.exists());
        let next = TempDomain::on_disk("lat", Some(parent.path())).unwrap();
        assert!(living.path("").exists() && next.path("").exists());
        assert!([earlier, other, file, path("lanecast-run-link")].iter().all(|it| it.exists()));
        drop((living, next));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 4);
    }
}
