//! A stream at a store.

use super::copying::{Copying, NewRun};
use super::departures::Departures;
use super::durable::DurableTrail;
use super::position_questions::PositionQuestions;
use super::receivers::Receivers;
use super::replay_error::ReplayError;
use super::stream_summary::StreamSummary;
use super::unconsumed_room::UnconsumedRoom;
use crate::Nanos;
use crate::early::EarlyMessages;
use crate::log::{LogFull, StoreLog};
use crate::source::RESENDS_MAX;
use lanecast_wire::store::{
    Ballot, LogRecord, Members, RUNS_MAX, Records, Registered, Registration, Run, STORE_NUMBER_MAX,
    StoreState, StreamCheckpoint, TimedRecords,
};

/// A publisher's messages on one topic, and the runs that are known of it.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) number: u32,
    pub(super) topic: String,
    pub(super) source: u64,
    pub(super) promised: Ballot,
    pub(super) log: Ballot,
    pub(super) first: u64,
    /// Sequence after the last appended message, copies that are not part of the log left out.
    pub(super) next: u64,
    pub(super) runs: Vec<Run>,
    pub(super) members: Members,
    /// Number of the current run's first message on its topic.
    pub(super) first_number: u64,
    pub(super) durable: DurableTrail,
    pub(super) copying: Option<Copying>,
    /// Time before which no other take-over begins, after the donor of one was given up.
    pub(super) take_over_at: Nanos,
    /// Messages that came before those in front of them.
    pub(super) early: EarlyMessages,
    /// When to ask the publisher for missing messages next.
    pub(super) want_at: Nanos,
    /// Frames of the answer to the last request for missing messages that brought some.
    pub(super) resends: usize,
    pub(super) receivers: Receivers,
    pub(super) departures: Departures,
    pub(super) questions: PositionQuestions,
    /// Registered receivers hold the publisher back: what they have not consumed is kept.
    pub(super) is_receiver_paced: bool,
    room: UnconsumedRoom,
    /// The publisher has said that its run is registered. Until then a message of its session could
    /// belong to a later attempt to begin, with another start.
    pub(super) is_live: bool,
    /// The session of the current run has ended, as the transport tells.
    pub(super) has_left: bool,
    /// The receivers' consumption that the publisher was told last.
    pub(super) told_consumed: u64,
    /// Position of the last record that changed the state.
    pub(super) changed_at: u64,
    /// The client that waits for the state, until that record is durable.
    pub(super) owes_state_to: Option<u64>,
    /// Position of the last record that ended a registration, or gave up messages.
    pub(super) ended_at: u64,
    /// The administrator that waits until that record is durable, and its token.
    pub(super) owes_deregistered_to: Option<(u64, u64)>,
    /// During the replay of the log, from a truncation to the next run: sequence after the copies,
    /// which are no part of the log until the run begins.
    pub(super) copied: Option<u64>,
}

impl Stream {
    /// The stream as people see it.
    pub(super) fn summary(&self) -> StreamSummary<'_> {
        StreamSummary {
            number: self.number,
            topic: &self.topic,
            source: self.source,
            run: self.log,
            promised: self.promised,
            is_live: self.is_live,
            members: &self.members,
            first: self.first.min(self.durable.next()),
            next: self.durable.next(),
            consumed: self.consumed(),
            consumed_by_all: self.receivers.consumed_by_all(&self.runs, self.durable.next()),
            is_copying: self.copying.is_some() || self.has_void_copies(),
            is_receiver_paced: self.is_receiver_paced,
        }
    }

    pub(super) fn new(number: u32, topic: &str, source: u64, room: UnconsumedRoom) -> Self {
        Self {
            number,
            topic: topic.to_owned(),
            source,
            promised: Ballot::ZERO,
            log: Ballot::ZERO,
            first: 0,
            next: 0,
            runs: Vec::new(),
            members: Members::default(),
            first_number: 0,
            durable: DurableTrail::default(),
            copying: None,
            take_over_at: 0,
            early: EarlyMessages::default(),
            want_at: 0,
            resends: 0,
            receivers: Receivers::default(),
            departures: Departures::default(),
            questions: PositionQuestions::default(),
            is_receiver_paced: false,
            room,
            is_live: false,
            has_left: false,
            told_consumed: 0,
            changed_at: 0,
            owes_state_to: None,
            ended_at: 0,
            owes_deregistered_to: None,
            copied: None,
        }
    }

    /// Whether messages of the run `ballot` are taken.
    pub(super) fn takes(&self, ballot: Ballot) -> bool {
        self.log == ballot && self.promised == ballot && !self.is_taking_over()
    }

    /// Whether the promised run `ballot` may begin. Not in the pause after a take-over whose donor
    /// was given up: the publisher repeats its request.
    pub(super) fn awaits(&self, ballot: Ballot, now: Nanos) -> bool {
        ballot == self.promised && ballot > self.log && now >= self.take_over_at
    }

    /// Whether the log of another run is being copied.
    pub(super) fn is_taking_over(&self) -> bool {
        self.copying.as_ref().is_some_and(|copying| copying.run.is_some())
    }

    /// The state, as far as it is durable.
    pub(super) fn state(&self, incarnation: u64) -> StoreState {
        StoreState {
            incarnation,
            promised: self.promised,
            log: self.log,
            first: self.first.min(self.durable.next()),
            next: self.durable.next(),
            consumed: self.consumed(),
            members: self.members.clone(),
            runs: self.runs.clone(),
        }
    }

    /// Sequence of the first durable message that a registered receiver has not consumed, of those
    /// that hold a publisher back.
    pub(super) fn consumed(&self) -> u64 {
        self.receivers.consumed(&self.runs, self.durable.next())
    }

    /// The same by what the receivers have reported, durable or not. Paces the publisher: a report
    /// that a crash of this store loses was true, and is repeated.
    pub(super) fn reported(&self) -> u64 {
        self.receivers.reported(&self.runs, self.durable.next())
    }

    /// Sequence of the first message that was written at this time or later; 0 for time 0. `None`
    /// if that has to be looked up.
    pub(super) fn since(&self, unix_ns: u64, log: &impl StoreLog) -> Option<u64> {
        if unix_ns == 0 { Some(0) } else { log.first_since(self.number, unix_ns) }
    }

    /// Sequence after the last message that was written before this time; none for time 0, nor for
    /// one that has not come. `None` if that has to be looked up, or not all before it is on disk.
    pub(super) fn until(&self, unix_ns: u64, log: &impl StoreLog) -> Option<u64> {
        if unix_ns == 0 || unix_ns > log.unix_ns() {
            return Some(STORE_NUMBER_MAX);
        }
        let until = log.first_since(self.number, unix_ns)?;
        let is_known = until < self.durable.next() || self.durable.is_settled();
        // Copies behind are no part of the log as long as their run has not begun.
        is_known.then_some(until.min(self.durable.next()))
    }

    /// Sequence of the message with this number of the current run.
    pub(super) fn sequence(&self, number: u64) -> Option<u64> {
        let start = self.runs.last()?.start;
        number.checked_sub(self.first_number)?.checked_add(start)
    }

    /// Appends a message that is next. A receiver-paced stream that holds as much as it may for its
    /// receivers has no room: the message is not stable, and its publisher stops.
    pub(super) fn append(&mut self, body: &[u8], log: &mut impl StoreLog) -> Result<(), LogFull> {
        if self.is_receiver_paced {
            let unconsumed = self.reported()..self.next;
            self.room.take(self.number, body.len(), unconsumed, log)?;
        }
        let (stream, sequence) = (self.number, self.next);
        self.append_next(&LogRecord::Message { stream, sequence, body }, log)
    }

    /// Whether the stream took no more messages before its receivers had come further.
    pub(super) const fn has_refused(&self) -> bool {
        self.room.refused_at().is_some()
    }

    /// Whether it takes none now.
    pub(super) fn is_held(&self) -> bool {
        self.room.refused_at().is_some_and(|consumed| consumed == self.reported())
    }

    /// Appends the record of the message that is next. Behind the last sequence there is none: its
    /// record could not be read back.
    pub(super) fn append_next(
        &mut self,
        record: &LogRecord<'_>,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        if self.next >= STORE_NUMBER_MAX {
            return Ok(());
        }
        let position = log.append(record)?;
        self.next += 1;
        self.durable.push(position, self.next);
        Ok(())
    }

    /// Whether the next message is here and found no room: in the log, or before receivers have
    /// come further.
    pub(super) fn waits_for_room(&self) -> bool {
        self.early.first_from(self.next) == Some(self.next)
    }

    /// Appends the early messages that are next by now.
    pub(super) fn append_early(&mut self, log: &mut impl StoreLog) -> Result<(), LogFull> {
        while let Some(body) = self.early.take(self.next) {
            if let Err(full) = self.append(&body, log) {
                self.early.keep(self.next, &body, usize::MAX);
                return Err(full);
            }
        }
        Ok(())
    }

    /// Appends messages that the publisher sends again; says whether they end a whole answer.
    pub(super) fn take_again(
        &mut self,
        first: u64,
        records: Records<'_>,
        log: &mut impl StoreLog,
    ) -> Result<bool, LogFull> {
        let before = self.next;
        for (sequence, body) in (first..).zip(records.iter()) {
            if sequence == self.next {
                self.append(body, log)?;
            }
        }
        self.append_early(log)?;
        self.resends += usize::from(self.next > before);
        Ok(self.resends == RESENDS_MAX)
    }

    /// Whether copies from `first` on may be taken. They come behind a gap if the donor has given
    /// up those before; the log goes on there without what it has in front. Of a receiver-paced
    /// stream that waits for the receivers: the donor may not know them.
    pub(super) fn may_copy_from(&self, first: u64) -> bool {
        let Some(copying) = &self.copying else { return false };
        let run = copying.run.as_ref();
        let is_receiver_paced = run.map_or(self.is_receiver_paced, |run| run.is_receiver_paced);
        let reported = self.receivers.reported(&self.runs, self.next);
        first <= copying.next || !is_receiver_paced || reported.max(self.first) >= self.next
    }

    /// Appends copies of the messages from `first` on.
    pub(super) fn take_copies(
        &mut self,
        first: u64,
        records: TimedRecords<'_>,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        let Some(copying) = &mut self.copying else { return Ok(()) };
        let (is_take_over, until) = (copying.run.is_some(), copying.until);
        if first > copying.next {
            // Retention has removed the messages before at the donor: those here are gone as well.
            self.trim(first.min(until), log)?;
            if let Some(copying) = &mut self.copying {
                copying.next = first.min(until);
            }
        }
        for (sequence, (unix_ns, body)) in (first..until).zip(records.iter()) {
            let Some(copying) = &mut self.copying else { break };
            if sequence < copying.next {
                continue;
            }
            // No message is younger than its copy, whatever the other store's clock says.
            let unix_ns = unix_ns.min(log.unix_ns());
            let record = LogRecord::Copied { stream: self.number, sequence, unix_ns, body };
            if is_take_over {
                log.append(&record)?;
            }
            copying.next = sequence + 1;
            if !is_take_over && sequence == self.next {
                self.append_next(&record, log)?;
            }
        }
        Ok(())
    }

    pub(super) fn promise(
        &mut self,
        ballot: Ballot,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        let stream = self.number;
        self.end_copying(log)?;
        self.changed_at = log.append(&LogRecord::Promised { stream, ballot })?;
        (self.promised, self.is_live) = (ballot, false);
        self.early.clear();
        Ok(())
    }

    /// Ends copying without the rest of the messages.
    pub(super) fn end_copying(&mut self, log: &mut impl StoreLog) -> Result<(), LogFull> {
        // What was copied for a run that has not begun is not part of the log. Until that is
        // written, retention would keep it for good.
        if self.is_taking_over() {
            self.truncate(self.next, log)?;
        }
        self.copying = None;
        Ok(())
    }

    /// Makes copies void that a replayed log ends with: their run has not begun.
    pub(super) fn void_copies(&mut self, log: &mut impl StoreLog) -> Result<(), LogFull> {
        if self.has_void_copies() { self.truncate(self.next, log) } else { Ok(()) }
    }

    /// Whether the replayed log ends with copies of a run that has not begun.
    fn has_void_copies(&self) -> bool {
        self.copied.is_some_and(|copied| copied > self.next)
    }

    /// Gives up the messages from `next` on: they were never stable.
    pub(super) fn truncate(&mut self, next: u64, log: &mut impl StoreLog) -> Result<(), LogFull> {
        let stream = self.number;
        self.changed_at = log.append(&LogRecord::Truncated { stream, next })?;
        (self.next, self.copied) = (next, None);
        self.first = self.first.min(next);
        self.forget_runs(next);
        self.durable.truncate(next);
        Ok(())
    }

    /// Runs that began behind the end of the log are no part of it any more.
    fn forget_runs(&mut self, next: u64) {
        self.runs.retain(|run| run.start <= next);
        self.receivers.on_changed();
    }

    /// Begins a run: everything in front of it is in the log, from `first` on.
    pub(super) fn begin(
        &mut self,
        run: NewRun,
        first: u64,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        let NewRun { ballot, number, is_receiver_paced, members, mut runs } = run;
        if is_receiver_paced != self.is_receiver_paced {
            let stream = self.number;
            log.append(&LogRecord::Paced { stream, is_by_receivers: is_receiver_paced })?;
            self.is_receiver_paced = is_receiver_paced;
        }
        self.room.forget();
        runs.drain(..runs.len().saturating_sub(RUNS_MAX));
        let record = LogRecord::Began {
            stream: self.number,
            number,
            first,
            members: members.clone(),
            runs: runs.clone(),
        };
        let position = log.append(&record)?;
        let start = runs.last().map_or(first, |run| run.start);
        self.changed_at = position;
        (self.log, self.first, self.next) = (ballot, first, start);
        (self.is_live, self.has_left) = (false, false);
        (self.first_number, self.members, self.runs) = (number, members, runs);
        self.receivers.on_changed();
        // Copies count from this record on.
        self.durable.push(position, start);
        self.copying = None;
        self.early.clear();
        Ok(())
    }

    /// Takes over later members.
    pub(super) fn reconfigure(
        &mut self,
        members: &Members,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        if members.version <= self.members.version {
            return Ok(());
        }
        let record = LogRecord::Reconfigured { stream: self.number, members: members.clone() };
        self.changed_at = log.append(&record)?;
        self.members = members.clone();
        Ok(())
    }

    /// Gives up the messages before `first`.
    pub(super) fn trim(&mut self, first: u64, log: &mut impl StoreLog) -> Result<(), LogFull> {
        if first > self.first {
            let stream = self.number;
            self.ended_at = log.append(&LogRecord::Trimmed { stream, first })?;
            self.set_first(first);
        }
        Ok(())
    }

    /// Writes again from which message on the stream is kept.
    pub(super) fn write_anew(&self, log: &mut impl StoreLog) -> Result<(), LogFull> {
        let (stream, first) = (self.number, self.first);
        log.append(&LogRecord::Trimmed { stream, first }).map(|_| ())
    }

    fn set_first(&mut self, first: u64) {
        self.first = first;
        // Messages that were never copied here count as trimmed, too.
        if self.next < first && !self.is_taking_over() {
            self.next = first;
            self.durable.restart(first);
        }
    }

    /// Writes how far a receiver has come, if that is news and there is room for it: one that has
    /// expired gives way to it.
    pub(super) fn consume(
        &mut self,
        report: &Registered,
        heard: u64,
        receivers_max: usize,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        let is_known = self.receivers.is_known(report.receiver);
        if !is_known
            && self.receivers.len() >= receivers_max
            && let Some(expired) = self.receivers.longest_away()
        {
            self.detach(expired, log)?;
        }
        let has_room = is_known || self.receivers.len() < receivers_max;
        if let Some(news) = self.receivers.news(report, heard).filter(|_| has_room) {
            self.receivers.write(self.number, news, log)?;
            self.receivers.hear(report.receiver, heard);
        }
        Ok(())
    }

    /// Ends a receiver's registration, if it has one.
    pub(super) fn detach(&mut self, receiver: u64, log: &mut impl StoreLog) -> Result<(), LogFull> {
        if self.receivers.is_known(receiver) {
            let stream = self.number;
            self.ended_at = log.append(&LogRecord::Detached { stream, receiver })?;
            self.receivers.remove(receiver);
        }
        Ok(())
    }

    /// Ends a registration for an administrator, who is told when that is durable.
    pub(super) fn deregister(
        &mut self,
        registration: Registration,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        match registration {
            Registration::Receiver(receiver) => self.detach(receiver, log),
            Registration::Source => {
                for receiver in self.receivers.ids() {
                    self.detach(receiver, log)?;
                }
                self.trim(self.durable.next(), log)
            }
        }
    }

    /// Whether nothing waits for the disk.
    pub(super) fn is_settled(&self) -> bool {
        let owes_nothing = self.owes_state_to.is_none() && self.owes_deregistered_to.is_none();
        let are_told = self.receivers.are_settled() && self.departures.is_settled();
        owes_nothing && self.durable.is_settled() && are_told
    }

    /// State as the replayed records say.
    pub(super) fn checkpoint(&self) -> StreamCheckpoint<'_> {
        StreamCheckpoint {
            topic: &self.topic,
            source: self.source,
            promised: self.promised,
            log: self.log,
            first: self.first,
            next: self.next,
            copied: self.copied,
            number: self.first_number,
            is_receiver_paced: self.is_receiver_paced,
            ended_life: self.receivers.ended_life,
            members: self.members.clone(),
            runs: self.runs.clone(),
            receivers: self.receivers.durable().collect(),
            departures: self.departures.iter().collect(),
        }
    }

    /// Takes over the state of a checkpoint.
    pub(super) fn restore(&mut self, checkpoint: StreamCheckpoint<'_>) {
        let StreamCheckpoint { promised, log, first, next, copied, number, .. } = checkpoint;
        (self.promised, self.log, self.first, self.next) = (promised, log, first, next);
        (self.copied, self.first_number) = (copied, number);
        self.is_receiver_paced = checkpoint.is_receiver_paced;
        (self.members, self.runs) = (checkpoint.members, checkpoint.runs);
        self.receivers.on_changed();
        self.receivers.ended_life = checkpoint.ended_life;
        for registered in checkpoint.receivers {
            self.receivers.restore(registered);
        }
        checkpoint.departures.into_iter().for_each(|it| self.departures.note(it, 0));
        self.durable.restart(next);
    }

    /// A durable record of this stream.
    pub(super) fn replay(&mut self, record: &LogRecord<'_>) -> Result<(), ReplayError> {
        match record {
            LogRecord::Stream { .. } => {}
            LogRecord::Promised { ballot, .. } => self.promised = *ballot,
            LogRecord::Truncated { next, .. } => {
                (self.next, self.first) = (*next, self.first.min(*next));
                self.forget_runs(*next);
                self.copied = Some(*next);
            }
            LogRecord::Message { stream, sequence, .. }
            | LogRecord::Copied { stream, sequence, .. } => {
                let expected = self.copied.as_mut().unwrap_or(&mut self.next);
                if sequence != expected {
                    let (stream, sequence, expected) = (*stream, *sequence, *expected);
                    return Err(ReplayError::Sequence { stream, sequence, expected });
                }
                *expected += 1;
            }
            LogRecord::Began { number, first, members, runs, .. } => {
                let run = runs.last().copied().unwrap_or(Run { ballot: Ballot::ZERO, start: 0 });
                (self.log, self.first, self.next) = (run.ballot, *first, run.start);
                (self.first_number, self.members) = (*number, members.clone());
                self.runs.clone_from(runs);
                self.receivers.on_changed();
                self.copied = None;
            }
            LogRecord::Reconfigured { members, .. } => self.members = members.clone(),
            LogRecord::Trimmed { first, .. } => match &mut self.copied {
                Some(copied) => (self.first, *copied) = (*first, (*copied).max(*first)),
                None => {
                    self.first = *first;
                    self.next = self.next.max(*first);
                }
            },
            LogRecord::Consumed { registered, .. } => self.receivers.restore(*registered),
            LogRecord::Detached { receiver, .. } => self.receivers.remove(*receiver),
            LogRecord::Departed { departure, .. } => {
                self.receivers.remove(departure.receiver);
                self.departures.note(*departure, 0);
            }
            LogRecord::Paced { is_by_receivers, .. } => self.is_receiver_paced = *is_by_receivers,
            // It is where it was in the stream, and further on in the log.
            LogRecord::Moved { .. } => {}
        }
        self.durable.restart(self.next);
        Ok(())
    }
}
