//! Model of rings: the values expected at each end.

use super::end::{End, Shape};
use super::value::{Label, Value};
use lanecast_ring::rings::{Producer, PushError};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// End of a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Close {
    Drop,
    Leak,
    First(usize),
    All,
}

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Push {
        lane: usize,
        count: usize,
    },
    Claim {
        lane: usize,
        count: usize,
        close: Close,
    },
    Flush {
        lane: usize,
    },
    End {
        lane: usize,
    },
    Read {
        stage: usize,
        max: usize,
    },
    Change {
        stage: usize,
        max: usize,
    },
    Pop {
        stage: usize,
        count: usize,
    },
    /// Panics at the first slice.
    Fall {
        stage: usize,
        max: usize,
    },
    Leave {
        stage: usize,
    },
}

/// Values written by one producer.
struct Lane {
    producer: Option<Producer<Value>>,
    /// Which values an exclusive consumer has taken out: so many were written.
    taken: Vec<bool>,
    /// Number of values certainly published.
    flushed: u64,
}

impl Lane {
    fn written(&self) -> u64 {
        self.taken.len() as u64
    }
}

/// An end and what it has read of each lane.
struct Stage {
    end: Option<End>,
    before: Vec<usize>,
    at: Vec<u64>,
    /// Number of values certainly released.
    released: Vec<u64>,
}

/// A ring under test, and what must be in it.
pub(crate) struct Model {
    shape: Shape,
    lanes: Vec<Lane>,
    stages: Vec<Stage>,
}

impl Model {
    pub(crate) fn new(shape: Shape) -> Self {
        let (producers, ends) = shape.build();
        let lane = |producer| Lane { producer: Some(producer), taken: Vec::new(), flushed: 0 };
        let lanes: Vec<_> = producers.into_iter().map(lane).collect();
        let none = vec![0; lanes.len()];
        let stage = |(end, before)| Stage {
            end: Some(end),
            before,
            at: none.clone(),
            released: none.clone(),
        };
        let stages = ends.into_iter().map(stage).collect();
        Self { shape, lanes, stages }
    }

    pub(crate) fn act(&mut self, act: &Act) {
        let (lanes, stages) = (self.lanes.len(), self.stages.len());
        match *act {
            Act::Push { lane, count } => (0..count).for_each(|_| self.push(lane % lanes)),
            Act::Claim { lane, count, close } => self.claim(lane % lanes, count, close),
            Act::Flush { lane } => self.flush(lane % lanes),
            Act::End { lane } => self.end(lane % lanes),
            Act::Read { stage, max } => self.read(stage % stages, max),
            Act::Change { stage, max } => self.change(stage % stages, max),
            Act::Pop { stage, count } => (0..count).for_each(|_| self.pop(stage % stages)),
            Act::Fall { stage, max } => self.fall(stage % stages, max),
            Act::Leave { stage } => self.leave(stage % stages),
        }
        self.check_ends();
    }

    /// Fewest and most values that fit; `None` if all consumers are gone.
    fn room(&self, lane: usize) -> Option<(u64, u64)> {
        let left = || self.stages.iter().filter(|stage| stage.end.is_some());
        let end = |slowest| slowest + self.shape.capacity as u64;
        let least = left().map(|stage| stage.released[lane]).min().map(end)?;
        let most = left().map(|stage| stage.at[lane]).min().map(end)?;
        let written = self.lanes[lane].written();
        assert!(most >= written, "wrote over values that are still to be read");
        Some((least.saturating_sub(written), most - written))
    }

    fn push(&mut self, number: usize) {
        let room = self.room(number);
        let lane = &mut self.lanes[number];
        let at = lane.written();
        let Some(producer) = &mut lane.producer else { return };
        let value = Value::new(Some((number, at)));
        let pushed = if room.is_some_and(|(least, _)| least > 0) && at.is_multiple_of(2) {
            producer.push(value).map_err(|_| panic!("a consumer is left"))
        } else {
            producer.try_push(value)
        };
        match (pushed, room) {
            (Ok(()), room) => {
                assert!(room.is_none_or(|(_, most)| most > 0), "no consumer has read this slot");
                lane.taken.push(false);
            }
            (Err(PushError::Full(value)), Some((least, _))) => {
                assert_eq!((least, *value.label), (0, Some((number, at))));
                lane.flushed = at;
            }
            (Err(PushError::Closed(value)), None) => {
                assert_eq!(*value.label, Some((number, at)));
                assert!(producer.is_closed());
                lane.flushed = at;
            }
            (Err(error), room) => panic!("{error} with {room:?} slots"),
        }
    }

    fn claim(&mut self, number: usize, count: usize, close: Close) {
        let (room, capacity) = (self.room(number), self.shape.capacity as u64);
        let lane = &mut self.lanes[number];
        let at = lane.written();
        let Some(producer) = &mut lane.producer else { return };
        let claim = match room {
            Some((least, _)) if least > 0 && at.is_multiple_of(2) => producer.claim(count).ok(),
            _ => producer.try_claim(count),
        };
        let Some(mut claim) = claim else {
            assert!(room.is_none_or(|(least, _)| least == 0));
            return;
        };
        let fit = (count as u64).min(capacity - at % capacity);
        if let Some((least, most)) = room {
            assert!((fit.min(least)..=fit.min(most)).contains(&(claim.len() as u64)));
        }
        for (slot, at) in claim.iter_mut().zip(at..) {
            *slot = Value::new(Some((number, at)));
        }
        let committed = match close {
            Close::Drop | Close::Leak => 0,
            Close::First(count) => count.min(claim.len()),
            Close::All => claim.len(),
        };
        match close {
            Close::Drop => drop(claim),
            Close::Leak => core::mem::forget(claim),
            Close::First(count) => claim.commit_first(count),
            Close::All => claim.commit(),
        }
        lane.taken.resize(lane.taken.len() + committed, false);
    }

    fn flush(&mut self, number: usize) {
        let lane = &mut self.lanes[number];
        if let Some(producer) = &mut lane.producer {
            producer.flush();
            lane.flushed = lane.written();
        }
    }

    fn end(&mut self, number: usize) {
        let lane = &mut self.lanes[number];
        lane.producer = None;
        lane.flushed = lane.written();
    }

    /// Up to where a stage must see a lane, and may at the most.
    fn visible(&self, stage: usize, lane: usize) -> (u64, u64) {
        let before = || self.stages[stage].before.iter().map(|&before| &self.stages[before]);
        let before = || before().filter(|stage| stage.end.is_some());
        let Lane { flushed, .. } = self.lanes[lane];
        let written = self.lanes[lane].written();
        // Less than a stride is ever held back.
        let published = flushed.max(written.saturating_sub(self.shape.stride as u64 - 1));
        let least = before().map(|stage| stage.released[lane]).fold(published, u64::min);
        (least, before().map(|stage| stage.at[lane]).fold(written, u64::min))
    }

    fn read(&mut self, stage: usize, max: usize) {
        let Some(end) = &mut self.stages[stage].end else { return };
        let goes_round = !matches!(end, End::Workers(_));
        let seen = end.read(max);
        let is_all = seen.is_empty() || goes_round;
        self.note(stage, &seen, max > seen.len() && is_all, |_| false);
    }

    fn change(&mut self, stage: usize, max: usize) {
        let Some(end) = &mut self.stages[stage].end else { return };
        let goes_round = !matches!(end, End::Workers(_));
        let Some(seen) = end.change(max) else { return };
        self.note(stage, &seen, max > seen.len() && goes_round, |place| place % 2 == 1);
    }

    fn pop(&mut self, stage: usize) {
        let Some(end) = &mut self.stages[stage].end else { return };
        let is_kept = !matches!(end, End::Workers(_));
        let Some(seen) = end.pop() else { return };
        let released = self.stages[stage].released.clone();
        self.note(stage, seen.as_slice(), seen.is_none(), |_| true);
        if is_kept && seen.is_some() {
            // With others, later.
            self.stages[stage].released = released;
        }
    }

    /// Notes what a stage has seen, in this order; `is_all` if it had its turn in every lane.
    fn note(
        &mut self,
        stage: usize,
        seen: &[Label],
        is_all: bool,
        is_taken: impl Fn(usize) -> bool,
    ) {
        let begin = self.stages[stage].at.clone();
        for (place, label) in seen.iter().enumerate() {
            let at = &mut self.stages[stage].at;
            // What was taken out of several lanes is never looked at again.
            let (lane, number) = label.unwrap_or((0, at[0]));
            assert_eq!(number, at[lane], "of lane {lane}");
            let taken = &mut self.lanes[lane].taken[number as usize];
            assert_eq!(*taken, label.is_none(), "taken out");
            *taken |= is_taken(place);
            at[lane] += 1;
        }
        for (lane, begin) in begin.into_iter().enumerate() {
            let (least, most) = self.visible(stage, lane);
            let Stage { at, released, .. } = &mut self.stages[stage];
            assert!(at[lane] <= most, "overtook those before it in lane {lane}");
            assert!(!is_all || at[lane] > begin || begin >= least, "missed lane {lane}");
            if is_all || at[lane] > begin {
                released[lane] = at[lane];
            }
        }
    }

    fn fall(&mut self, stage: usize, max: usize) {
        let (_, most) = self.visible(stage, 0);
        let Stage { end, at, .. } = &mut self.stages[stage];
        let fall = |_: &[Value]| resume_unwind(Box::new("of the test"));
        let (has_fallen, position) = match end {
            Some(End::Reader(end)) => {
                let fallen = catch_unwind(AssertUnwindSafe(|| end.drain(max, fall)));
                (fallen.is_err(), end.position())
            }
            Some(End::ExclusiveConsumer(end)) => {
                let fallen = catch_unwind(AssertUnwindSafe(|| end.drain(max, fall)));
                (fallen.is_err(), end.position())
            }
            _ => return,
        };
        assert_eq!(
            position > at[0],
            has_fallen,
            "a slice is consumed by the reader that falls over it"
        );
        assert!(position <= most.min(at[0] + max as u64));
        at[0] = position;
    }

    fn leave(&mut self, stage: usize) {
        let end = &mut self.stages[stage].end;
        match end {
            Some(End::Workers(workers)) if workers.len() > 1 => drop(workers.pop()),
            _ => *end = None,
        }
    }

    fn check_ends(&self) {
        for stage in &self.stages {
            let is_over =
                |(lane, &at): (&Lane, &u64)| lane.producer.is_none() && at == lane.written();
            let are_over = self.lanes.iter().zip(&stage.at).all(is_over);
            assert!(stage.end.as_ref().is_none_or(|end| end.is_closed() == are_over));
        }
    }

    /// The producers go, and everybody who is left reads all there is.
    pub(crate) fn read_to_the_end(&mut self) {
        (0..self.lanes.len()).for_each(|lane| self.end(lane));
        for stage in 0..self.stages.len() {
            // Once more for what a panic or a few pops have left unreleased.
            for _ in 0..300 {
                self.read(stage, usize::MAX);
            }
            let is_closed = self.stages[stage].end.as_ref().is_none_or(End::is_closed);
            assert!(is_closed, "stage {stage} never came to the end");
        }
        self.check_ends();
    }
}
