//! One repetition: makes the network, starts a member on each host, strikes one if asked, and
//! gathers what they print.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lanecast_system_tests::{Loss, Network, Process};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::clock::monotonic;
use crate::member::Ordering;
use crate::outcome::{Lines, Outcome, Struck};
use crate::side::{Case, Fault, Programs};

const LOOK: Duration = Duration::from_millis(5);
/// Longest time for members to find each other.
const START_LIMIT: Duration = Duration::from_secs(45);
/// Time that a member has for its last lines after its own limit.
const END_LIMIT: Duration = Duration::from_secs(5);
const PER_MILLE: u32 = 10;

/// Runs one case; `messages` is for `lanecast perf group`, which is not run by time, and
/// `repetition` chooses the member that a fault strikes: the last, then the first, in turn.
///
/// # Errors
///
/// When the network cannot be made, or members do not find each other.
pub fn measure(
    programs: &Programs,
    case: &Case,
    messages: u64,
    repetition: usize,
) -> Result<Outcome> {
    // A new one each time: fragments that a lossy run has left fill the kernel's memory for them.
    let network = Network::bridged(case.members)?;
    if case.frames {
        network.send_frames()?;
    }
    if case.loss > 0 {
        network.lose(&Loss::per_mille(case.loss * PER_MILLE))?;
    }
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("domain"))?;
    let mut members = Vec::new();
    for index in 0..case.members {
        let words = programs.command(case, index, &network, folder.path(), messages)?;
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        let mut command = Command::new(own);
        command.arg("raise").args(words);
        members.push(Process::start(command, Stdio::null())?);
    }
    let limit = START_LIMIT + Duration::from_millis(case.limit_ms) + END_LIMIT;
    if case.side.is_tool() {
        let mut line = None;
        for member in members {
            let done = member.finish(limit)?;
            let text = String::from_utf8_lossy(&done.out).into_owned();
            if line.is_none() {
                let text = text.lines().last().with_context(|| done.err.clone())?;
                line = Some(serde_json::from_str(text)?);
            }
        }
        return Ok(Outcome::of_tool(&line.context("a group has a member")?));
    }
    let struck = watch(case, &members, limit, repetition)?;
    let printed: Vec<String> = members.iter().map(Process::out).collect();
    if programs.is_verbose {
        for (index, text) in printed.iter().enumerate() {
            let lines = text.lines().map(|line| format!("m{index}: {line}\n"));
            eprint!("{}", lines.collect::<String>());
        }
        eprintln!("struck: {struck:?}");
    }
    Ok(Outcome::of(&printed, case.order == Ordering::Total, struck))
}

/// Waits for the results of all members that stay, and strikes one in between.
fn watch(
    case: &Case,
    members: &[Process],
    limit: Duration,
    repetition: usize,
) -> Result<Option<Struck>> {
    let begun = Instant::now();
    let mut started = None;
    let mut struck: Option<Struck> = None;
    loop {
        let printed: Vec<String> = members.iter().map(Process::out).collect();
        let has_started = |text: &String| Lines(text).named("started").next().is_some();
        if started.is_none() && printed.iter().all(has_started) {
            started = Some(Instant::now());
        }
        let is_round = case.rounds > 0;
        let mut awaited = printed.iter().enumerate();
        let is_over = match is_round {
            true => Lines(&printed[0]).has_ended(true),
            false => awaited.all(|(index, text)| {
                struck.is_some_and(|it| it.victim == index) || Lines(text).has_ended(false)
            }),
        };
        if is_over || begun.elapsed() > limit {
            return Ok(struck);
        }
        match started {
            None if begun.elapsed() > START_LIMIT => {
                let said: Vec<String> = members.iter().map(Process::err).collect();
                bail!("members did not find each other: {}", said.join(" | "));
            }
            Some(since) if struck.is_none() => {
                let (after, signal) = match case.fault {
                    Some(Fault::Kill(after)) => (after, Signal::SIGKILL),
                    Some(Fault::Stop(after)) => (after, Signal::SIGSTOP),
                    None => (u64::MAX, Signal::SIGKILL),
                };
                if since.elapsed() >= Duration::from_millis(after) {
                    let victim = if repetition.is_multiple_of(2) { members.len() - 1 } else { 0 };
                    let process = Pid::from_raw(members[victim].pid().cast_signed());
                    struck = Some(Struck { victim, at: monotonic() });
                    kill(process, signal)?;
                }
            }
            _ => {}
        }
        sleep(LOOK);
    }
}
