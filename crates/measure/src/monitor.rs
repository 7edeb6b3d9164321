//! Monitor of a run: collects the conditions of a measured thread from its preparation to its end.

use crate::conditions::{Conditions, Setup};
use crate::interference::{CounterSnapshot, Interference, Watched, load_average};
use crate::latency::LatencyRecorder;
use crate::pinning::{Cpus, Pinning, PinningError};
use crate::probe::Probe;
use crate::real_time::RealTime;
use crate::touch::Touch;
use lanecast_base::clock::Clock;

/// Monitor of the measured thread; used in that thread.
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
    /// Measures the cost of the clock and of recording, before the run.
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

    /// Pins the thread, prepares its priority, and resets the counters.
    ///
    /// # Errors
    /// If the system refuses a CPU that was asked for.
    pub(crate) fn pin(&mut self) -> Result<(), PinningError> {
        self.place.take()?;
        self.real_time = self.setup.raise.prepare();
        self.count_from_here();
        Ok(())
    }

    /// Resets the counters at the start of the measured part. Takes some ten microseconds.
    pub(crate) fn count_from_here(&mut self) {
        self.baseline = CounterSnapshot::take(self.place.cpu);
    }

    /// Starts real-time scheduling for the measured part, if requested.
    pub(crate) fn raise(&self) {
        if let Some(real_time) = &self.real_time {
            real_time.begin();
        }
    }

    /// Conditions at the end of the measured part. `during_ns` is the longest gap while the thread
    /// waited; without one, gaps are measured now.
    pub(crate) fn conditions(mut self, during_ns: Option<u64>) -> Conditions {
        let mut interference = self.baseline.since();
        let expired = self.real_time.take().is_some_and(RealTime::end);
        if let Some(ns) = during_ns {
            interference.set_gap(ns, Watched::During);
        } else {
            self.probe.look();
            interference.set_gap(self.probe.longest_ns().unwrap_or_default(), Watched::Around);
        }
        let cpus = Cpus::now(self.place);
        interference.doubt_cpu(&cpus, self.load);
        if expired {
            interference.doubt_short_real_time();
        }
        self.with(cpus, interference)
    }

    fn with(&self, cpus: Cpus, interference: Interference) -> Conditions {
        Conditions {
            transport: self.transport,
            wait: self.setup.wait,
            window: self.setup.window,
            io: self.setup.io,
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
