//! Publisher: matches messages against the filters of all subscribers.

use crate::error::{OpenError, PublishError};
use crate::filters::Filters;
use crate::settings::ContentSettings;
use crate::topics::{control_topic, data_topic};
use lanecast_transport::{
    Claim, ClaimError, Completion, Event, Publish, SessionId, Subscribe, Transport,
};
use lanecast_wire::content::ContentFrame;
use std::collections::VecDeque;
use std::time::Duration;
use zerocopy::little_endian::U16;

/// Most control messages per poll.
const CONTROL_POLL_LIMIT: usize = 64;
/// Messages published between two polls of the control topic.
const CONTROL_POLL_INTERVAL: u32 = 32;
/// Longest reason of a refusal, in characters.
const REASON_MAX: usize = 300;

/// Publishes messages that match a filter, with the marks of all filters they match.
///
/// An idle publisher has to call [`poll_subscribers`](Self::poll_subscribers) regularly, or new
/// subscribers wait for their filter.
#[derive(Debug)]
pub struct Publisher<C: Transport> {
    data: C::Publisher,
    control: C::Subscriber,
    filters: Filters,
    /// Control events not yet handled.
    control_events: VecDeque<(SessionId, ControlEvent)>,
    /// Messages until the next poll of the control topic.
    until_poll: u32,
    malformed_frames: u64,
    found: Vec<u32>,
    marks: Vec<U16>,
}

#[derive(Debug)]
enum ControlEvent {
    FilterRequested(String),
    Disconnected,
}

impl<C: Transport> Publisher<C> {
    /// Opens a publisher of `topic`.
    ///
    /// # Errors
    ///
    /// If the transport fails.
    pub fn new(
        transport: &C,
        topic: &str,
        settings: ContentSettings,
    ) -> Result<Self, OpenError<C::Error>> {
        // The control topic opens first: a subscriber that finds the data topic can send its filter
        // at once.
        let control =
            transport.subscriber(&[&control_topic(topic)]).map_err(OpenError::Transport)?;
        let data = transport.publisher(&data_topic(topic)).map_err(OpenError::Transport)?;
        Ok(Self {
            data,
            control,
            filters: Filters::new(topic, settings),
            control_events: VecDeque::new(),
            until_poll: 0,
            malformed_frames: 0,
            found: Vec::new(),
            marks: Vec::new(),
        })
    }

    /// Number of active filters.
    pub fn filters(&self) -> usize {
        self.filters.len()
    }

    /// Number of malformed control messages.
    pub const fn malformed_frames(&self) -> u64 {
        self.malformed_frames
    }

    /// Handles filter requests and departures of subscribers, without blocking; returns their
    /// number.
    pub fn poll_subscribers(&mut self) -> usize {
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
        done
    }

    /// Publishes `message` if it matches a filter and there is room. Returns the number of matching
    /// filters.
    ///
    /// # Errors
    ///
    /// If filters are active and the message is malformed, or a [`ClaimError`]; retry after
    /// `BackPressured`.
    pub fn try_publish(&mut self, message: &[u8]) -> Result<usize, PublishError> {
        self.match_filters(message)?;
        self.write(message, |data, length| data.try_claim(length))
    }

    /// As [`try_publish`](Self::try_publish), but waits for room by the publisher's wait strategy.
    ///
    /// # Errors
    ///
    /// As [`try_publish`](Self::try_publish), except `BackPressured`.
    pub fn publish(&mut self, message: &[u8]) -> Result<usize, PublishError> {
        self.match_filters(message)?;
        self.write(message, |data, length| data.claim(length))
    }

    /// Closes the publisher; lingers at most `linger` until all subscribers have read everything,
    /// and reports which have.
    pub fn close(self, linger: Duration) -> Completion {
        self.data.close(linger)
    }

    /// Finds the marks of the filters that `message` satisfies.
    #[inline]
    fn match_filters(&mut self, message: &[u8]) -> Result<(), PublishError> {
        match self.until_poll.checked_sub(1) {
            Some(left) => self.until_poll = left,
            None => drop(self.poll_subscribers()),
        }
        self.filters.matches(message, &mut self.found)?;
        self.marks.clear();
        self.marks.extend(self.found.iter().map(|mark| U16::new(*mark as u16)));
        Ok(())
    }

    #[inline]
    fn write<'a>(
        &'a mut self,
        body: &[u8],
        claim: impl FnOnce(&'a mut C::Publisher, usize) -> Result<Room<'a, C>, ClaimError>,
    ) -> Result<usize, PublishError> {
        if self.marks.is_empty() {
            return Ok(0);
        }
        let frame = ContentFrame::Message { marks: &self.marks, body };
        let mut room = claim(&mut self.data, frame.len())?;
        frame.write(&mut room);
        room.commit();
        Ok(self.marks.len())
    }

    fn poll_control(&mut self) {
        let (control_events, malformed_frames) =
            (&mut self.control_events, &mut self.malformed_frames);
        self.control.poll(CONTROL_POLL_LIMIT, |event| match event {
            Event::Message(message) => match ContentFrame::read(message.bytes()) {
                Some(ContentFrame::Wanted { filter }) => {
                    let wants = ControlEvent::FilterRequested(filter.to_owned());
                    // An overwritten request is repeated by its subscriber.
                    if message.is_intact() {
                        control_events.push_back((message.stream().session, wants));
                    }
                }
                _ => *malformed_frames += 1,
            },
            Event::Left(stream, _) => {
                control_events.push_back((stream.session, ControlEvent::Disconnected))
            }
            // Subscribers repeat lost requests until they are answered.
            _ => {}
        });
    }

    /// Handles a control event. Returns false if there is no room for the answer.
    fn handle(&mut self, session: SessionId, event: &ControlEvent) -> bool {
        let ControlEvent::FilterRequested(text) = event else { return self.withdraw(session) };
        let in_force = |mark| ContentFrame::InForce { mark, session: session.0 };
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

    fn withdraw(&mut self, session: SessionId) -> bool {
        if let Some(mark) = self.filters.sole_mark(session)
            && !self.send(&ContentFrame::Withdrawn { mark })
        {
            return false;
        }
        self.filters.release(session);
        true
    }

    /// Sends a frame. Returns false if there is no room now; errors that retrying cannot mend drop
    /// the frame.
    fn send(&mut self, frame: &ContentFrame<'_>) -> bool {
        match self.data.try_claim(frame.len()) {
            Ok(mut claim) => {
                frame.write(&mut claim);
                claim.commit();
                true
            }
            Err(error) => !matches!(error, ClaimError::BackPressured(_)),
        }
    }
}

/// A claimed buffer of a transport.
type Room<'a, C> = <<C as Transport>::Publisher as Publish>::Claim<'a>;
