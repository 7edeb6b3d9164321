//! One repetition: makes the network, starts a member on each host, lets all warm up, starts the
//! clock, strikes a member if asked, and gathers what they print.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lanecast_system_tests::{Loss, Network, Process};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::clock::monotonic;
use crate::member::Ordering;
use crate::outcome::{Lines, Outcome, Struck};
use crate::side::{Case, Fault, Programs};

const LOOK: Duration = Duration::from_millis(5);
/// Longest time for members to find each other and to warm up.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Time that a member has for its last lines after its own limit.
const END_LIMIT: Duration = Duration::from_secs(5);
const PER_MILLE: u32 = 10;
/// Characters that a failure shows of what a member has said.
const SAID: usize = 300;

/// Runs one case; `messages` is for `lanecast perf group`, which is not run by time, and
/// `repetition` chooses the member that a fault strikes: the last, then the first, in turn.
///
/// # Errors
///
/// When the network cannot be made, members do not find each other, or one ends by itself.
pub fn measure(
    programs: &Programs,
    case: &Case,
    messages: u64,
    repetition: usize,
) -> Result<Outcome> {
    // A new one each time: fragments that a lossy run has left fill the kernel's memory for them.
    let network = Network::bridged(case.members)?;
    if let Some(bytes) = case.mtu {
        network.set_mtu(bytes)?;
    }
    if case.frames {
        network.send_frames()?;
    }
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("domain"))?;
    let mut members = Vec::new();
    for index in 0..case.members {
        let words = programs.command(case, index, &network, folder.path(), messages)?;
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        let mut command = Command::new(own);
        command.arg("raise").args(words);
        members.push(Process::start(command, Stdio::piped())?);
    }
    if case.side.is_tool() {
        return tool(members, START_LIMIT + Duration::from_millis(case.limit_ms));
    }
    let outcome = clocked(case, &mut members, &network, repetition);
    if programs.is_verbose {
        for (index, member) in members.iter().enumerate() {
            let all = member.out() + &member.err();
            eprint!("{}", all.lines().map(|it| format!("m{index}: {it}\n")).collect::<String>());
        }
    }
    outcome
}

/// The outcome of `lanecast perf group`: every member prints the same line.
fn tool(members: Vec<Process>, limit: Duration) -> Result<Outcome> {
    let mut line = None;
    for member in members {
        let done = member.finish(limit)?;
        let text = String::from_utf8_lossy(&done.out).into_owned();
        if line.is_none() {
            let text = text.lines().last().with_context(|| done.err.clone())?;
            line = Some(serde_json::from_str(text)?);
        }
    }
    Ok(Outcome::of_tool(&line.context("a group has a member")?))
}

/// The outcome of members that wait for the start of the clock.
fn clocked(
    case: &Case,
    members: &mut [Process],
    network: &Network,
    repetition: usize,
) -> Result<Outcome> {
    let begun = Instant::now();
    while !members.iter().all(|member| has(member, "warm")) {
        check(members, None)?;
        if begun.elapsed() > START_LIMIT {
            let views = members.iter().map(|member| {
                let sizes =
                    Lines(&member.out()).named("view").last().map(|it| it["members"].into());
                sizes.unwrap_or_else(|| "no".to_owned())
            });
            let views = views.collect::<Vec<_>>().join(", ");
            bail!(
                "not all members were warm after {} s; members in their last views: {views}{}",
                START_LIMIT.as_secs(),
                said(members)
            );
        }
        sleep(LOOK);
    }
    let ready_ns = begun.elapsed().as_nanos() as u64;
    // Not before: members then find each other and warm up alike on every side, and the row shows
    // what the loss does to their messages.
    if case.loss > 0 {
        network.lose(&Loss::per_mille(case.loss * PER_MILLE))?;
    }
    members.iter_mut().try_for_each(|member| member.feed("go\n"))?;
    let struck = watch(case, members, repetition)?;
    let printed: Vec<String> = members.iter().map(Process::out).collect();
    Ok(Outcome { ready_ns, ..Outcome::of(&printed, case.order == Ordering::Total, struck) })
}

/// Waits for the results of all members that stay, and strikes one in between.
fn watch(case: &Case, members: &[Process], repetition: usize) -> Result<Option<Struck>> {
    let begun = Instant::now();
    let limit = Duration::from_millis(case.limit_ms) + END_LIMIT;
    let mut struck: Option<Struck> = None;
    loop {
        let mut awaited = members.iter().enumerate();
        let is_over = match case.rounds {
            0 => awaited.all(|(index, member)| {
                struck.is_some_and(|it| it.victim == index) || has(member, "result")
            }),
            _ => has(&members[0], "rounds"),
        };
        // A member that cannot end in time has no result, which the outcome counts.
        if is_over || begun.elapsed() > limit {
            return Ok(struck);
        }
        check(members, struck)?;
        if struck.is_none()
            && let Some(fault) = case.fault
            && begun.elapsed() >= fault.after()
        {
            let victim = if repetition.is_multiple_of(2) { members.len() - 1 } else { 0 };
            let process = Pid::from_raw(members[victim].pid().cast_signed());
            let signal = match fault {
                Fault::Kill(_) => Signal::SIGKILL,
                Fault::Stop(_) => Signal::SIGSTOP,
            };
            struck = Some(Struck { victim, at: monotonic() });
            kill(process, signal)?;
        }
        sleep(LOOK);
    }
}

fn has(member: &Process, line: &str) -> bool {
    Lines(&member.out()).named(line).next().is_some()
}

/// Fails when a member has ended that was not struck: the others would wait for it in vain.
fn check(members: &[Process], struck: Option<Struck>) -> Result<()> {
    for (index, member) in members.iter().enumerate() {
        let is_struck = struck.is_some_and(|it| it.victim == index);
        ensure!(is_struck || !has_ended(member), "member {index} has ended{}", said(members));
    }
    Ok(())
}

/// Whether the process is one that only waits to be reaped.
fn has_ended(member: &Process) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{}/stat", member.pid())) else { return true };
    text.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// The last words of each member on its standard error.
fn said(members: &[Process]) -> String {
    let mut all = String::new();
    for (index, member) in members.iter().enumerate() {
        let text = member.err();
        let words: Vec<&str> = text.split_whitespace().collect();
        let text: Vec<char> = words.join(" ").chars().collect();
        if !text.is_empty() {
            let last: String = text[text.len().saturating_sub(SAID)..].iter().collect();
            all += &format!("; m{index}: {last}");
        }
    }
    all
}
