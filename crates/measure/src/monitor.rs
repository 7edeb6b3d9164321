//! A run being watched, from its preparation to its end.

use crate::conditions::{Conditions, Setup};
use crate::interference::{CounterSnapshot, Interference, Watched, load_average};
use crate::latency::LatencyRecorder;
use crate::pinning::{Cpus, Pinning, PinningError};
use crate::probe::Probe;
use crate::real_time::RealTime;
use crate::touch::Touch;
use lanecast_base::clock::Clock;

/// What is known of a run; used in the measured thread.
#[derive(Debug)]
pub(crate) struct RunMonitor {
    transport: &'static str,
    setup: Setup,
    touch: Touch,
    place: Pinning,
    clock_cost_ns: f64,
    recording_cost_ns: f64,
    load: Option<f64>,
    baseline: CounterSnapshot,
    pub(crate) probe: Probe,
    real_time: Option<RealTime>,
}

impl RunMonitor {
    /// Finds out what the tools cost, before anything is measured.
    pub(crate) fn new(transport: &'static str, setup: Setup, touch: Touch, place: Pinning) -> Self {
        Self {
            transport,
            setup,
            touch,
            place,
            clock_cost_ns: setup.clock.cost_ns(),
            recording_cost_ns: LatencyRecorder::cost_ns(setup.clock),
            load: load_average(),
            baseline: CounterSnapshot::take(None),
            probe: Probe::new(setup.clock),
            real_time: None,
        }
    }

    pub(crate) const fn transport(&self) -> &'static str {
        self.transport
    }

    pub(crate) const fn clock(&self) -> Clock {
        self.setup.clock
    }

    /// Puts the thread in its place, and counts from here on.
    ///
    /// # Errors
    /// If the system refuses a CPU that was asked for.
    pub(crate) fn take_place(&mut self) -> Result<(), PinningError> {
        self.place.take()?;
        self.real_time = self.setup.raise.prepare();
        self.count_from_here();
        Ok(())
    }

    /// The counters of the measured part begin here. Takes some ten microseconds.
    pub(crate) fn count_from_here(&mut self) {
        self.baseline = CounterSnapshot::take(self.place.cpu);
    }

    /// The measured part begins: from here on in front of everything else, if that was asked for.
    pub(crate) fn raise(&self) {
        if let Some(real_time) = &self.real_time {
            real_time.begin();
        }
    }

    /// The measured part is over: what disturbed it, if the thread was watched `during` it as it
    /// waited; else with a look at it now.
    pub(crate) fn conditions(mut self, during_ns: Option<u64>) -> Conditions {
        let mut interference = self.baseline.since();
        let ran_out = self.real_time.take().is_some_and(RealTime::end);
        if let Some(ns) = during_ns {
            interference.set_gap(ns, Watched::During);
        } else {
            self.probe.look();
            interference.set_gap(self.probe.longest_ns().unwrap_or_default(), Watched::Around);
        }
        let cpus = Cpus::now(self.place);
        interference.doubt_place(&cpus, self.load);
        if ran_out {
            interference.doubt_time_in_front();
        }
        self.with(cpus, interference)
    }

    fn with(&self, cpus: Cpus, interference: Interference) -> Conditions {
        Conditions {
            transport: self.transport,
            wait: self.setup.wait,
            window: self.setup.window,
            touch: self.touch,
            clock: self.setup.clock.name(),
            clock_cost_ns: self.clock_cost_ns,
            recording_cost_ns: self.recording_cost_ns,
            cpus,
            raise: self.setup.raise,
            interference,
        }
    }
}
