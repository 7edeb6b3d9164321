//! A publisher or a subscriber on a host, in a process of its own: `lanecast-actor`.

use crate::host::Host;
use crate::process::{Done, Process};
use crate::wait::wait_for;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use std::process::Stdio;
use std::time::Duration;

/// Longer than anything that is waited for takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const PROGRAM: &str = "lanecast-actor";

/// An actor at work. It is killed when dropped, and ends when the test does.
#[derive(Debug)]
pub struct Actor {
    process: Process,
    /// Bytes of its output that are already processed.
    heard: usize,
}

impl Actor {
    /// Starts an actor: its role and its words.
    pub fn start(host: &Host, part: &str) -> Result<Self> {
        let mut command = host.command(PROGRAM);
        command.args(part.split_whitespace());
        Ok(Self { process: Process::start(command, Stdio::piped())?, heard: 0 })
    }

    /// Waits for its next line `key=...`; what follows. Lines before it are done with.
    pub fn tells(&mut self, key: &str) -> Result<String> {
        self.tells_within(key, PATIENCE)
    }

    /// As [`tells`](Self::tells), within `limit`.
    pub fn tells_within(&mut self, key: &str, limit: Duration) -> Result<String> {
        let prefix = format!("{key}=");
        let found = wait_for(&prefix, limit, || {
            let all = self.process.out();
            let mut end = self.heard;
            for line in all[self.heard..].split_inclusive('\n').filter(|l| l.ends_with('\n')) {
                end += line.len();
                if let Some(value) = line.strip_prefix(&prefix) {
                    return Ok(Some((value.trim_end().to_owned(), end)));
                }
                ensure!(!line.starts_with("broken="), "{line}");
            }
            Ok(None)
        });
        let (value, end) = found.with_context(|| self.story())?;
        self.heard = end;
        Ok(value)
    }

    /// Waits for its next line `key=...` with a number.
    pub fn tells_number(&mut self, key: &str) -> Result<u64> {
        let value = self.tells(key)?;
        value.parse().with_context(|| format!("{key}={value}"))
    }

    /// Waits until it has read at least so many messages.
    pub fn reads(&mut self, messages: u64) -> Result<()> {
        while self.tells_number("at")? < messages {}
        Ok(())
    }

    /// Messages read, as last reported.
    pub fn read(&self) -> u64 {
        let all = self.process.out();
        let told = all.lines().rev().find_map(|line| line.strip_prefix("at="));
        told.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Waits until it is told that one of its streams is over; the account of it.
    pub fn parts(&mut self) -> Result<Left> {
        Left::parse(&self.tells("left")?)
    }

    /// Whether it has told `key=...` so far, in any line.
    pub fn has_told(&self, key: &str) -> bool {
        let prefix = format!("{key}=");
        self.process.out().lines().any(|line| line.starts_with(&prefix))
    }

    /// Gives it an order.
    pub fn say(&mut self, order: &str) -> Result<()> {
        self.process.feed(format!("{order}\n")).with_context(|| self.story())
    }

    /// Tells it to come to an end.
    pub fn end(&mut self) -> Result<()> {
        self.say("end")
    }

    /// Waits for its end, which must be a good one.
    pub fn finish(mut self) -> Result<Done> {
        // It may have ended already.
        let _ = self.say("end");
        let done = self.process.finish(PATIENCE)?;
        if done.code != Some(0) {
            bail!(
                "it ended with {:?}\n{}\n{}",
                done.code,
                String::from_utf8_lossy(&done.out),
                done.err
            );
        }
        Ok(done)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Ends it by SIGKILL.
    pub fn kill(self) -> Result<()> {
        self.process.kill().map(drop)
    }

    /// The memory that it has in use, in KiB.
    pub fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.context("no VmRSS")
    }

    /// The CPU time of all its threads.
    pub fn cpu_time(&self) -> Result<Duration> {
        let mut time = Duration::ZERO;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            let on_cpu = text.split_whitespace().next().and_then(|word| word.parse().ok());
            time += Duration::from_nanos(on_cpu.context("no schedstat")?);
        }
        Ok(time)
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// All lines that it has told.
    pub fn out(&self) -> String {
        self.process.out()
    }

    /// All that it has told, in short.
    pub fn story(&self) -> String {
        let out = self.process.out();
        let lines: Vec<&str> = out.lines().filter(|line| !line.starts_with("at=")).collect();
        let (read, err, threads) = (self.read(), self.process.err(), self.process.threads());
        format!("it has told\n{}\n{read}\n{err}\nits threads\n{threads}", lines.join("\n"))
    }
}

/// A subscriber's account of a stream that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The topic.
    pub topic: String,
    /// Why it is over, in a word.
    pub why: String,
    /// The number of its first message.
    pub first: u64,
    /// Messages read.
    pub read: u64,
    /// Messages reported as lost.
    pub lost: u64,
    /// The number of the message that would have come next.
    pub next: u64,
}

impl Left {
    fn parse(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |key: &str| {
            let mut after = words.iter().skip_while(|word| **word != key).skip(1);
            let number = after.next().and_then(|word| word.parse().ok());
            number.with_context(|| format!("no {key} in {line}"))
        };
        ensure!(words.len() > 2, "no account: {line}");
        Ok(Self {
            topic: words[0].to_owned(),
            why: words[1].to_owned(),
            first: number("first")?,
            read: number("read")?,
            lost: number("lost")?,
            next: number("next")?,
        })
    }
}
