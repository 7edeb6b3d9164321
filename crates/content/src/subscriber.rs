//! The reading side.

use crate::error::OpenError;
use crate::event::{Event, Matched};
use crate::settings::Settings;
use crate::{control_topic, data_topic};
use lanecast_filter::Filter;
use lanecast_transport::{self as transport, Claim, Publish, SessionId, Subscribe, Transport};
use lanecast_wire::content::ContentFrame;
use std::time::{Duration, Instant};

/// Reads what meets its filter, of every publisher of its topic, now and later.
#[derive(Debug)]
pub struct Subscriber<C: Transport> {
    feed: C::Subscriber,
    control: C::Publisher,
    filter: String,
    desk: Desk,
    ask_again: Duration,
    asked: Option<Instant>,
}

/// How things stand with each publisher.
#[derive(Debug)]
struct Desk {
    /// In which it is said what this subscriber wants.
    session: u64,
    standings: Vec<(SessionId, Standing)>,
    ignored: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Asked,
    InForce(u16),
    Refused,
}

impl<C: Transport> Subscriber<C> {
    /// A subscriber to those messages of `topic` that meet `filter`.
    ///
    /// # Errors
    /// If the filter is none, or the transport cannot set it up.
    pub fn new(
        transport: &C,
        topic: &str,
        filter: &str,
        settings: &Settings,
    ) -> Result<Self, OpenError<C::Error>> {
        if !Filter::parse_with(filter, &settings.limits)?.is_deterministic() {
            return Err(OpenError::Timely);
        }
        let control = transport.publisher(&control_topic(topic)).map_err(OpenError::Transport)?;
        let feed = transport.subscriber(&[&data_topic(topic)]).map_err(OpenError::Transport)?;
        let desk = Desk { session: control.session().0, standings: Vec::new(), ignored: 0 };
        let (filter, ask_again) = (filter.to_owned(), settings.ask_again);
        Ok(Self { feed, control, filter, desk, ask_again, asked: None })
    }

    /// Hands what has come to `handler`, at most `limit` messages of the transport; how much that
    /// was, with the messages that others want. Asks publishers that have not answered. Never
    /// blocks.
    pub fn poll(&mut self, limit: usize, mut handler: impl FnMut(Event<'_>)) -> usize {
        let desk = &mut self.desk;
        let work = self.feed.poll(limit, |event| desk.take(event, &mut handler));
        if desk.standings.iter().any(|(_, standing)| *standing == Standing::Asked) {
            self.ask();
        }
        work
    }

    /// As [`Subscribe::wait`], after a poll that returned `work`.
    pub fn wait(&mut self, work: usize) {
        self.feed.wait(work);
    }

    /// The transport's own subscriber, for what only that one can: to come back to a publisher that
    /// went on without it, say.
    pub const fn feed(&mut self) -> &mut C::Subscriber {
        &mut self.feed
    }

    /// How many publishers are there.
    pub fn publishers(&self) -> usize {
        self.desk.standings.len()
    }

    /// How many of them send what meets the filter.
    pub fn in_force(&self) -> usize {
        let is_in_force = |it: &&(_, Standing)| matches!(it.1, Standing::InForce(_));
        self.desk.standings.iter().filter(is_in_force).count()
    }

    /// How many messages came from publishers that made no sense.
    pub const fn ignored(&self) -> u64 {
        self.desk.ignored
    }

    fn ask(&mut self) {
        if self.asked.is_some_and(|asked| asked.elapsed() < self.ask_again) {
            return;
        }
        self.asked = Some(Instant::now());
        let frame = ContentFrame::Wanted { filter: &self.filter };
        // Without room it is asked the next time.
        if let Ok(mut claim) = self.control.try_claim(frame.len()) {
            frame.write(&mut claim);
            claim.commit();
        }
    }
}

impl Desk {
    #[inline]
    fn take(&mut self, event: transport::Event<'_>, handler: &mut impl FnMut(Event<'_>)) {
        match event {
            transport::Event::Message(message) => self.message(message, handler),
            transport::Event::Joined(stream) => {
                self.standings.push((stream.session, Standing::Asked));
                handler(Event::Joined(stream));
            }
            transport::Event::Lost(gap) => {
                handler(Event::Lost(gap));
                self.lapse(gap.stream, handler);
            }
            transport::Event::Left(stream, why) => {
                self.standings.retain(|(session, _)| *session != stream.session);
                handler(Event::Left(stream, why));
            }
            _ => {}
        }
    }

    #[inline]
    fn message(&mut self, whole: transport::Message<'_>, handler: &mut impl FnMut(Event<'_>)) {
        let stream = whole.stream();
        let standing = self.standing(stream).copied();
        let mark = match standing {
            Some(Standing::InForce(mark)) => Some(mark),
            _ => None,
        };
        let frame = ContentFrame::read(whole.bytes());
        if !whole.is_intact() {
            // What was read may be anybody's bytes; the loss is told next.
            return;
        }
        match frame {
            Some(ContentFrame::Message { marks, body }) => {
                if mark.is_some_and(|mark| marks.iter().any(|other| other.get() == mark)) {
                    handler(Event::Message(Matched { body, whole }));
                }
            }
            Some(ContentFrame::InForce { mark: new, session }) if session == self.session => {
                self.stand(stream, Standing::InForce(new));
                if mark != Some(new) {
                    handler(Event::InForce(stream));
                }
            }
            Some(ContentFrame::Refused { session, reason }) if session == self.session => {
                if standing == Some(Standing::Asked) {
                    self.stand(stream, Standing::Refused);
                    handler(Event::Refused(stream, reason));
                }
            }
            Some(ContentFrame::Withdrawn { mark: gone }) if mark == Some(gone) => {
                self.lapse(stream, handler);
            }
            Some(ContentFrame::Wanted { .. }) | None => self.ignored += 1,
            // For others.
            Some(_) => {}
        }
    }

    /// The publisher has to be asked again.
    fn lapse(&mut self, stream: &transport::Stream, handler: &mut impl FnMut(Event<'_>)) {
        if matches!(self.standing(stream), Some(Standing::InForce(_))) {
            self.stand(stream, Standing::Asked);
            handler(Event::Lapsed(stream));
        }
    }

    fn standing(&mut self, stream: &transport::Stream) -> Option<&mut Standing> {
        let mut standings = self.standings.iter_mut();
        standings.find(|(session, _)| *session == stream.session).map(|(_, standing)| standing)
    }

    fn stand(&mut self, stream: &transport::Stream, now: Standing) {
        if let Some(standing) = self.standing(stream) {
            *standing = now;
        }
    }
}
