//! The session of matching messages, and the filters that decide which these are.

use crate::error::OpenError;
use crate::filters::Filters;
use crate::settings::ContentSettings;
use crate::topics::{content_topic, control_topic};
use lanecast_filter::FilterErrorKind;
use lanecast_transport::{
    BackPressureReason, Batch, Claim, ClaimError, Event, Publish, SessionId, Subscribe, TopicId,
    Transport,
};
use lanecast_wire::content::{CONTENT_VERSION, ContentFrame, ContentFrameError};
use std::collections::VecDeque;
use zerocopy::little_endian::{U16, U64};

/// Most control messages per poll.
const CONTROL_POLL_LIMIT: usize = 64;
/// Messages published between two polls of the control topic.
const CONTROL_POLL_INTERVAL: u32 = 32;
/// Longest reason of a refusal, in characters.
const REASON_MAX: usize = 300;

/// The second session of a publisher that serves filters.
pub(crate) struct Matching<C: Transport> {
    session: C::Publisher,
    control: C::Subscriber,
    filters: Filters,
    /// Control events not yet handled.
    control_events: VecDeque<(SessionId, ControlEvent)>,
    /// Marks that no filter has any more, to be withdrawn before the next message or answer, or
    /// when a subscriber of such a filter comes back, as soon as there is room for the frame.
    void_marks: Vec<VoidMark>,
    /// Messages until the next poll of the control topic.
    until_poll: u32,
    malformed_frames: u64,
    malformed_messages: u64,
    /// Messages that were matched against the filters.
    evaluations: u64,
    /// Matching messages for which the session had no room.
    unpublished: u64,
    /// Number of the next message.
    next_number: u64,
    /// The longest message whose frame fits with all marks.
    longest: usize,
    /// Room that a claim found and nothing was written to, as the length of one frame.
    reserved: usize,
    /// The last claim was refused.
    is_refused: bool,
    found: Vec<u32>,
    marks: Vec<U16>,
    /// Bytes of the last answer.
    answer: Vec<u8>,
}

/// A mark that no filter has any more.
#[derive(Clone, Copy, Debug)]
struct VoidMark {
    mark: u16,
    /// Number of the first message that was not sent with the mark.
    first: u64,
}

#[derive(Debug)]
enum ControlEvent {
    FilterRequested(String),
    /// A request of a filter of so many bytes, which are more than allowed.
    FilterTooLong(usize),
    /// A request of another version.
    OtherVersion(u8),
    /// The subscriber is gone.
    Departed,
}

impl<C: Transport> Matching<C> {
    pub(crate) fn new(
        transport: &C,
        topic: &str,
        settings: ContentSettings,
    ) -> Result<Self, OpenError<C::Error>> {
        // The control topic opens first: a subscriber that finds the session can send its filter at
        // once.
        let control =
            transport.subscriber(&[&control_topic(topic)]).map_err(OpenError::Transport)?;
        let session = transport.publisher(&content_topic(topic)).map_err(OpenError::Transport)?;
        let filters = Filters::new(topic, settings);
        let overhead = ContentFrame::message_len(filters.most(), 0);
        Ok(Self {
            longest: session.longest_message().saturating_sub(overhead),
            session,
            control,
            filters,
            control_events: VecDeque::new(),
            void_marks: Vec::new(),
            until_poll: 0,
            malformed_frames: 0,
            malformed_messages: 0,
            evaluations: 0,
            unpublished: 0,
            next_number: 0,
            reserved: 0,
            is_refused: false,
            found: Vec::new(),
            marks: Vec::new(),
            answer: Vec::new(),
        })
    }

    pub(crate) fn filters(&self) -> usize {
        self.filters.len()
    }

    pub(crate) const fn malformed_frames(&self) -> u64 {
        self.malformed_frames
    }

    pub(crate) const fn malformed_messages(&self) -> u64 {
        self.malformed_messages
    }

    pub(crate) const fn evaluations(&self) -> u64 {
        self.evaluations
    }

    pub(crate) const fn unpublished(&self) -> u64 {
        self.unpublished
    }

    pub(crate) const fn longest_message(&self) -> usize {
        self.longest
    }

    /// Subscribers whose filter is in force. Each has joined the session, as its request names it;
    /// one that has ended since may be gone from either count first.
    pub(crate) fn subscribers(&self) -> usize {
        self.session.subscribers().min(self.filters.sessions())
    }

    pub(crate) fn session_id(&self) -> SessionId {
        self.session.session()
    }

    /// Whether subscribers have not been told that their mark is void.
    pub(crate) const fn owes_withdrawals(&self) -> bool {
        !self.void_marks.is_empty()
    }

    pub(crate) const fn control(&mut self) -> &mut C::Subscriber {
        &mut self.control
    }

    pub(crate) const fn session(&mut self) -> &mut C::Publisher {
        &mut self.session
    }

    /// Serves filter requests if some messages have passed since the last time.
    #[inline]
    pub(crate) fn serve_sometimes(&mut self) {
        match self.until_poll.checked_sub(1) {
            Some(left) => self.until_poll = left,
            None => drop(self.serve()),
        }
    }

    /// Handles filter requests and departures of subscribers; returns their number.
    pub(crate) fn serve(&mut self) -> usize {
        self.until_poll = CONTROL_POLL_INTERVAL;
        if self.control_events.is_empty() {
            self.poll_control();
        }
        let mut done = 0;
        while let Some((session, event)) = self.control_events.pop_front() {
            if !self.handle(session, &event) {
                self.control_events.push_front((session, event));
                break;
            }
            done += 1;
        }
        // The requests of such a subscriber come in: it has no filter yet, or it has come back and
        // reads by a mark that is not its own any more. Without room the next message does it.
        if self.owes_withdrawals() && self.control.streams() > self.filters.sessions() {
            self.withdraw_void();
        }
        done
    }

    /// Has `find` check that there is room for the frame of a message of `len` bytes, if any
    /// filter could want it. The room stays free until something is written, because only this
    /// publisher writes to the session: messages that match no filter cost no further claim.
    #[inline]
    pub(crate) fn reserve(
        &mut self,
        len: usize,
        mut find: impl FnMut(&mut C::Publisher, usize) -> Result<(), ClaimError>,
    ) -> Result<(), ClaimError> {
        if len > self.longest {
            return Err(ClaimError::TooLong { longest: self.longest });
        }
        if !self.void_marks.is_empty() {
            self.withdraw_after(&mut find)?;
        }
        let filters = self.filters.len();
        let frame = ContentFrame::message_len(filters, len);
        if filters == 0 {
            self.settle();
            return Ok(());
        }
        // A refusal, of a batch, has to be taken back: see `settle`.
        if frame <= self.reserved && !self.is_refused {
            return Ok(());
        }
        self.reserved = 0;
        let found = find(&mut self.session, frame);
        self.is_refused = found.is_err();
        found?;
        self.reserved = frame;
        Ok(())
    }

    /// For messages that need no room here, as there are no filters or they are of another topic:
    /// takes back a refusal of before, whose descriptor tells of room otherwise, which no claim
    /// would ever use.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.is_refused {
            self.is_refused = self.session.try_claim(0).map(Claim::abort).is_err();
        }
    }

    /// Checks that there is room for the `frames` frames of a batch, `bytes` of messages in all,
    /// the longest of them of `len` bytes.
    pub(crate) fn reserve_batch(
        &mut self,
        frames: usize,
        bytes: usize,
        len: usize,
    ) -> Result<(), ClaimError> {
        if len > self.longest {
            return Err(ClaimError::TooLong { longest: self.longest });
        }
        if !self.void_marks.is_empty() {
            self.withdraw_after(try_find_room)?;
        }
        if self.filters.len() == 0 {
            self.settle();
            return Ok(());
        }
        let each = ContentFrame::message_len(self.filters.len(), 0);
        let found = self.session.try_reserve(frames, frames * each + bytes);
        self.is_refused = found.is_err();
        found
    }

    /// The frame of the message `number`, if `body` matches any filter.
    #[inline]
    fn evaluate<'a>(&'a mut self, number: u64, body: &'a [u8]) -> Option<ContentFrame<'a>> {
        self.evaluations += u64::from(self.filters.len() > 0);
        if self.filters.matches(body, &mut self.found).is_err() {
            self.malformed_messages += 1;
            return None;
        }
        if self.found.is_empty() {
            return None;
        }
        self.marks.clear();
        self.marks.extend(self.found.iter().map(|mark| U16::new(*mark as u16)));
        Some(ContentFrame::Message { number, marks: &self.marks, body })
    }

    /// Publishes `body` to the subscribers whose filters it matches; there is
    /// [room](Self::reserve).
    #[inline]
    pub(crate) fn publish(&mut self, body: &[u8]) {
        let number = self.next_number;
        self.next_number += 1;
        if self.evaluate(number, body).is_none() {
            return;
        }
        let frame = ContentFrame::Message { number, marks: &self.marks, body };
        self.reserved = 0;
        // Never waits for room: the caller's claim locks the other session, whose subscribers would
        // take the publisher for dead.
        let claimed = self.session.try_claim(frame.len()).map(|mut room| {
            frame.write(&mut room);
            room.commit();
        });
        // The room was reserved: a closed session refuses, or one to which a subscriber has come
        // back that reads on where it was given up.
        if claimed.is_err() {
            self.end_filters(1, number);
        }
    }

    /// After `count` matching messages that were not published, from number `first` on: ends all
    /// filters. Before the next message their subscribers learn it, request their filters anew,
    /// and learn from the answer which messages they have missed.
    #[cold]
    fn end_filters(&mut self, count: u64, first: u64) {
        self.unpublished += count;
        let sessions: Vec<SessionId> = self.filters.subscribers().collect();
        sessions.into_iter().for_each(|session| self.end_filter(session, first));
    }

    /// Ends the filter of `session`, which messages from `first` on are not sent by.
    fn end_filter(&mut self, session: SessionId, first: u64) {
        let mark = self.filters.sole_mark(session);
        self.void_marks.extend(mark.map(|mark| VoidMark { mark, first }));
        self.filters.release(session);
    }

    /// Numbers of evaluations and of malformed messages.
    pub(crate) const fn counts(&self) -> (u64, u64) {
        (self.evaluations, self.malformed_messages)
    }

    /// Takes back evaluations: their messages are evaluated again.
    pub(crate) const fn reset_counts(&mut self, counts: (u64, u64)) {
        (self.evaluations, self.malformed_messages) = counts;
    }

    /// Appends the frame of a batch's message, the one after `before` others, to `frames` and its
    /// length to `lengths`, if any filter matches.
    pub(crate) fn collect(
        &mut self,
        before: u64,
        body: &[u8],
        frames: &mut Vec<u8>,
        lengths: &mut Vec<usize>,
    ) {
        let number = self.next_number + before;
        let Some(frame) = self.evaluate(number, body) else { return };
        let start = frames.len();
        frames.resize(start + frame.len(), 0);
        frame.write(&mut frames[start..]);
        lengths.push(frame.len());
    }

    /// Publishes the collected frames of a batch of `count` messages together; there is
    /// [room](Self::reserve_batch).
    pub(crate) fn publish_batch(&mut self, count: u64, mut frames: &[u8], lengths: &[usize]) {
        let first = self.next_number;
        self.next_number += count;
        self.reserved = 0;
        let mut batch = self.session.batch();
        for length in lengths {
            let (frame, rest) = frames.split_at(*length);
            let Ok(room) = batch.try_add(TopicId::FIRST, frame.len()) else { break };
            room.copy_from_slice(frame);
            frames = rest;
        }
        let refused = lengths.len() - batch.publish();
        // As for a single message.
        if refused > 0 {
            self.end_filters(refused as u64, first);
        }
    }

    /// Counts a message that no filter is evaluated on.
    pub(crate) const fn skip_number(&mut self) {
        self.next_number += 1;
    }

    fn poll_control(&mut self) {
        let (own, longest) = (U64::new(self.session.session().0), self.filters.longest());
        let (control_events, malformed_frames) =
            (&mut self.control_events, &mut self.malformed_frames);
        self.control.poll(CONTROL_POLL_LIMIT, |event| match event {
            Event::Message(message) => {
                let request = match ContentFrame::read(message.bytes()) {
                    // Its subscriber reads another publisher, and may not have joined this one:
                    // it would miss the answer.
                    Ok(ContentFrame::Wanted { sessions, .. }) if !sessions.contains(&own) => return,
                    // Not copied: a stranger chooses the length.
                    Ok(ContentFrame::Wanted { filter, .. }) if filter.len() > longest => {
                        ControlEvent::FilterTooLong(filter.len())
                    }
                    Ok(ContentFrame::Wanted { filter, .. }) => {
                        ControlEvent::FilterRequested(filter.to_owned())
                    }
                    Err(ContentFrameError::Version(version)) => {
                        *malformed_frames += 1;
                        ControlEvent::OtherVersion(version)
                    }
                    _ => return *malformed_frames += 1,
                };
                // An overwritten request is repeated by its subscriber.
                if message.is_intact() {
                    control_events.push_back((message.stream().session, request));
                }
            }
            Event::Left(stream, _) => {
                control_events.push_back((stream.session, ControlEvent::Departed))
            }
            // Subscribers repeat lost requests until they are answered.
            _ => {}
        });
    }

    /// Handles a control event. Returns false if there is no room for the answer.
    fn handle(&mut self, session: SessionId, event: &ControlEvent) -> bool {
        let ends_filter = match (event, self.filters.mark_of(session)) {
            (ControlEvent::FilterRequested(new), Some((_, old))) => new != old,
            (ControlEvent::OtherVersion(_), _) => false,
            (_, has_filter) => has_filter.is_some(),
        };
        if ends_filter {
            self.end_filter(session, self.next_number);
        }
        if matches!(event, ControlEvent::Departed) {
            return true;
        }
        // First: a new filter may get a void mark.
        if !self.withdraw_void() {
            return false;
        }
        match event {
            ControlEvent::FilterRequested(text) => self.answer(session, text),
            ControlEvent::FilterTooLong(length) => {
                let (length, limit) = (*length, self.filters.longest());
                self.refuse(session, &FilterErrorKind::TooLong { length, limit }.to_string())
            }
            ControlEvent::OtherVersion(version) => self.refuse_version(session, *version),
            ControlEvent::Departed => true,
        }
    }

    /// Answers the request of the filter `text`. Returns false if there is no room for the answer.
    fn answer(&mut self, session: SessionId, text: &str) -> bool {
        let next = self.next_number;
        let in_force = |mark| ContentFrame::InForce { mark, session: session.0, next };
        if let Some((mark, _)) = self.filters.mark_of(session) {
            return self.send(&in_force(mark));
        }
        match self.filters.subscribe(session, text) {
            Ok(mark) => {
                let is_told = self.send(&in_force(mark));
                // An unconfirmed mark would be added to every matching message for no reader.
                if !is_told {
                    self.filters.release(session);
                }
                is_told
            }
            Err(reason) => self.refuse(session, &reason),
        }
    }

    fn refuse(&mut self, session: SessionId, reason: &str) -> bool {
        let reason: String = reason.chars().take(REASON_MAX).collect();
        self.send(&ContentFrame::Refused { session: session.0, reason: &reason })
    }

    /// Refuses a request of another version; the subscriber reads the version of the answer.
    fn refuse_version(&mut self, session: SessionId, version: u8) -> bool {
        let reason = format!(
            "the filter request is of version {version}, this publisher serves version \
             {CONTENT_VERSION}: use one version of lanecast"
        );
        self.refuse(session, &reason)
    }

    /// Withdraws the void marks; returns false if there is no room now.
    pub(crate) fn withdraw_void(&mut self) -> bool {
        self.void_marks.is_empty() || self.withdraw_after(|_, _| Ok(())).is_ok()
    }

    /// Withdraws the void marks: a departed subscriber may still read, and have lost only the way
    /// of its requests. Has `claim` find room for each frame.
    #[cold]
    fn withdraw_after(
        &mut self,
        mut claim: impl FnMut(&mut C::Publisher, usize) -> Result<(), ClaimError>,
    ) -> Result<(), ClaimError> {
        while let Some(VoidMark { mark, first }) = self.void_marks.last().copied() {
            let frame = ContentFrame::Withdrawn { mark, first, next: self.next_number };
            self.reserved = 0;
            if let Err(refused @ ClaimError::BackPressured(_)) =
                claim(&mut self.session, frame.len())
            {
                self.is_refused = true;
                return Err(refused);
            }
            if !self.send(&frame) {
                return Err(ClaimError::BackPressured(BackPressureReason::WindowFull));
            }
            self.void_marks.pop();
        }
        Ok(())
    }

    /// Sends a frame. Returns false if there is no room now; errors that retrying cannot mend drop
    /// the frame.
    fn send(&mut self, frame: &ContentFrame<'_>) -> bool {
        self.reserved = 0;
        self.answer.resize(frame.len(), 0);
        frame.write(&mut self.answer);
        // Reports on what was read tell of messages, not of answers.
        match self.session.try_send_uncounted(&self.answer) {
            Ok(()) => {
                self.is_refused = false;
                true
            }
            Err(error) => {
                self.is_refused = matches!(error, ClaimError::BackPressured(_));
                !self.is_refused
            }
        }
    }
}

impl<C: Transport> Drop for Matching<C> {
    /// A subscriber that was owed a message learns of it before its stream ends.
    fn drop(&mut self) {
        self.withdraw_void();
    }
}

/// Finds room for a message of `len` bytes that stays, if there is some now.
pub(crate) fn try_find_room(session: &mut impl Publish, len: usize) -> Result<(), ClaimError> {
    session.try_reserve(1, len)
}

/// The same, waiting for room.
pub(crate) fn find_room(session: &mut impl Publish, len: usize) -> Result<(), ClaimError> {
    loop {
        match session.try_reserve(1, len) {
            // A refusal has sent what was packed: room for a claim is room that stays.
            Err(ClaimError::BackPressured(_)) => session.claim(len)?.abort(),
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests;
