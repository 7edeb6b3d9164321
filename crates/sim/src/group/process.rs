//! One incarnation of a member's process.

use crate::ensure;
use crate::group::event::OwnedEvent;
use crate::group::outlet::Collector;
use crate::group::suspicions::Suspicions;
use crate::rng::{Millionths, SimRng};
use crate::violation::Verdict;
use lanecast_membership::{GroupSettings, Member, MemberId, MemberInfo, View};
use lanecast_protocol::Nanos;
use std::collections::VecDeque;
use std::rc::Rc;

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// The process runs.
    Runs,
    /// The process is suspended: frames fill its socket.
    Hangs,
    /// The member has left, and nothing drives it any more.
    HasLeft,
}

/// A place for a process, and how much of its load is left.
#[derive(Debug, Default)]
pub struct Slot {
    /// The process, if one runs there.
    pub process: Option<Process>,
    /// Incarnations so far.
    pub incarnations: u32,
    /// Time by its host's clock at the latest start.
    pub latest_start: Option<u64>,
    /// Messages to send.
    pub messages: u64,
    /// Time of its next burst.
    pub sends_at: Option<Nanos>,
}

impl Slot {
    /// State in words; `view`: the process's view.
    pub fn describe(&self, view: Option<&View>) -> String {
        let Some(process) = &self.process else { return "does not run".to_owned() };
        let names = |view: &View| {
            let names = view.members.iter().map(|member| member.name.clone());
            (view.id.to_string(), names.collect::<Vec<_>>())
        };
        let (view, Process { id, running, leaves, .. }) = (view.map(names), process);
        format!("{id} {running:?}, leaves {leaves}, {} to send, view {view:?}", self.messages)
    }
}

/// One incarnation of a member's process.
#[derive(Debug)]
pub struct Process {
    /// The member.
    pub member: Member,
    /// Id of this incarnation.
    pub id: MemberId,
    /// Counts the incarnations of the place.
    pub incarnation: u32,
    /// The state.
    pub running: Running,
    /// Probability with which its transport refuses a frame.
    pub refuses: Millionths,
    /// Frames that wait to be handled.
    pub inbox: VecDeque<Rc<[u8]>>,
    inbox_bytes: usize,
    /// Time at which it has handled its latest frame.
    pub busy_until: Nanos,
    /// Time for which a wake-up is in the event queue.
    pub wakes_at: Option<Nanos>,
    /// Whether `leave` was called.
    pub leaves: bool,
    /// Frames sent: to all, and to one.
    pub frames: [u64; 2],
    /// Ticks in a row that did not move the next one into the future.
    pub idle_ticks: u32,
    /// Suspicions that its application was told.
    pub suspicions: Suspicions,
    rng: SimRng,
}

impl Process {
    /// Starts a process.
    ///
    /// # Panics
    /// If the settings contradict each other.
    pub fn start(
        settings: &GroupSettings,
        info: MemberInfo,
        incarnation: u32,
        now: Nanos,
        mut rng: SimRng,
    ) -> Self {
        let id = info.id;
        let member = Member::new(settings.clone(), info, "simulated", rng.any(), now);
        Self {
            member: member.expect("the settings are valid"),
            id,
            incarnation,
            running: Running::Runs,
            refuses: 0,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            busy_until: 0,
            wakes_at: None,
            leaves: false,
            frames: [0; 2],
            idle_ticks: 0,
            suspicions: Suspicions::default(),
            rng,
        }
    }

    /// Calls the member, with a collector of its frames and events.
    pub fn call<R>(
        &mut self,
        call: impl FnOnce(&mut Member, &mut Collector) -> R,
    ) -> (R, Collector) {
        let mut out = Collector::new(self.refuses, self.rng.fork());
        let result = call(&mut self.member, &mut out);
        (result, out)
    }

    /// Queues a frame until it is handled; false if there is no room for it.
    pub fn queue(&mut self, bytes: Rc<[u8]>, most: usize) -> bool {
        let fits = self.inbox_bytes + bytes.len() <= most;
        if fits {
            self.inbox_bytes += bytes.len();
            self.inbox.push_back(bytes);
        }
        fits
    }

    /// Takes the next frame out of the queue.
    pub fn next_frame(&mut self) -> Option<Rc<[u8]>> {
        let bytes = self.inbox.pop_front()?;
        self.inbox_bytes -= bytes.len();
        Some(bytes)
    }

    /// Whether the application takes part: runs, and has not left.
    pub fn is_live(&self) -> bool {
        self.running != Running::HasLeft && !self.leaves
    }
}

/// Checks that, without faults, only members that leave are missing in a view.
pub fn check_departures(slots: &[Slot], id: MemberId, events: &[OwnedEvent]) -> Verdict {
    for event in events {
        let OwnedEvent::View(view, change) = event else { continue };
        for (member, why) in &change.left {
            let mut processes = slots.iter().filter_map(|slot| slot.process.as_ref());
            let leaves = processes.any(|process| process.leaves && process.id == member.id);
            ensure!(leaves, "{id} misses {member:?} in {}, but it runs: {why:?}", view.id);
        }
    }
    Ok(())
}
