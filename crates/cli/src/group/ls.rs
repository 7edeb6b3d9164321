//! `lanecast group ls`: the members and views of groups, from their heartbeats.

use super::other_version;
use crate::context::WayArgs;
use crate::output::{print, print_json, warn};
use crate::printable::printable;
use crate::table::{counted, render};
use lanecast::group::{MemberActivity, ObservedMember, group_of_topic};
use lanecast::shm::DomainSnapshot;
use lanecast::{Context, GroupObserver, parse_duration};
use lanecast_report::TextTable;
use lanecast_stats::StatsSnapshot;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Frames read at once.
const POLL_LIMIT: usize = 256;
/// Longest wait between two looks at the clock.
const LONGEST_WAIT: Duration = Duration::from_millis(10);
/// Arguments of `group ls`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without names, the groups that have a member on this host. Each member sends \
    a heartbeat every 100 ms unless set otherwise.\n\
    Columns: behind counts the frames that a member has not received, but another one has.\n\
    Example: lanecast group ls lunch --transports rm\n\
    Exit status: 0 a member was seen; 1 none, or an error; 2 wrong arguments."
)]
pub(crate) struct LsArgs {
    /// Groups
    #[arg(value_name = "GROUP")]
    groups: Vec<String>,

    /// Time to listen for heartbeats
    #[arg(long = "for", value_name = "DURATION", default_value = "500ms")]
    #[arg(value_parser = parse_duration)]
    time: Duration,

    /// Print one JSON array with an object for each group
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    way: WayArgs,
}

pub(super) fn run(arguments: &LsArgs) -> anyhow::Result<ExitCode> {
    let Some(context) = arguments.way.looking()? else {
        if arguments.json {
            print_json(&json!([]))?;
        }
        return Ok(ExitCode::FAILURE);
    };
    let directory = &context.config().shm.directory;
    let mut names: BTreeSet<String> = arguments.groups.iter().cloned().collect();
    if names.is_empty() {
        let memory = DomainSnapshot::take(directory)?;
        names = local_groups(&memory, &StatsSnapshot::take(directory)?);
    }
    let groups = names.iter().map(|name| Observed::open(&context, name));
    let mut groups = groups.collect::<anyhow::Result<Vec<_>>>()?;
    listen(&mut groups, arguments.time, &crate::stop::flag()?);
    for group in groups.iter().filter(|group| group.observer.unreadable_frames() > 0) {
        let reason = match group.observer.other_version() {
            Some(version) => other_version::explain(version),
            None => "the group has a key (group.key_file)".to_owned(),
        };
        let frames = counted(group.observer.unreadable_frames(), "frame");
        warn(&format!("group {}: {frames} cannot be read: {reason}", group.name));
    }
    let is_any = groups.iter().any(|group| !group.observer.members().is_empty());
    if arguments.json {
        print_json(&groups.iter().map(Observed::to_json).collect::<Vec<_>>())?;
    } else if is_any {
        print(&to_text(&groups))?;
    } else if groups.is_empty() {
        let at = directory.display();
        warn(&format!("no group has a member on this host ({at}): name one of other hosts"));
    } else {
        warn(&format!("no member of {} was heard", Vec::from_iter(names).join(", ")));
    }
    Ok(ExitCode::from(u8::from(!is_any)))
}

/// A group and its observer.
struct Observed {
    name: String,
    observer: GroupObserver,
}

impl Observed {
    fn open(context: &Context, name: &str) -> anyhow::Result<Self> {
        Ok(Self { name: name.to_owned(), observer: context.group(name).observe()? })
    }

    fn row(&self, member: &ObservedMember) -> [String; 7] {
        let view = member.view.map_or_else(String::new, |view| view.epoch.to_string());
        [
            self.name.clone(),
            view,
            printable(&member.info.name),
            member.info.id.to_string(),
            role(member).into(),
            activity(member.activity).into(),
            self.observer.behind(member).to_string(),
        ]
    }

    fn to_json(&self) -> Value {
        let members = self.observer.members().iter().map(|member| {
            json!({
                "id": member.info.id.to_string(),
                "name": member.info.name,
                "started_unix_us": member.info.incarnation,
                "port": member.info.port,
                "state": activity(member.activity),
                "epoch": member.view.map(|view| view.epoch),
                "coordinator": member.view.map(|view| view.coordinator.to_string()),
                "frames_behind": self.observer.behind(member),
            })
        });
        json!({
            "group": self.name,
            "members": members.collect::<Vec<_>>(),
            "unreadable_frames": self.observer.unreadable_frames(),
        })
    }
}

/// The groups that have a member on this host, by the topics of their sessions.
pub(crate) fn local_groups(memory: &DomainSnapshot, network: &StatsSnapshot) -> BTreeSet<String> {
    let sessions = memory.sessions.iter().filter(|session| session.is_alive && !session.is_closed);
    let topics = sessions.flat_map(|session| &session.topics);
    let reports = network.reports.iter().filter(|report| report.is_alive);
    let topics = topics.chain(reports.flat_map(|report| &report.topics));
    topics.filter_map(|topic| group_of_topic(topic)).map(str::to_owned).collect()
}

/// Reads all heartbeats for `time`, or until a signal.
fn listen(groups: &mut [Observed], time: Duration, stop: &impl Fn() -> bool) {
    let start = Instant::now();
    let left = || time.checked_sub(start.elapsed());
    while let Some(left) = left().filter(|_| !groups.is_empty() && !stop()) {
        let work: usize = groups.iter_mut().map(|group| group.observer.poll(POLL_LIMIT)).sum();
        groups[0].observer.wait_at_most(work, LONGEST_WAIT.min(left));
    }
}

fn to_text(groups: &[Observed]) -> String {
    let columns = ["group", ">view", "member", "id", "role", "state", ">behind"];
    let mut table = TextTable::new(&columns);
    for group in groups {
        for member in group.observer.members() {
            table.row(group.row(member));
        }
    }
    render(&table)
}

/// Role of a member in its view.
fn role(member: &ObservedMember) -> &'static str {
    match member.view {
        Some(view) if view.coordinator == member.info.id => "coordinator",
        Some(_) => "member",
        None => "",
    }
}

const fn activity(activity: MemberActivity) -> &'static str {
    match activity {
        MemberActivity::Seeking => "seeking",
        MemberActivity::Member => "in the view",
        MemberActivity::Changing => "changing",
        MemberActivity::Leaving => "leaving",
    }
}
