//! iceoryx2 in the configuration that streams small messages best.
//!
//! A service of byte slices that never overflows, buffers of 1024 samples, room that fits the
//! message and is never grown. A full buffer makes the publisher ask again at once: the built-in
//! wait between two attempts sleeps, which costs rate.

use std::mem::MaybeUninit;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use iceoryx2::node::{Node, NodeBuilder};
use iceoryx2::port::BackpressureAction;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe;

use rivals_kit::{Load, Receiver, Sender, Tally, Wait};

/// Samples that a subscriber's buffer holds.
const BUFFER: usize = 1024;
const MOST_NODES: usize = 16;
/// Time limit for the subscribers to connect, and to disconnect.
const PEER_LIMIT: Duration = Duration::from_secs(20);
/// Samples taken before the subscriber looks whether it is done.
const POLL_LIMIT: usize = 64;

type Topic = publish_subscribe::PortFactory<ipc::Service, [u8], ()>;

/// The service both ends open; keeps its node alive.
#[derive(Debug)]
pub struct Service {
    topic: Topic,
    _node: Node<ipc::Service>,
}

impl Service {
    /// Opens the service of the load, or makes it.
    ///
    /// # Errors
    ///
    /// When iceoryx2 refuses the configuration or its directory.
    pub fn open(load: &Load) -> Result<Self> {
        set_log_level(LogLevel::Error);
        let node = NodeBuilder::new()
            .config(&domain(&load.domain)?)
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .create::<ipc::Service>()
            .map_err(|error| anyhow!("no node: {error:?}"))?;
        let name = ServiceName::new(&load.topic).map_err(|error| anyhow!("topic: {error:?}"))?;
        let topic = node
            .service_builder(&name)
            .publish_subscribe::<[u8]>()
            .enable_safe_overflow(false)
            .subscriber_max_buffer_size(BUFFER)
            .subscriber_max_borrowed_samples(2)
            .history_size(0)
            .max_publishers(1)
            .max_subscribers(load.subscribers)
            .max_nodes(MOST_NODES)
            .open_or_create()
            .map_err(|error| anyhow!("no service: {error:?}"))?;
        Ok(Self { topic, _node: node })
    }

    fn subscribers(&self) -> usize {
        self.topic.dynamic_config().number_of_subscribers()
    }
}

/// A directory and a file-name prefix of its own, so that runs do not meet and what a killed
/// program leaves can be found.
fn domain(name: &str) -> Result<Config> {
    let mut config = Config::default();
    let root = std::env::temp_dir().join(name);
    let root = root.to_str().ok_or_else(|| anyhow!("the temporary directory has no UTF-8 name"))?;
    let root = Path::new(root.as_bytes()).map_err(|error| anyhow!("{root}: {error:?}"))?;
    config.global.set_root_path(&root);
    let prefix = format!("{name}_");
    config.global.prefix =
        FileName::new(prefix.as_bytes()).map_err(|error| anyhow!("{prefix}: {error:?}"))?;
    Ok(config)
}

/// The publishing end.
#[derive(Debug)]
pub struct Outlet {
    port: Publisher<ipc::Service, [u8], ()>,
    service: Service,
}

impl Outlet {
    /// Makes the publisher and waits until the load's subscribers are connected.
    ///
    /// # Errors
    ///
    /// When the port cannot be made or the subscribers do not come in time.
    pub fn connect(load: &Load, service: Service) -> Result<Self> {
        let wait = load.wait;
        let port = service
            .topic
            .publisher_builder()
            .initial_max_slice_len(load.size)
            .allocation_strategy(AllocationStrategy::Static)
            .max_loaned_samples(1)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .set_backpressure_handler(move |_| {
                if wait == Wait::Yield {
                    thread::yield_now();
                }
                BackpressureAction::Retry
            })
            .create()
            .map_err(|error| anyhow!("no publisher: {error:?}"))?;
        let outlet = Self { port, service };
        let wanted = load.subscribers;
        let come = within(PEER_LIMIT, || outlet.service.subscribers() >= wanted);
        ensure!(come, "fewer than {wanted} subscribers came");
        outlet.port.update_connections().map_err(|error| anyhow!("no connection: {error:?}"))?;
        Ok(outlet)
    }
}

impl Sender for Outlet {
    #[inline]
    fn send(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut loan =
            self.port.loan_slice_uninit(size).map_err(|error| anyhow!("no loan: {error:?}"))?;
        fill(bytes_of(loan.payload_mut()));
        // SAFETY: the loan lies in mapped shared memory, which the kernel hands out zeroed, and
        // any byte is a valid `u8`.
        let sample = unsafe { loan.assume_init() };
        sample.send().map_err(|error| anyhow!("not sent: {error:?}"))?;
        Ok(())
    }

    fn linger(&mut self) -> Result<()> {
        let gone = within(PEER_LIMIT, || self.service.subscribers() == 0);
        ensure!(gone, "subscribers still there");
        Ok(())
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Intake {
    port: Subscriber<ipc::Service, [u8], ()>,
    _service: Service,
}

impl Intake {
    /// Makes the subscriber.
    ///
    /// # Errors
    ///
    /// When the port cannot be made.
    pub fn connect(service: Service) -> Result<Self> {
        let port = service
            .topic
            .subscriber_builder()
            .buffer_size(BUFFER)
            .create()
            .map_err(|error| anyhow!("no subscriber: {error:?}"))?;
        Ok(Self { port, _service: service })
    }
}

impl Receiver for Intake {
    #[inline]
    fn poll(&mut self, tally: &mut Tally) -> Result<usize> {
        for taken in 0..POLL_LIMIT {
            let sample = self.port.receive().map_err(|error| anyhow!("no sample: {error:?}"))?;
            let Some(sample) = sample else { return Ok(taken) };
            tally.take(sample.payload());
        }
        Ok(POLL_LIMIT)
    }
}

fn bytes_of(room: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    let (start, len) = (room.as_mut_ptr().cast::<u8>(), room.len());
    // SAFETY: same memory, same length, same lifetime; mapped shared memory holds some byte
    // everywhere, so nothing in it is uninitialised.
    unsafe { std::slice::from_raw_parts_mut(start, len) }
}

/// Asks every millisecond until it is so or the time is over; tells whether it is so.
fn within(limit: Duration, is_so: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !is_so() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}
