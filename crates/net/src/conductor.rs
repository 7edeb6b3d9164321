//! The thread beside the path of messages: finds publishers, and stands in for owners that are
//! busy elsewhere. Or two threads: one for all that is sent, one for all else.

use crate::presence::{Attention, Descriptor};
use crate::watch::Watch;
use lanecast_base::Agent;
use lanecast_base::clock::Clock;
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// The first rest while owners look after their ends themselves, and the longest.
const REST: Nanos = 100 * MICROSECOND;
const REST_MAX: Nanos = 16 * MILLISECOND;
/// The longest rest while a publisher's commits wait for company, which may not come: as rests
/// begin short and grow, the tail of a stream is not later than the stream took.
const CORKED_REST_MAX: Nanos = 4 * MILLISECOND;

/// What a turn has found: what to sleep on, and until when.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) descriptors: Vec<(Descriptor, bool)>,
    pub(crate) due: Nanos,
    /// Owners look after ends themselves, or have to be looked for again.
    pub(crate) attended: bool,
}

/// What a conductor looks after.
pub(crate) trait Part: Debug + Send {
    /// One turn; returns how many things it did.
    fn turn(&mut self, now: Nanos, findings: &mut Findings) -> usize;

    /// Whether an owner, who would not have rung, has been at its end since.
    fn was_entered(&self) -> bool {
        false
    }

    /// Whether commits wait for company.
    fn is_corked(&self) -> bool {
        false
    }
}

/// The duty cycle.
#[derive(Debug)]
pub(crate) struct Conductor {
    name: &'static str,
    parts: Vec<Box<dyn Part>>,
    attention: Arc<Attention>,
    /// Whether it moves all bytes itself, and never leaves that to owners.
    always: bool,
    clock: Clock,
    watch: Watch,
    rest: Nanos,
    findings: Findings,
}

impl Conductor {
    pub(crate) fn new(
        name: &'static str,
        parts: Vec<Box<dyn Part>>,
        attention: Arc<Attention>,
        always: bool,
    ) -> Self {
        let findings = Findings { descriptors: Vec::new(), due: Nanos::MAX, attended: false };
        let (clock, watch) = (Clock::host(), Watch::default());
        Self { name, parts, attention, always, clock, watch, rest: REST, findings }
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    /// How long to rest while owners look after their ends themselves.
    fn next_rest(&self) -> Nanos {
        let longer = self.rest * 2;
        if self.always {
            REST
        } else if !self.parts.iter().any(|part| part.is_corked()) {
            longer.min(REST_MAX)
        } else if self.rest > CORKED_REST_MAX {
            REST
        } else {
            longer.min(CORKED_REST_MAX)
        }
    }

    /// How long to sleep if nobody rings.
    fn limit(&mut self) -> Nanos {
        if self.findings.attended {
            self.rest = self.next_rest();
            return self.rest;
        }
        self.rest = REST;
        self.attention.fall_asleep();
        match self.parts.iter().any(|part| part.was_entered()) {
            false => Nanos::MAX,
            // Nobody else does what the owner has left to do.
            true if self.always => 0,
            true => REST,
        }
    }
}

impl Agent for Conductor {
    fn do_work(&mut self) -> usize {
        let now = self.now();
        self.findings.descriptors.clear();
        (self.findings.due, self.findings.attended) = (Nanos::MAX, false);
        self.parts.iter_mut().map(|part| part.turn(now, &mut self.findings)).sum()
    }

    fn idle(&mut self) {
        let now = self.now();
        let limit = self.limit().min(self.findings.due.saturating_sub(now));
        let limit = (limit != Nanos::MAX).then(|| Duration::from_nanos(limit));
        self.watch.sleep_beside(&self.attention.bells(), &self.findings.descriptors, limit);
        self.attention.wake_up();
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
