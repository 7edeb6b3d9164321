//! `lanecast group join`: a member that talks.

use super::input::{self, Line};
use super::join_args::JoinArgs;
use super::report::Report;
use crate::output::{ReaderCheck, warn};
use crate::refused_hosts::RefusedHosts;
use crate::stop;
use lanecast::Group;
use lanecast::group::{MemberId, SendError};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

/// The exit status of a member that left without an answer of the others.
const UNANSWERED: u8 = 3;
/// Frames read at once.
const POLL_LIMIT: usize = 256;
/// Longest wait, for lines that are typed and for signals.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

pub(super) fn run(arguments: &JoinArgs) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let context = arguments.way.outward()?;
    let mut group = context.group(&arguments.group).name(arguments.name()).join()?;
    let lines = if arguments.listen { None } else { Some(input::lines()?) };
    let mut report = Report::new(arguments.json, arguments.quiet);
    let mut reader = ReaderCheck::new();
    let (mut refused_datagrams, mut refused_frames) = (RefusedHosts::new(), RefusedHosts::new());
    while !stop() {
        let mut work = group.poll(POLL_LIMIT, |event| report.event(event));
        if let Some(lines) = &lines {
            match next(lines, &group) {
                Ok(Line::Leave) | Err(TryRecvError::Disconnected) => break,
                Ok(line) => {
                    work += 1;
                    obey(line, arguments, &mut group, &mut report);
                }
                Err(TryRecvError::Empty) => {}
            }
        }
        if let Some(error) = report.failed.take() {
            return Err(error.into());
        }
        reader.check()?;
        if report.has_left {
            warn("another member has taken this name");
            return Ok(ExitCode::from(UNANSWERED));
        }
        refused_datagrams.tell(&context);
        refused_frames.tell_group(&group);
        group.wait_at_most(work, LONGEST_WAIT);
    }
    let is_known = group.leave_with(arguments.leave_timeout, |event| report.event(event));
    if !is_known {
        warn("the other members have not agreed on a view without this one in time");
    }
    Ok(ExitCode::from(if is_known { 0 } else { UNANSWERED }))
}

/// The next line, once there is a view that it can be sent in.
fn next(lines: &Receiver<Line>, group: &Group) -> Result<Line, TryRecvError> {
    if group.has_view() { lines.try_recv() } else { Err(TryRecvError::Empty) }
}

fn obey(line: Line, arguments: &JoinArgs, group: &mut Group, report: &mut Report) {
    let sent = match line {
        Line::Text(text) => group.send(&text, arguments.order(), |event| report.event(event)),
        Line::To(name, text) => match find(group, &name) {
            Some(to) => group.send_to(to, &text, |event| report.event(event)),
            None => return warn(&format!("no member is called {name}: /members lists them")),
        },
        Line::Members => return report.list(group.view(), group.me().id),
        Line::Stats => return report.stats(group.counters(), group.stable()),
        Line::Wrong(text) => return warn(&text),
        Line::Leave => return,
    };
    match sent {
        Ok(_) | Err(SendError::HasLeft) => {}
        Err(error) => warn(&format!("not sent: {error}")),
    }
}

/// The member of that name or id.
fn find(group: &Group, name: &str) -> Option<MemberId> {
    let mut members = group.view().members.iter();
    members.find(|member| member.name == name || member.id.to_string() == name).map(|it| it.id)
}
