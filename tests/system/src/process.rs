//! A program at work on a host.

use crate::wait::wait_for;
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest delay of the output of an ended program, even on a busy machine.
const LAST_WORDS: Duration = Duration::from_secs(20);

/// Longest time that the system takes to stop or end a process, even on a busy machine.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// A program at work; it is killed when dropped. What it prints is collected.
#[derive(Debug)]
pub struct Process {
    line: String,
    child: Reaped,
    out: Output,
    err: Output,
}

impl Process {
    /// Starts it; `input` is what it reads.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(mut command: Command, input: Stdio) -> Result<Self> {
        let line = format!("{command:?}");
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Reaped(command.spawn().with_context(|| line.clone())?);
        let out = Output::collect(child.0.stdout.take().expect("a piped output"));
        let err = Output::collect(child.0.stderr.take().expect("a piped output"));
        Ok(Self { line, child, out, err })
    }

    /// The process id: `ip netns exec` becomes the program that it starts.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Standard output so far.
    pub fn out(&self) -> String {
        self.out.text()
    }

    /// Standard error so far.
    pub fn err(&self) -> String {
        self.err.text()
    }

    /// A line for each of its threads: its name, its state, the kernel's function that it waits in,
    /// and nanoseconds of CPU time, wait for a CPU, and times on one.
    pub fn threads(&self) -> String {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid()));
        let line = |task: &Path| {
            let read = |file| std::fs::read_to_string(task.join(file)).unwrap_or_default();
            // The state follows the name in parentheses.
            let stat = read("stat");
            let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
            let (name, wait, times) = (read("comm"), read("wchan"), read("schedstat"));
            format!("{} {} {wait} {}\n", name.trim(), state.unwrap_or("gone"), times.trim())
        };
        tasks.into_iter().flatten().flatten().map(|task| line(&task.path())).collect()
    }

    /// Waits until its output contains `text`.
    pub fn until_out(&self, text: &str, limit: Duration) -> Result<()> {
        self.until(text, limit, &self.out)
    }

    /// Waits until its standard error contains `text`.
    pub fn until_err(&self, text: &str, limit: Duration) -> Result<()> {
        self.until(text, limit, &self.err)
    }

    fn until(&self, text: &str, limit: Duration, output: &Output) -> Result<()> {
        let what = format!("{text:?} of {}", self.line);
        wait_for(&what, limit, || Ok(output.text().contains(text).then_some(())))
            .with_context(|| format!("it has printed\n{}\n{}", self.out(), self.err()))
    }

    /// Writes to its input, if that is a pipe; it stays open.
    ///
    /// # Errors
    /// If its input is no pipe, was ended or has no reader.
    pub fn feed(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let input = self.child.0.stdin.as_mut().context("it does not listen")?;
        input.write_all(bytes.as_ref()).with_context(|| self.line.clone())
    }

    /// Ends its input.
    pub fn end_input(&mut self) {
        self.child.0.stdin = None;
    }

    /// Sends it a signal; after SIGSTOP waits until all its threads stand still.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_child(&self.child.0);
        kill_process(pid, signal).with_context(|| self.line.clone())?;
        if signal != Signal::STOP {
            return Ok(());
        }
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let what = format!("the stop of {}", self.line);
        wait_for(&what, STOP_LIMIT, || Ok(waitid(WaitId::Pid(pid), options)?.map(drop)))
    }

    /// Ends it at once, by SIGKILL.
    pub fn kill(mut self) -> Result<Done> {
        self.child.0.kill().with_context(|| self.line.clone())?;
        self.end(STOP_LIMIT)
    }

    /// Waits for its end.
    pub fn finish(mut self, limit: Duration) -> Result<Done> {
        self.end(limit)
    }

    fn end(&mut self, limit: Duration) -> Result<Done> {
        let child = &mut self.child.0;
        let what = format!("the end of {}", self.line);
        let status = wait_for(&what, limit, || Ok(child.try_wait()?))
            .with_context(|| format!("it has printed\n{}\n{}", self.out.text(), self.err.text()))?;
        let line = self.line.clone();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Done { line, code: status.code(), out: self.out.all(), err: text(self.err.all()) })
    }
}

/// Exit status and output of a program.
#[derive(Clone, Debug)]
pub struct Done {
    line: String,
    /// The exit status; none if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: String,
}

impl Done {
    /// Standard output of a successful program.
    pub fn good(self) -> Result<String> {
        let Self { line, code, out, err } = self;
        let out = String::from_utf8_lossy(&out).into_owned();
        ensure!(code == Some(0), "{line} ended with {code:?}\n{out}\n{err}");
        Ok(out)
    }
}

/// Path of `program`: the build of this name by cargo, or else the name itself.
pub(crate) fn find(program: &str) -> OsString {
    let own = std::env::current_exe().unwrap_or_default();
    // Tests lie one directory below the programs.
    let built = own.ancestors().skip(1).take(2).map(|folder| folder.join(program));
    let built = built.into_iter().find(|path| !program.contains('/') && path.is_file());
    built.map_or_else(|| program.into(), Into::into)
}

#[derive(Debug)]
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Output so far, collected by a thread, so that no pipe fills up.
#[derive(Debug)]
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
            loop {
                match pipe.read(&mut part) {
                    Ok(length @ 1..) => {
                        let mut collected = collected.lock().expect("no panic above");
                        collected.extend_from_slice(&part[..length]);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(_) | Err(_) => return,
                }
            }
        });
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("no panic above")).into_owned()
    }

    /// All of it, when the program has ended; what there is, if a child of it still holds the pipe.
    fn all(&self) -> Vec<u8> {
        let ended = || Ok(self.reader.is_finished().then_some(()));
        let _ = wait_for("the end of the output", LAST_WORDS, ended);
        self.bytes.lock().expect("no panic above").clone()
    }
}
