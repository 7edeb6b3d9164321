//! lanecast, over any of its transports: there on one topic, back on another.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use lanecast_transport::{Claim, ClaimError, Event, Publish, Subscribe, Transport};

use crate::end::End;
use crate::place::Role;

const THERE: &str = "there";
const BACK: &str = "back";
/// Messages that one poll hands over.
const POLL_LIMIT: usize = 64;
/// Time limit for subscribers to join.
const LIMIT: Duration = Duration::from_secs(20);

/// An end over a transport; one-way roles have one half only.
#[derive(Debug)]
pub struct Topics<C: Transport> {
    publisher: Option<C::Publisher>,
    subscriber: Option<C::Subscriber>,
    sleeps: bool,
    /// Subscribers that have to join before the first message.
    expected: usize,
}

impl<C: Transport> Topics<C> {
    /// An end in its role; one that begins waits for `expected` subscribers when it first sends.
    ///
    /// # Errors
    ///
    /// When the transport cannot make its ends.
    pub fn new(transport: &C, role: Role, expected: usize, sleeps: bool) -> Result<Self> {
        let (out, inward) = match role {
            Role::Ping => (Some(THERE), Some(BACK)),
            Role::Pong => (Some(BACK), Some(THERE)),
            Role::Pub => (Some(THERE), None),
            Role::Sub => (None, Some(THERE)),
        };
        let publisher = out.map(|topic| transport.publisher(topic)).transpose()?;
        let subscriber = inward.map(|topic| transport.subscriber(&[topic])).transpose()?;
        Ok(Self { publisher, subscriber, sleeps, expected })
    }

    #[cold]
    fn wait_for_subscribers(&mut self) -> Result<()> {
        let publisher = self.publisher.as_mut().context("this role does not send")?;
        if !publisher.wait_for_subscribers(self.expected, LIMIT) {
            bail!("fewer than {} subscribers joined", self.expected);
        }
        self.expected = 0;
        Ok(())
    }
}

impl<C: Transport> End for Topics<C> {
    #[inline]
    fn send(&mut self, size: usize, mut fill: impl FnMut(&mut [u8])) -> Result<bool> {
        if self.expected > 0 {
            self.wait_for_subscribers()?;
        }
        let publisher = self.publisher.as_mut().context("this role does not send")?;
        match publisher.try_claim(size) {
            Ok(mut claim) => {
                fill(&mut claim);
                claim.commit();
                Ok(true)
            }
            Err(ClaimError::BackPressured(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn flush(&mut self) -> Result<bool> {
        Ok(true)
    }

    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> Result<usize> {
        let subscriber = self.subscriber.as_mut().context("this role does not receive")?;
        let mut count = 0;
        let work = subscriber.poll(POLL_LIMIT, |event| {
            if let Event::Message(message) = event {
                each(message.bytes());
                count += 1;
            }
        });
        if self.sleeps {
            subscriber.wait(work);
        }
        Ok(count)
    }
}
