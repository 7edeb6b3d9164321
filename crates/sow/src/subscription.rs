//! One subscriber's wishes, and what waits for it.

use crate::change::Cause;
use crate::conflation::Conflation;
use crate::record::Record;
use crate::scan::{Answer, Scan};
use crate::sink::{Event, Reason, Sink};
use crate::topic::Topic;
use std::collections::VecDeque;
use std::time::Duration;

/// What a subscriber wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// To be told when records leave its focus.
    pub out_of_focus: bool,
    /// To be told of each record once in this time at most. Only the last state counts.
    pub conflation: Option<Duration>,
    /// Records of an answer that come together at most.
    pub batch: usize,
    /// Events that may wait for the end of the query before them.
    pub waiting_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { out_of_focus: false, conflation: None, batch: 10, waiting_max: 1 << 20 }
    }
}

/// An event that waits.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    Update(Record, Cause),
    Left(Record, Reason, u64),
}

impl Held {
    pub(crate) fn record(&self) -> &Record {
        match self {
            Self::Update(record, _) | Self::Left(record, ..) => record,
        }
    }

    pub(crate) fn event(&self) -> Event<'_> {
        match self {
            Self::Update(record, cause) => Event::Update { record, cause: *cause },
            Self::Left(record, reason, sequence) => {
                Event::Left { record, reason: *reason, sequence: *sequence }
            }
        }
    }
}

/// One subscription, or one query.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) options: Options,
    /// Whether it goes on after its query.
    pub(crate) is_live: bool,
    scan: Option<Scan>,
    /// Records of the answer that do not fill a batch yet.
    batch: Vec<Record>,
    /// What happened since the scan began.
    waiting: VecDeque<Held>,
    is_overrun: bool,
    pub(crate) conflation: Option<Conflation>,
}

/// How far a subscription has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There is more to do.
    Busy,
    /// It has caught up with the topic.
    Level,
    /// It cannot go on.
    Overrun,
}

impl Subscription {
    pub(crate) fn new(options: Options, is_live: bool, scan: Option<Scan>) -> Self {
        let conflation = options.conflation.map(Conflation::new);
        let (batch, waiting) = (Vec::new(), VecDeque::new());
        Self { options, is_live, scan, batch, waiting, is_overrun: false, conflation }
    }

    pub(crate) fn scan(&mut self) -> Option<&mut Scan> {
        self.scan.as_mut()
    }

    /// Keeps an event until the query is answered.
    pub(crate) fn wait(&mut self, held: Held) {
        if self.waiting.len() < self.options.waiting_max {
            self.waiting.push_back(held);
        } else {
            self.is_overrun = true;
        }
    }

    /// Goes on with the query, then with what has waited for its end: up to `limit` steps.
    pub(crate) fn advance(
        &mut self,
        id: u32,
        topic: &Topic,
        now_ns: u64,
        limit: usize,
        sink: &mut impl Sink,
    ) -> Progress {
        if self.is_overrun {
            sink.deliver(&[id], Event::Overrun);
            return Progress::Overrun;
        }
        if let Some(scan) = &mut self.scan {
            let is_more = scan.advance(topic, limit, &mut self.batch);
            let answer = scan.answer();
            self.give_batches(id, is_more, answer, sink);
            if is_more {
                return Progress::Busy;
            }
            self.scan = None;
        }
        for _ in 0..limit {
            match self.waiting.pop_front() {
                Some(held) => self.hand_over(id, held, now_ns, sink),
                None => return Progress::Level,
            }
        }
        if self.waiting.is_empty() { Progress::Level } else { Progress::Busy }
    }

    /// Tells the subscriber now, or later if it wants no more than so much.
    pub(crate) fn hand_over(&mut self, id: u32, held: Held, now_ns: u64, sink: &mut impl Sink) {
        let held = match &mut self.conflation {
            Some(conflation) => conflation.hold_back(held, now_ns),
            None => Some(held),
        };
        if let Some(held) = held {
            sink.deliver(&[id], held.event());
        }
    }

    fn give_batches(&mut self, id: u32, is_more: bool, answer: Answer, sink: &mut impl Sink) {
        let size = self.options.batch.max(1);
        let whole = self.batch.len() / size * size;
        let given = if is_more { whole } else { self.batch.len() };
        for batch in self.batch[..given].chunks(size) {
            sink.deliver(&[id], Event::Records(batch));
        }
        self.batch.drain(..given);
        if !is_more {
            sink.deliver(&[id], Event::End(answer));
        }
    }
}
