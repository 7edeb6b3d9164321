//! The writing side.

use crate::error::{OpenError, PublishError};
use crate::filters::Filters;
use crate::settings::Settings;
use crate::{control_topic, data_topic};
use lanecast_transport::{Claim, ClaimError, Event, Publish, SessionId, Subscribe, Transport};
use lanecast_wire::content::ContentFrame;
use std::collections::VecDeque;
use std::time::Duration;
use zerocopy::little_endian::U16;

/// What is heard of subscribers at a time.
const HEARD_MAX: usize = 64;
/// So many messages may be published between two times that subscribers are heard.
const HEAR_EVERY: u32 = 32;
/// The longest reason, in characters.
const REASON_MAX: usize = 300;

/// Publishes what somebody wants, marked with who that is.
///
/// A publisher that has nothing to publish for a while has to be [tended](Self::tend), or new
/// subscribers wait.
#[derive(Debug)]
pub struct Publisher<C: Transport> {
    data: C::Publisher,
    control: C::Subscriber,
    filters: Filters,
    /// What subscribers have done, and is not dealt with yet.
    acts: VecDeque<(SessionId, Act)>,
    /// How many messages may go before subscribers are heard again.
    until_heard: u32,
    ignored: u64,
    found: Vec<u32>,
    marks: Vec<U16>,
}

#[derive(Debug)]
enum Act {
    Wants(String),
    Leaves,
}

impl<C: Transport> Publisher<C> {
    /// A publisher of `topic`.
    ///
    /// # Errors
    /// If the transport cannot set it up.
    pub fn new(
        transport: &C,
        topic: &str,
        settings: Settings,
    ) -> Result<Self, OpenError<C::Error>> {
        // Whoever finds the data finds somebody who listens.
        let control =
            transport.subscriber(&[&control_topic(topic)]).map_err(OpenError::Transport)?;
        let data = transport.publisher(&data_topic(topic)).map_err(OpenError::Transport)?;
        Ok(Self {
            data,
            control,
            filters: Filters::new(topic, settings),
            acts: VecDeque::new(),
            until_heard: 0,
            ignored: 0,
            found: Vec::new(),
            marks: Vec::new(),
        })
    }

    /// How many different filters are in force.
    pub fn filters(&self) -> usize {
        self.filters.len()
    }

    /// How many messages came from subscribers that made no sense.
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Hears what subscribers want; how much there was. Never blocks.
    pub fn tend(&mut self) -> usize {
        self.until_heard = HEAR_EVERY;
        if self.acts.is_empty() {
            self.hear();
        }
        let mut done = 0;
        while let Some((session, act)) = self.acts.pop_front() {
            if !self.perform(session, &act) {
                self.acts.push_front((session, act));
                break;
            }
            done += 1;
        }
        done
    }

    /// Publishes a message if somebody wants it, and there is room; by how many filters.
    ///
    /// # Errors
    /// If somebody wants something and the message cannot be read; or see
    /// [`ClaimError`], of which `BackPressured` means to try again.
    pub fn try_publish(&mut self, message: &[u8]) -> Result<usize, PublishError> {
        self.judge(message)?;
        self.write(message, |data, length| data.try_claim(length))
    }

    /// As [`try_publish`](Self::try_publish), waiting for room by the publisher's strategy.
    ///
    /// # Errors
    /// As for [`try_publish`](Self::try_publish); never `BackPressured`.
    pub fn publish(&mut self, message: &[u8]) -> Result<usize, PublishError> {
        self.judge(message)?;
        self.write(message, |data, length| data.claim(length))
    }

    /// Ends it: lingers at most `linger` until all have read everything. Whether all had.
    pub fn close(self, linger: Duration) -> bool {
        self.data.close(linger)
    }

    /// Who wants it.
    #[inline]
    fn judge(&mut self, message: &[u8]) -> Result<(), PublishError> {
        match self.until_heard.checked_sub(1) {
            Some(left) => self.until_heard = left,
            None => drop(self.tend()),
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

    fn hear(&mut self) {
        let (acts, ignored) = (&mut self.acts, &mut self.ignored);
        self.control.poll(HEARD_MAX, |event| match event {
            Event::Message(message) => match ContentFrame::read(message.bytes()) {
                Some(ContentFrame::Wanted { filter }) => {
                    let wants = Act::Wants(filter.to_owned());
                    // What was overwritten meanwhile is asked for again.
                    if message.is_intact() {
                        acts.push_back((message.stream().session, wants));
                    }
                }
                _ => *ignored += 1,
            },
            Event::Left(stream, _) => acts.push_back((stream.session, Act::Leaves)),
            // What is lost is said again.
            _ => {}
        });
    }

    /// Does what follows from an act; false if there is no room to say so now.
    fn perform(&mut self, session: SessionId, act: &Act) -> bool {
        let Act::Wants(text) = act else { return self.withdraw(session) };
        let in_force = |mark| ContentFrame::InForce { mark, session: session.0 };
        if let Some((mark, held)) = self.filters.held(session) {
            if held == text {
                return self.tell(&in_force(mark));
            }
            if !self.withdraw(session) {
                return false;
            }
        }
        match self.filters.take(session, text) {
            Ok(mark) => {
                let is_told = self.tell(&in_force(mark));
                if !is_told {
                    self.filters.release(session);
                }
                is_told
            }
            Err(reason) => {
                let reason: String = reason.chars().take(REASON_MAX).collect();
                self.tell(&ContentFrame::Refused { session: session.0, reason: &reason })
            }
        }
    }

    fn withdraw(&mut self, session: SessionId) -> bool {
        if let Some(mark) = self.filters.last_held(session)
            && !self.tell(&ContentFrame::Withdrawn { mark })
        {
            return false;
        }
        self.filters.release(session);
        true
    }

    /// False if there is no room now. What can never be said is let go.
    fn tell(&mut self, frame: &ContentFrame<'_>) -> bool {
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

/// Room for a message on a transport.
type Room<'a, C> = <<C as Transport>::Publisher as Publish>::Claim<'a>;
