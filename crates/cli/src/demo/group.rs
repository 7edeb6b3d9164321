//! The group part: processes that all send to all, one of them killed. The survivors agree on a
//! view without it, and on its last messages.

use super::actors::context;
use super::control::Control;
use crate::child::{ChildProcess, Deadline};
use crate::output::print_json;
use crate::table::{grouped, time};
use crate::temp_domain::TempDomain;
use lanecast::group::{Event, MemberId, Order};
use lanecast_base::clock::Clock;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Members at first.
const MEMBERS: usize = 4;
/// Messages that a member sends between two polls, if it may.
const BURST: usize = 16;
/// Load before the kill.
const LOAD: Duration = Duration::from_millis(500);
/// Longest life of a member: longer than the part takes on a busy machine.
const LONGEST_LIFE: Duration = Duration::from_secs(60);

/// A new view, as a member reports it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ViewFigures {
    epoch: u64,
    members: Vec<String>,
    /// When the view began, by the host's clock.
    at_ns: u64,
    /// Epoch of the view before.
    ended: u64,
    /// Messages delivered in it.
    delivered: u64,
    /// Hash of them, by sender, in the senders' order.
    digest: u64,
    out_of_order: u64,
}

/// Results of the group's part.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    members: usize,
    victim_pid: u32,
    /// Time from the kill to the new view, at the slowest survivor.
    view_ns: u64,
    /// Survivors that went on together, so that they must have the same messages.
    compared: usize,
    /// Messages that each of them had delivered before the new view.
    delivered: u64,
    out_of_order: u64,
    /// Whether survivors that went from view to view together had the same messages.
    agreed: bool,
}

impl Outcome {
    /// Whether survivors were compared and agree, and nothing was out of order.
    pub(super) const fn is_right(&self) -> bool {
        self.compared > 1 && self.agreed && self.out_of_order == 0
    }

    /// The figures and the verdict, for people.
    pub(super) fn words(&self) -> String {
        let Self { members, victim_pid, .. } = self;
        let verdict = if self.is_right() {
            format!(
                "{} survivors went on together and have the same messages, those of the killed \
                 member too.",
                self.compared
            )
        } else if self.compared < 2 {
            "The survivors were parted, so there is nothing to compare: try it on a less busy \
             machine."
                .into()
        } else {
            "The survivors differ: this should not happen, please report it.".into()
        };
        format!(
            "A group of {members} processes, each sending to all; process {victim_pid} is killed \
             (kill -9).\n\n\
             new view  {:>12}   after the kill, at the slowest survivor\n\
             delivered {:>12}   messages at each of them before that, {} out of order\n\n\
             {verdict}",
            time(self.view_ns),
            grouped(self.delivered),
            self.out_of_order,
        )
    }
}

/// Runs the members, kills the last one, and compares the survivors.
pub(super) fn run(control: &Control<'_>) -> anyhow::Result<Outcome> {
    (control.step)("group: joining");
    let stage = TempDomain::build("group")?;
    let domain = stage.path("domain").to_string_lossy().into_owned();
    let deadline = control.deadline(LONGEST_LIFE);
    let mut members = (0..MEMBERS)
        .map(|number| {
            let words = ["demo".into(), "member".into(), domain.clone(), format!("m{number}")];
            ChildProcess::start("member", &words)
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut together = 0;
    for member in &mut members {
        let view = until(member, &deadline, |view| view.members.len() == MEMBERS)?;
        together = together.max(view.epoch);
    }
    (control.step)("group: sending, one member killed");
    control.sleep(LOAD)?;
    let clock = Clock::host();
    let mut victim = members.remove(MEMBERS - 1);
    let killed = clock.ns(clock.ticks());
    victim.end();
    let name = format!("m{}", MEMBERS - 1);
    // By the next view, the hash and number of messages of each survivor that went there.
    let mut passages = BTreeMap::<(u64, Vec<String>), Vec<(u64, u64)>>::new();
    let (mut view_ns, mut out_of_order) = (0, 0);
    for member in &mut members {
        // A busy machine may part the survivors for a moment: they merge again.
        let end = until(member, &deadline, |view| {
            if view.ended == together {
                let next = (view.epoch, view.members.clone());
                passages.entry(next).or_default().push((view.digest, view.delivered));
                out_of_order += view.out_of_order;
            }
            view.members.len() == MEMBERS - 1 && !view.members.contains(&name)
        })?;
        view_ns = view_ns.max(end.at_ns.saturating_sub(killed));
    }
    let agreed = passages.values().all(|seen| seen.iter().all(|one| *one == seen[0]));
    let largest = passages.values().max_by_key(|seen| seen.len());
    let (compared, delivered) = largest.map_or((0, 0), |seen| (seen.len(), seen[0].1));
    let victim_pid = victim.pid();
    Ok(Outcome { members: MEMBERS, victim_pid, view_ns, compared, delivered, out_of_order, agreed })
}

/// Reads the views of a member up to the wanted one.
fn until(
    member: &mut ChildProcess,
    deadline: &Deadline<'_>,
    mut is_wanted: impl FnMut(&ViewFigures) -> bool,
) -> anyhow::Result<ViewFigures> {
    loop {
        let view: ViewFigures = member.read(deadline)?;
        if is_wanted(&view) {
            return Ok(view);
        }
    }
}

/// Messages of one view.
#[derive(Debug, Default)]
struct Account {
    epoch: u64,
    /// Messages and their hash by sender.
    senders: BTreeMap<MemberId, (u64, u64)>,
    /// Next number of each sender.
    next: BTreeMap<MemberId, u64>,
    out_of_order: u64,
}

impl Account {
    fn message(&mut self, from: MemberId, bytes: &[u8]) {
        let number = bytes.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
        let next = self.next.entry(from).or_insert(number);
        self.out_of_order += u64::from(*next != number);
        *next = number + 1;
        let (count, hash) = self.senders.entry(from).or_default();
        (*count, *hash) = (*count + 1, mixed(*hash, number));
    }

    /// Delivered messages, and their hash.
    fn total(&self) -> (u64, u64) {
        let entries = self.senders.iter();
        entries.fold((0, 0), |(total, all), (id, (count, hash))| {
            (total + count, mixed(mixed(all, id.0), *hash))
        })
    }
}

/// A step of FNV-1a, on words.
const fn mixed(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x0100_0000_01b3)
}

/// A member that sends to all as fast as they take it, and reports each view. It is ended by its
/// starter.
pub(super) fn member(directory: &Path, name: &str) -> anyhow::Result<ExitCode> {
    let mut group = context(directory)?.group("demo").name(name).join()?;
    let (clock, start) = (Clock::host(), Instant::now());
    let (mut account, mut number, mut failed) = (Account::default(), 0_u64, None);
    while start.elapsed() < LONGEST_LIFE {
        let work = group.poll(256, |event| match event {
            Event::Message { from, bytes, .. } => account.message(from, bytes),
            Event::View(view, change) => {
                let (delivered, digest) = account.total();
                let figures = ViewFigures {
                    epoch: view.id.epoch,
                    members: view.members.iter().map(|member| member.name.clone()).collect(),
                    at_ns: clock.ns(clock.ticks()),
                    ended: account.epoch,
                    delivered,
                    digest,
                    out_of_order: account.out_of_order,
                };
                failed = print_json(&figures).err();
                // Members that come back went on counting meanwhile.
                let stays = |id: &MemberId| {
                    view.contains(*id) && !change.joined.iter().any(|it| it.id == *id)
                };
                account.next.retain(|id, _| stays(id) && !change.merged);
                account.senders.clear();
                account.epoch = view.id.epoch;
            }
            _ => {}
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        for _ in 0..BURST {
            if group.try_send(&number.to_le_bytes(), Order::Sender).is_err() {
                break;
            }
            number += 1;
        }
        group.wait(work);
    }
    Ok(ExitCode::SUCCESS)
}
