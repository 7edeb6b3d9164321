//! The session of matching messages, and the filters that decide which these are.

use crate::error::OpenError;
use crate::filters::Filters;
use crate::settings::ContentSettings;
use crate::topics::{content_topic, control_topic};
use lanecast_transport::{
    BackPressureReason, Batch, Claim, ClaimError, Event, Publish, SessionId, Subscribe, TopicId,
    Transport,
};
use lanecast_wire::content::{CONTENT_VERSION, ContentFrame, ContentFrameError};
use std::collections::VecDeque;
use zerocopy::little_endian::U16;

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
    /// Marks of departed subscribers, to be withdrawn before the next message or answer, or when
    /// one of them comes back, as soon as there is room for the frame.
    departed_marks: Vec<u16>,
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

#[derive(Debug)]
enum ControlEvent {
    FilterRequested(String),
    /// A request of another version.
    OtherVersion(u8),
    /// The subscriber is gone.
    Departed,
    /// A message that the subscriber may want was not published.
    Lapsed,
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
            departed_marks: Vec::new(),
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

    /// Subscribers whose filter is in force: both their sessions are joined.
    pub(crate) fn subscribers(&self) -> usize {
        self.session.subscribers().min(self.filters.sessions())
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
        if !self.departed_marks.is_empty() && self.control.streams() > self.filters.sessions() {
            let _ = self.withdraw_departed(|_, _| Ok(()));
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
        if !self.departed_marks.is_empty() {
            self.withdraw_departed(&mut find)?;
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
        if !self.departed_marks.is_empty() {
            self.withdraw_departed(try_find_room)?;
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
            self.end_filters(1);
        }
    }

    /// After `count` matching messages that were not published: ends all filters. Their subscribers
    /// request them anew, and learn from the answer which messages they have missed.
    #[cold]
    fn end_filters(&mut self, count: u64) {
        self.unpublished += count;
        let ended = self.filters.subscribers().map(|session| (session, ControlEvent::Lapsed));
        self.control_events.extend(ended);
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
            self.end_filters(refused as u64);
        }
    }

    fn poll_control(&mut self) {
        let (control_events, malformed_frames) =
            (&mut self.control_events, &mut self.malformed_frames);
        self.control.poll(CONTROL_POLL_LIMIT, |event| match event {
            Event::Message(message) => {
                let request = match ContentFrame::read(message.bytes()) {
                    Ok(ContentFrame::Wanted { filter }) => {
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
        if matches!(event, ControlEvent::Departed) {
            self.departed_marks.extend(self.filters.sole_mark(session));
            self.filters.release(session);
            return true;
        }
        // First: a new filter may get the mark of a departed subscriber.
        if self.withdraw_departed(|_, _| Ok(())).is_err() {
            return false;
        }
        let text = match event {
            ControlEvent::FilterRequested(text) => text,
            ControlEvent::OtherVersion(version) => return self.refuse_version(session, *version),
            ControlEvent::Departed | ControlEvent::Lapsed => return self.withdraw(session),
        };
        let next = self.next_number;
        let in_force = |mark| ContentFrame::InForce { mark, session: session.0, next };
        if let Some((mark, mark_of)) = self.filters.mark_of(session) {
            if mark_of == text {
                return self.send(&in_force(mark));
            }
            if !self.withdraw(session) {
                return false;
            }
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
            Err(reason) => {
                let reason: String = reason.chars().take(REASON_MAX).collect();
                self.send(&ContentFrame::Refused { session: session.0, reason: &reason })
            }
        }
    }

    /// Refuses a request of another version; the subscriber reads the version of the answer.
    fn refuse_version(&mut self, session: SessionId, version: u8) -> bool {
        let reason = format!(
            "the filter request is of version {version}, this publisher serves version \
             {CONTENT_VERSION}: use one version of lanecast"
        );
        self.send(&ContentFrame::Refused { session: session.0, reason: &reason })
    }

    fn withdraw(&mut self, session: SessionId) -> bool {
        if let Some(mark) = self.filters.sole_mark(session)
            && !self.send(&ContentFrame::Withdrawn { mark })
        {
            return false;
        }
        self.filters.release(session);
        true
    }

    /// Withdraws the marks of departed subscribers: one of them may still read, and have lost only
    /// the way of its requests. Has `claim` find room for each frame.
    #[cold]
    fn withdraw_departed(
        &mut self,
        mut claim: impl FnMut(&mut C::Publisher, usize) -> Result<(), ClaimError>,
    ) -> Result<(), ClaimError> {
        while let Some(mark) = self.departed_marks.last() {
            let frame = ContentFrame::Withdrawn { mark: *mark };
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
            self.departed_marks.pop();
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
