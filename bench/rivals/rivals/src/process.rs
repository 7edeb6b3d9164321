//! Measured programs: started raised, listened to, waited for with a limit, never left behind.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::interrupt;
use crate::raise::REFUSED;

/// Lines of stderr that a failure quotes.
const QUOTED_LINES: usize = 3;
/// The line by which a program says that it can be sent to.
const READY: &str = "ready";
/// Longest time of a program between its last output and its end.
const END_LIMIT: Duration = Duration::from_secs(5);
const END_POLL: Duration = Duration::from_millis(1);
/// Interval of checking for the end of a wait.
const LOOK: Duration = Duration::from_millis(100);

/// A program that is to be started.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name in error messages.
    pub name: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Environment beside the inherited one.
    pub environment: Vec<(String, String)>,
    /// CPUs that all its threads are kept on, if not left to the program itself.
    pub confined_to: Option<usize>,
    /// Network namespace that it runs in, if not in this one.
    pub host: Option<String>,
}

impl Program {
    /// A program without arguments.
    pub fn new(name: &'static str, path: &Path) -> Self {
        Self {
            name,
            path: path.to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            confined_to: None,
            host: None,
        }
    }

    /// Puts it into a network namespace.
    pub fn on(self, host: Option<String>) -> Self {
        Self { host, ..self }
    }

    /// Adds arguments.
    pub fn args<I: IntoIterator<Item = S>, S: ToString>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.to_string()));
        self
    }

    /// Starts it in a raised session of its own.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(&self) -> Result<Running> {
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        let mut command = Command::new(own);
        command.arg("raise");
        if let Some(cpu) = self.confined_to {
            command.args(["taskset", "-c", &cpu.to_string()]);
        }
        if let Some(host) = &self.host {
            command.args(["ip", "netns", "exec", host]);
        }
        command.arg(&self.path).args(&self.arguments).envs(self.environment.iter().cloned());
        // The reason comes last, with nothing behind it.
        command.env("RUST_BACKTRACE", "0").env_remove("RUST_LIB_BACKTRACE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.name))?;
        let (output, ready) = listen(&mut child)?;
        Ok(Running { name: self.name, child, output, ready, ended: false })
    }
}

/// All that a program printed.
#[derive(Debug)]
struct Printed {
    stdout: String,
    stderr: Vec<String>,
}

/// A started program; killed when it is dropped before its end.
#[derive(Debug)]
pub struct Running {
    name: &'static str,
    child: Child,
    output: Receiver<Printed>,
    ready: Receiver<()>,
    ended: bool,
}

impl Running {
    /// Waits until the program says that it is ready.
    ///
    /// # Errors
    ///
    /// When it does not say so in time, or ends before.
    pub fn wait_ready(&mut self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            match self.ready.recv_timeout(LOOK) {
                Ok(()) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => interrupt::check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    self.wait(Instant::now() + END_LIMIT)?;
                    bail!("{} ended before it was ready", self.name)
                }
            }
        }
        bail!("{} was not ready in {limit:.0?}", self.name)
    }

    /// Waits for the end and returns what was printed on stdout.
    ///
    /// # Errors
    ///
    /// When the program has not ended at the deadline (it is killed then), or failed; the last
    /// lines of its stderr are quoted.
    pub fn wait(&mut self, deadline: Instant) -> Result<String> {
        self.wait_while(deadline, || Ok(()))
    }

    /// The same; goes on as long as a condition holds, which is looked at now and then.
    ///
    /// # Errors
    ///
    /// Also when the condition fails.
    pub fn wait_while(
        &mut self,
        deadline: Instant,
        mut condition: impl FnMut() -> Result<()>,
    ) -> Result<String> {
        let printed = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left.min(LOOK)) {
                Ok(printed) => break printed,
                Err(_) if left.is_zero() => {
                    self.kill();
                    bail!("{} did not end in time and was killed", self.name);
                }
                Err(_) => interrupt::check().and_then(|()| condition())?,
            }
        };
        let end = Instant::now() + END_LIMIT;
        loop {
            let Some(status) = self.child.try_wait()? else {
                if Instant::now() > end {
                    self.kill();
                    bail!("{} hung at its end and was killed", self.name);
                }
                thread::sleep(END_POLL);
                continue;
            };
            self.ended = true;
            if status.success() {
                return Ok(printed.stdout);
            }
            let from = printed.stderr.len().saturating_sub(QUOTED_LINES);
            return Err(anyhow!(
                "{} failed ({status}): {}",
                self.name,
                printed.stderr[from..].join(" | ")
            ));
        }
    }

    /// Why the program has failed, if it has.
    pub fn failure(&mut self) -> Option<Error> {
        match self.child.try_wait() {
            Ok(Some(status)) if !status.success() => self.wait(Instant::now() + END_LIMIT).err(),
            _ => None,
        }
    }

    /// Asks the program to end and waits for it; kills it when it does not.
    pub fn stop(mut self) {
        let asked = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        if asked.is_ok() {
            // How it ended does not matter: it was told to.
            let _ = self.wait(Instant::now() + END_LIMIT);
        }
    }

    fn kill(&mut self) {
        // Both fail only when the program is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.ended = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
        }
    }
}

/// Reads both outputs on threads of their own; they end with the program.
fn listen(child: &mut Child) -> Result<(Receiver<Printed>, Receiver<()>)> {
    let mut stdout = child.stdout.take().context("no stdout")?;
    let stderr = child.stderr.take().context("no stderr")?;
    let (printed, output) = channel();
    let (is_ready, ready) = channel();
    let notes = thread::spawn(move || read_notes(BufReader::new(stderr), &is_ready));
    thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.read_to_string(&mut text);
        let mut stderr = notes.join().unwrap_or_default();
        if let Err(error) = read {
            stderr.push(error.to_string());
        }
        // The receiver is gone if the program was abandoned.
        let _ = printed.send(Printed { stdout: text, stderr });
    });
    Ok((output, ready))
}

fn read_notes(stderr: impl BufRead, is_ready: &Sender<()>) -> Vec<String> {
    let mut notes = Vec::new();
    for line in stderr.lines().map_while(Result::ok) {
        if line.trim() == READY {
            // The receiver is gone if the program was abandoned.
            let _ = is_ready.send(());
        } else if !line.starts_with(REFUSED) && !line.trim().is_empty() {
            notes.push(line);
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Running {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let (output, ready) = listen(&mut child).expect("pipes");
        Running { name: "shell", child, output, ready, ended: false }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn output_and_readiness_are_heard() {
        let mut running = shell("echo ready >&2; echo received=1,");
        running.wait_ready(Duration::from_secs(10)).expect("ready");
        assert_eq!(running.wait(soon()).expect("success"), "received=1,\n");
    }

    #[test]
    fn a_failure_quotes_stderr() {
        let error = shell("echo no room >&2; exit 3").wait(soon()).expect_err("failure");
        assert!(error.to_string().contains("no room"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let mut running = shell("exec sleep 600");
        let error = running.wait(Instant::now()).expect_err("killed");
        assert!(error.to_string().contains("killed"), "{error}");
        assert!(running.ended);
    }
}
