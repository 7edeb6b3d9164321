//! A transport that is open, and the work that is done over it.

use lanecast::PersistenceSettings;
use lanecast_base::clock::Clock;
use lanecast_base::{Size, WaitStrategy};
use lanecast_measure::persistent::FlightResult;
use lanecast_measure::{DatagramIo, PriorityChange, Setup};
use lanecast_transport::Transport;

/// A transport made from arguments, and its settings.
pub(crate) struct Opened<C: Transport> {
    /// The transport.
    pub(crate) transport: C,
    /// Wait strategy of a publisher without room.
    pub(crate) publisher_wait: WaitStrategy,
    /// Wait strategy of a subscriber without messages.
    pub(crate) subscriber_wait: WaitStrategy,
    /// A publisher's window.
    pub(crate) window: Size,
    /// Counters of its ends.
    pub(crate) counts: Counts<C>,
    /// Stores, as configured.
    pub(crate) persistence: PersistenceSettings,
    /// Messages in flight so far, if stores keep them.
    pub(crate) flight: Option<Box<dyn Fn() -> FlightResult + Sync>>,
    /// Way of the datagrams, as in use; none without datagrams.
    pub(crate) io: Option<DatagramIo>,
    /// The reason why it is not the way that was asked for.
    pub(crate) io_fallback: Option<String>,
    /// Subscribers get messages in order of arrival.
    pub(crate) is_unordered: bool,
}

/// Questions to a transport's ends that the contract of all transports does not have.
pub(crate) struct Counts<C: Transport> {
    /// Number of times that a publisher found no room, if the transport counts these.
    pub(crate) back_pressured: fn(&C::Publisher) -> Option<u64>,
    /// Number of messages that a subscriber got by retransmission, if the transport counts these.
    pub(crate) recovered: fn(&mut C::Subscriber) -> Option<u64>,
}

impl<C: Transport> Opened<C> {
    pub(crate) fn setup(&self, wait: WaitStrategy, raise: PriorityChange) -> Setup {
        Setup { wait, window: self.window, io: self.io, raise, clock: Clock::host() }
    }

    /// Messages in flight so far, if stores keep them.
    pub(crate) fn flight(&self) -> Option<FlightResult> {
        self.flight.as_ref().map(|flight| flight())
    }
}

/// Work that runs over any transport.
pub(crate) trait TransportWork {
    /// Result of the work.
    type Outcome;

    /// Does it.
    fn over<C: Transport + Clone + Send + Sync + 'static>(
        self,
        opened: &Opened<C>,
    ) -> anyhow::Result<Self::Outcome>;
}
