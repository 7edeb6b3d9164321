//! A store: the streams that it keeps.
//!
//! State changes with what is appended to the log, and is told only when that is durable. A store
//! that starts again reads its records once ([`Store::replay`]) and is where it was.

pub(crate) mod copying;
mod departures;
mod durable;
mod fetched;
mod lifetimes;
mod offering;
mod peer_positions;
mod position_questions;
mod receivers;
mod registering;
mod replay_error;
mod settings;
mod settling;
mod stream;
mod stream_names;
mod stream_summary;
mod unconsumed_room;
mod unknown_stream;

use crate::Nanos;
use crate::log::{LogFull, StoreLog};
use crate::outlet::StoreOutlet;
use copying::{Copying, NewRun, TAKE_OVER_PAUSE, common_length, registered_run};
use fetched::answer;
use lanecast_wire::store::{
    Ballot, DeregisterOutcome, LogRecord, ReceiverReport, Registration, StoreAddress, StoreFrame,
    StoreRefusal, StoreState, StreamCheckpoint,
};
use lifetimes::Lifetimes;
use offering::Offering;
use peer_positions::{adopt, ask_for_more, positions, tend_positions};
use registering::{depart, is_refused, register};
pub use replay_error::ReplayError;
pub use settings::{StoreSettings, UnconsumedBounds};
use settling::tell_durable;
use std::collections::{BTreeMap, BTreeSet};
use stream::Stream;
use stream_names::StreamNames;
pub use stream_summary::StreamSummary;
use unconsumed_room::UnconsumedRoom;
use unknown_stream::answer_of_none;

/// A store: keeps the messages of many streams.
///
/// The driver subscribes to the topics, gives it live messages and frames, and calls
/// [`on_persisted`](Self::on_persisted) when the log has come further.
#[derive(Clone, Debug)]
pub struct Store {
    settings: StoreSettings,
    incarnation: u64,
    streams: Vec<Stream>,
    by_name: StreamNames,
    /// Streams by the session of their current run.
    by_session: BTreeMap<u64, usize>,
    /// Streams with records that are not durable yet, or an answer that waits for them.
    unsettled: BTreeSet<usize>,
    lifetimes: Lifetimes,
    /// Requests to open streams beyond the limit.
    refused_streams: u64,
}

impl Store {
    /// A store whose data has this identity: drawn by chance when its directory is made, and kept
    /// with it.
    pub fn new(settings: StoreSettings, incarnation: u64) -> Self {
        Self {
            lifetimes: Lifetimes::new(settings.receiver_lifetime),
            settings,
            incarnation,
            streams: Vec::new(),
            by_name: StreamNames::default(),
            by_session: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            refused_streams: 0,
        }
    }

    /// Whether there is room for another stream.
    pub fn has_room(&self) -> bool {
        self.streams.len() < self.settings.streams_max
    }

    /// Requests that were refused since they would have opened streams beyond the limit.
    pub const fn refused_streams(&self) -> u64 {
        self.refused_streams
    }

    /// Whether there is a stream of this topic.
    pub fn has_topic(&self, topic: &str) -> bool {
        self.by_name.of_topic(topic).next().is_some()
    }

    /// A durable record of the log, in order, before anything else.
    ///
    /// # Errors
    /// If it contradicts those before it: the log is damaged, or another program's.
    pub fn replay(&mut self, record: &LogRecord<'_>) -> Result<(), ReplayError> {
        if let LogRecord::Stream { stream, topic, source } = record {
            let is_next = usize::try_from(*stream).is_ok_and(|it| it == self.streams.len());
            if !is_next || self.by_name.index(topic, *source).is_some() {
                return Err(ReplayError::Stream(*stream));
            }
            self.add_stream(topic, *source);
            return Ok(());
        }
        let number = record.stream();
        let unknown = ReplayError::Stream(number);
        let index = usize::try_from(number).map_err(|_| unknown)?;
        let stream = self.streams.get_mut(index).ok_or(unknown)?;
        let before = stream.log.session;
        stream.replay(record)?;
        if let LogRecord::Began { .. } = record {
            self.follow_session(index, before);
        }
        Ok(())
    }

    /// The streams, in the order of their numbers, as the records say that were given to
    /// [`replay`](Self::replay). Only for a store that has done nothing else.
    pub fn checkpoint(&self) -> impl Iterator<Item = StreamCheckpoint<'_>> {
        self.streams.iter().map(Stream::checkpoint)
    }

    /// Takes over the next stream of a checkpoint, before the records behind that are replayed.
    ///
    /// # Errors
    /// If the stream is known already.
    pub fn restore(&mut self, checkpoint: StreamCheckpoint<'_>) -> Result<(), ReplayError> {
        if self.by_name.index(checkpoint.topic, checkpoint.source).is_some() {
            let number = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
            return Err(ReplayError::Stream(number));
        }
        let index = self.add_stream(checkpoint.topic, checkpoint.source);
        if !checkpoint.runs.is_empty() {
            self.by_session.insert(checkpoint.log.session, index);
        }
        self.streams[index].restore(checkpoint);
        Ok(())
    }

    /// A stream's run has begun: its session takes the place of the one `before`.
    fn follow_session(&mut self, index: usize, before: u64) {
        if self.by_session.get(&before) == Some(&index) {
            self.by_session.remove(&before);
        }
        self.by_session.insert(self.streams[index].log.session, index);
    }

    fn add_stream(&mut self, topic: &str, source: u64) -> usize {
        let index = self.streams.len();
        let number = u32::try_from(index).expect("fewer streams than the settings allow");
        let room = UnconsumedRoom::new(self.settings.unconsumed.of(topic));
        self.streams.push(Stream::new(number, topic, source, room));
        self.by_name.add(topic, source, index);
        index
    }

    /// The streams' topics, to subscribe to.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.streams.iter().map(|stream| stream.topic.as_str())
    }

    /// The streams, in the order in which they were opened.
    pub fn summaries(&self) -> impl ExactSizeIterator<Item = StreamSummary<'_>> {
        self.summaries_from(0)
    }

    /// The same from a stream's number on. Those before it cost nothing.
    pub fn summaries_from(&self, stream: u32) -> impl ExactSizeIterator<Item = StreamSummary<'_>> {
        self.streams.get(stream as usize..).unwrap_or_default().iter().map(Stream::summary)
    }

    /// The durable state of a stream, if the store knows it.
    pub fn state(&self, topic: &str, source: u64) -> Option<StoreState> {
        let index = self.by_name.index(topic, source)?;
        Some(self.streams[index].state(self.incarnation))
    }

    /// A live message of a session: the one with this number on its topic.
    pub fn on_message(
        &mut self,
        session: u64,
        number: u64,
        body: &[u8],
        now: Nanos,
        log: &mut impl StoreLog,
        out: &mut dyn StoreOutlet,
    ) {
        let Some(&index) = self.by_session.get(&session) else { return };
        let stream = &mut self.streams[index];
        if stream.log.session != session || !stream.is_live || !stream.takes(stream.log) {
            return;
        }
        let Some(sequence) = stream.sequence(number) else { return };
        stream.has_left = false;
        if sequence == stream.next {
            if stream.append(body, log).and_then(|()| stream.append_early(log)).is_ok() {
                self.unsettled.insert(index);
            }
        } else if sequence > stream.next {
            stream.early.keep(sequence, body, self.settings.early_bytes);
            self.want(index, now, out);
        }
    }

    /// A session has ended, or `is_there` again. Not told by its requests: those that it sent
    /// before its end may be read after it.
    pub fn on_session(&mut self, session: u64, is_there: bool) {
        let Some(&index) = self.by_session.get(&session) else { return };
        let stream = &mut self.streams[index];
        if stream.log.session == session {
            stream.has_left = !is_there;
        }
    }

    /// A frame for this store: a request, or another store's answer.
    pub fn on_frame(
        &mut self,
        address: StoreAddress<'_>,
        frame: &StoreFrame<'_>,
        now: Nanos,
        log: &mut impl StoreLog,
        out: &mut dyn StoreOutlet,
    ) {
        if let StoreFrame::Attach { receiver, token, since_unix_ns, until_unix_ns } = frame {
            let times = (*since_unix_ns, *until_unix_ns);
            let (receiver, token, heard) = (*receiver, *token, self.lifetimes.heard());
            let offering = Offering { receiver, token, times, heard };
            let named = self.by_name.of_topic(address.topic).collect();
            let streams = (self.streams.as_mut_slice(), named);
            return offering.answer(address, streams, self.incarnation, log, out);
        }
        let StoreAddress { client, topic, source } = address;
        let found = match (self.by_name.index(topic, source), frame) {
            (Some(index), _) => Ok(index),
            (None, StoreFrame::Open { .. }) => {
                self.open_stream(topic, source, log).map_err(|it| Some(StoreFrame::Refused(it)))
            }
            (None, _) => Err(answer_of_none(frame, self.incarnation)),
        };
        let index = match found {
            Ok(index) => index,
            Err(told) => return told.iter().for_each(|it| out.reply(client, topic, source, it)),
        };
        // A log without room leaves the state as it is: all requests are repeated.
        if self.execute(index, client, frame, now, log, out).is_err()
            && is_refused(&self.streams[index], frame)
        {
            out.reply(client, topic, source, &StoreFrame::Refused(StoreRefusal::Log));
        }
        self.unsettled.insert(index);
        self.settle(index, log, out);
    }

    /// A new stream, if there is room for it. The publisher repeats its request.
    fn open_stream(
        &mut self,
        topic: &str,
        source: u64,
        log: &mut impl StoreLog,
    ) -> Result<usize, StoreRefusal> {
        if !self.has_room() {
            self.refused_streams += 1;
            return Err(StoreRefusal::Streams { most: self.settings.streams_max as u64 });
        }
        let stream = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
        log.append(&LogRecord::Stream { stream, topic, source }).map_err(|_| StoreRefusal::Log)?;
        Ok(self.add_stream(topic, source))
    }

    fn execute(
        &mut self,
        index: usize,
        client: u64,
        frame: &StoreFrame<'_>,
        now: Nanos,
        log: &mut impl StoreLog,
        out: &mut dyn StoreOutlet,
    ) -> Result<(), LogFull> {
        let stream = &mut self.streams[index];
        stream.is_live |= registered_run(frame).is_some_and(|ballot| stream.takes(ballot));
        match frame {
            StoreFrame::Query { ballot, next } => {
                stream.owes_state_to = Some(client);
                if stream.takes(*ballot) && *next > stream.next {
                    self.want(index, now, out);
                }
            }
            StoreFrame::Open { ballot } => {
                stream.owes_state_to = Some(client);
                if *ballot > stream.promised {
                    stream.promise(*ballot, log)?;
                }
            }
            StoreFrame::Begin { ballot, log: chosen, start, donor, .. } => {
                stream.owes_state_to = Some(client);
                if let Some(run) = NewRun::of(frame).filter(|_| stream.awaits(*ballot, now)) {
                    self.take_over(index, run, *chosen, *start, donor, log)?;
                    self.copy(index, now, log, out)?;
                }
            }
            StoreFrame::Resend { ballot, first, records } if stream.takes(*ballot) => {
                let is_whole = stream.take_again(*first, *records, log)?;
                // There may be more, which need not wait for the next retry.
                if is_whole {
                    stream.want_at = now;
                    self.want(index, now, out);
                }
            }
            StoreFrame::Elsewhere { ballot, until, donor }
                if stream.takes(*ballot) && stream.next < *until =>
            {
                let messages = stream.next..*until;
                stream.copying = Some(Copying::of_run(donor, *ballot, messages, now));
                self.copy(index, now, log, out)?;
            }
            StoreFrame::Reconfigure { ballot, members } if stream.takes(*ballot) => {
                stream.owes_state_to = Some(client);
                stream.reconfigure(members, log)?;
            }
            StoreFrame::Fetch { from, until, limit } => {
                let limit = (*limit as usize).min(self.settings.longest_frame);
                let reply = |frame: &StoreFrame<'_>| {
                    out.reply(client, &stream.topic, stream.source, frame);
                };
                answer(stream, *from..*until, limit, log, reply);
            }
            StoreFrame::Fetched { log: of, from, first, next, records } => {
                // Another answer is one to an earlier request, and would look like a gap.
                let is_awaited = |copying: &&mut Copying| {
                    copying.logs.contains(of) && copying.next == *from && *from <= *first
                };
                // One that would end what receivers need counts as none: another store may have
                // the messages between.
                let may_copy = stream.may_copy_from(*first);
                if let Some(copying) = stream.copying.as_mut().filter(is_awaited)
                    && may_copy
                {
                    copying.on_answer(*first, *next, *records);
                    stream.take_copies(*first, *records, log)?;
                } else if !may_copy {
                    stream.questions.hurry();
                }
                self.copy(index, now, log, out)?;
            }
            _ => return self.hear_of_receivers(index, client, frame, now, log, out),
        }
        Ok(())
    }

    /// A frame from a receiver, or from another store about receivers.
    fn hear_of_receivers(
        &mut self,
        index: usize,
        client: u64,
        frame: &StoreFrame<'_>,
        now: Nanos,
        log: &mut impl StoreLog,
        out: &mut dyn StoreOutlet,
    ) -> Result<(), LogFull> {
        let stream = &mut self.streams[index];
        match frame {
            StoreFrame::Consumed(report) => {
                let bounds = (self.lifetimes.heard(), self.settings.receivers_max);
                if let Some(refusal) = register(stream, report, client, bounds, log)? {
                    out.reply(client, &stream.topic, stream.source, &StoreFrame::Refused(refusal));
                }
                self.go_on(index, now, log, out)?;
            }
            StoreFrame::Detach { receiver, life } => {
                depart(stream, (*receiver, *life), client, log)?;
                self.go_on(index, now, log, out)?;
            }
            StoreFrame::FetchPositions { token, receiver } => {
                let answer = positions(stream, (*token, *receiver), &self.settings, log);
                out.reply(client, &stream.topic, stream.source, &answer);
            }
            StoreFrame::FetchedPositions { token, next_receiver, receivers, departures }
                if stream.questions.is_answered(*token) =>
            {
                adopt(stream, receivers, departures, log)?;
                ask_for_more(stream, self.incarnation, *next_receiver, out);
                self.go_on(index, now, log, out)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Goes on with a stream that took no more messages, when receivers have consumed some.
    fn go_on(
        &mut self,
        index: usize,
        now: Nanos,
        log: &mut impl StoreLog,
        out: &mut dyn StoreOutlet,
    ) -> Result<(), LogFull> {
        let stream = &mut self.streams[index];
        if !stream.has_refused() || stream.is_held() {
            return Ok(());
        }
        stream.append_early(log)?;
        // The publisher keeps what is not stable.
        stream.want_at = now;
        self.want(index, now, out);
        Ok(())
    }

    /// Begins a run, or copies first what the log lacks in front of it.
    fn take_over(
        &mut self,
        index: usize,
        run: NewRun,
        chosen: Ballot,
        start: u64,
        donor: &str,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        let stream = &mut self.streams[index];
        let same_run =
            |copying: &&mut Copying| copying.run.as_ref().is_some_and(|it| it.ballot == run.ballot);
        if let Some(copying) = stream.copying.as_mut().filter(same_run) {
            donor.clone_into(&mut copying.donor);
            return Ok(());
        }
        let before = run.runs.split_last().map_or([].as_slice(), |(_, before)| before);
        let common = common_length(&stream.runs, stream.next, before, start);
        // Also without void messages: copies for a run that never began may stand in the log.
        stream.truncate(common, log)?;
        stream.copying = Some(Copying {
            donor: donor.to_owned(),
            logs: [chosen, run.ballot],
            next: common,
            until: start,
            ask_at: 0,
            asked: 0,
            run: Some(run),
        });
        Ok(())
    }

    /// Goes on with copying: ends it if all is there, or asks for more.
    fn copy(
        &mut self,
        index: usize,
        now: Nanos,
        log: &mut impl StoreLog,
        out: &mut dyn StoreOutlet,
    ) -> Result<(), LogFull> {
        let stream = &mut self.streams[index];
        let Some(copying) = &mut stream.copying else { return Ok(()) };
        if copying.next < copying.until {
            if copying.ask_at <= now {
                if copying.is_unanswered() {
                    // The publisher names another store when it is asked for the messages again,
                    // or repeats that the run begins.
                    let is_take_over = stream.is_taking_over();
                    stream.end_copying(log)?;
                    if is_take_over {
                        stream.take_over_at = now + TAKE_OVER_PAUSE * self.settings.retry;
                    }
                    return Ok(());
                }
                copying.ask_at = now + self.settings.retry;
                copying.asked += 1;
                let limit = u32::try_from(self.settings.longest_frame).unwrap_or(u32::MAX);
                let (from, until) = (copying.next, copying.until);
                let frame = StoreFrame::Fetch { from, until, limit };
                out.request(&copying.donor, &stream.topic, stream.source, &frame);
            }
            return Ok(());
        }
        if let Some(run) = copying.run.clone() {
            let (first, before) = (stream.first, stream.log.session);
            stream.begin(run, first, log)?;
            self.follow_session(index, before);
        } else {
            stream.copying = None;
            stream.append_early(log)?;
        }
        Ok(())
    }

    fn want(&mut self, index: usize, now: Nanos, out: &mut dyn StoreOutlet) {
        let stream = &mut self.streams[index];
        // Messages sent again find no room before receivers have come further.
        if stream.want_at > now || stream.copying.is_some() || stream.is_held() {
            return;
        }
        (stream.want_at, stream.resends) = (now + self.settings.retry, 0);
        let frame = StoreFrame::Want { ballot: stream.log, from: stream.next };
        out.reply(stream.log.session, &stream.topic, stream.source, &frame);
    }

    /// The log has come further: tells those who wait for it.
    pub fn on_persisted(&mut self, log: &impl StoreLog, out: &mut dyn StoreOutlet) {
        for index in std::mem::take(&mut self.unsettled) {
            self.settle(index, log, out);
        }
    }

    /// Tells what is durable of a stream by now.
    fn settle(&mut self, index: usize, log: &impl StoreLog, out: &mut dyn StoreOutlet) {
        let stream = &mut self.streams[index];
        tell_durable(stream, log.persisted(), self.incarnation, out);
        if !stream.is_settled() {
            self.unsettled.insert(index);
        }
    }

    /// Asks again for what is missing; returns when to call again.
    pub fn tick(
        &mut self,
        now: Nanos,
        log: &mut impl StoreLog,
        out: &mut dyn StoreOutlet,
    ) -> Nanos {
        let _ = self.lifetimes.tend(&mut self.streams, now, log);
        tend_positions(&mut self.streams, self.incarnation, now, self.settings.retry, out);
        for index in 0..self.streams.len() {
            let _ = self.streams[index].void_copies(log);
            let _ = self.copy(index, now, log, out);
            let _ = self.streams[index].append_early(log);
            let _ = self.go_on(index, now, log, out);
            if !self.streams[index].early.is_empty() {
                self.want(index, now, out);
            }
            self.unsettled.insert(index);
        }
        self.on_persisted(log, out);
        now + self.settings.retry
    }

    /// The store ends in order: writes for how long receivers are away.
    ///
    /// # Errors
    /// If the log has no room now. The next start knows less of these receivers then.
    pub fn end(&mut self, now: Nanos, log: &mut impl StoreLog) -> Result<(), LogFull> {
        self.lifetimes.end(&mut self.streams, now, log)
    }

    /// Gives up the messages of a stream before `first`, for retention.
    ///
    /// # Errors
    /// If the log has no room now.
    pub fn trim(
        &mut self,
        topic: &str,
        source: u64,
        first: u64,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        let Some(index) = self.by_name.index(topic, source) else { return Ok(()) };
        let stream = &mut self.streams[index];
        stream.trim(first.min(stream.durable.next()), log)
    }

    /// Writes a record that changes nothing, for a log whose checkpoints wait for one.
    ///
    /// # Errors
    /// If the log has no room now.
    pub fn write_anew(&mut self, log: &mut impl StoreLog) -> Result<(), LogFull> {
        self.streams.first().map_or(Ok(()), |stream| stream.write_anew(log))
    }

    /// Ends a registration for an administrator that the driver permits to do so, and answers when
    /// that is durable. Repeated requests are answered, too.
    pub fn deregister(
        &mut self,
        address: StoreAddress<'_>,
        token: u64,
        registration: Registration,
        log: &mut impl StoreLog,
        out: &mut dyn StoreOutlet,
    ) {
        let Some(index) = self.by_name.index(address.topic, address.source) else {
            let outcome = DeregisterOutcome::UnknownStream;
            let frame = StoreFrame::Deregistered { token, outcome };
            return out.reply(address.client, address.topic, address.source, &frame);
        };
        let stream = &mut self.streams[index];
        // A log without room: the request is repeated.
        if stream.deregister(registration, log).is_ok() {
            stream.owes_deregistered_to = Some((address.client, token));
        }
        self.unsettled.insert(index);
        self.settle(index, log, out);
    }

    /// Receivers of a stream from the id `from` on.
    pub fn receivers(&self, stream: u32, from: u64) -> impl Iterator<Item = ReceiverReport> {
        let found = self.streams.get(stream as usize).into_iter();
        found.flat_map(move |it| it.receivers.reports(from, &it.runs, it.durable.next()))
    }
}
