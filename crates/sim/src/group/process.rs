//! One incarnation of a member's process.

use crate::group::outlet::Collector;
use crate::rng::{Millionths, SimRng};
use lanecast_membership::{GroupSettings, Member, MemberId, MemberInfo};
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
    /// Its member has left, and nothing drives it any more.
    HasLeft,
}

/// A place for a process, and how much of its load is left.
#[derive(Debug, Default)]
pub struct Slot {
    /// The process, if one runs there.
    pub process: Option<Process>,
    /// Incarnations so far.
    pub incarnations: u32,
    /// Messages to send.
    pub messages: u64,
    /// Time of its next burst.
    pub sends_at: Option<Nanos>,
}

/// One incarnation of a member's process.
#[derive(Debug)]
pub struct Process {
    /// Its member.
    pub member: Member,
    /// Id of this incarnation.
    pub id: MemberId,
    /// Counts the incarnations of the place.
    pub incarnation: u32,
    /// Its state.
    pub running: Running,
    /// Probability with which its transport refuses a frame.
    pub refuses: Millionths,
    /// Frames that wait to be handled.
    pub inbox: VecDeque<Rc<[u8]>>,
    /// Their bytes.
    pub inbox_bytes: usize,
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

    /// Whether the application takes part: runs, and has not left.
    pub fn is_live(&self) -> bool {
        self.running != Running::HasLeft && !self.leaves
    }
}
