//! A run of events of an application's subscriber, over any transport.

use lanecast_net::{NetEvents, NetRun};
use lanecast_shm::{ShmEvents, ShmRun};
use lanecast_transport::{Event, Run};
use std::fmt;

/// A run of events over shared memory or the network: see [`Run`].
#[must_use = "a run that is dropped at once consumes nothing"]
#[derive(Debug)]
pub struct AnyRun<'a> {
    inner: Inner<'a>,
}

#[derive(Debug)]
enum Inner<'a> {
    Shm(ShmRun<'a>),
    Net(NetRun<'a>),
}

impl<'a> From<ShmRun<'a>> for AnyRun<'a> {
    fn from(run: ShmRun<'a>) -> Self {
        Self { inner: Inner::Shm(run) }
    }
}

impl<'a> From<NetRun<'a>> for AnyRun<'a> {
    fn from(run: NetRun<'a>) -> Self {
        Self { inner: Inner::Net(run) }
    }
}

impl Run for AnyRun<'_> {
    type Events<'r>
        = AnyEvents<'r>
    where
        Self: 'r;

    #[inline]
    fn iter(&self) -> AnyEvents<'_> {
        let inner = match &self.inner {
            Inner::Shm(run) => Events::Shm(run.iter()),
            Inner::Net(run) => Events::Net(run.iter()),
        };
        AnyEvents { inner }
    }
}

impl<'r> IntoIterator for &'r AnyRun<'_> {
    type Item = Event<'r>;
    type IntoIter = AnyEvents<'r>;

    #[inline]
    fn into_iter(self) -> AnyEvents<'r> {
        self.iter()
    }
}

/// Iterator over the events of an [`AnyRun`].
pub struct AnyEvents<'r> {
    inner: Events<'r>,
}

enum Events<'r> {
    Shm(ShmEvents<'r>),
    Net(NetEvents<'r>),
}

impl<'r> Iterator for AnyEvents<'r> {
    type Item = Event<'r>;

    #[inline(always)]
    fn next(&mut self) -> Option<Event<'r>> {
        match &mut self.inner {
            Events::Shm(events) => events.next(),
            Events::Net(events) => events.next(),
        }
    }

    // One choice of the transport for the whole run.
    #[inline]
    fn fold<B, F: FnMut(B, Event<'r>) -> B>(self, init: B, f: F) -> B {
        match self.inner {
            Events::Shm(events) => events.fold(init, f),
            Events::Net(events) => events.fold(init, f),
        }
    }
}

impl fmt::Debug for AnyEvents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyEvents").finish_non_exhaustive()
    }
}
