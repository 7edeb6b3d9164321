//! One end: peer to peer over TCP, without scouting and without a router.

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use rivals_kit::Load;
use rivals_network::end::End;
use rivals_network::peers::socket::LONGEST_SLEEP;
use rivals_network::place::{Place, Role};
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;
use zenoh::{Config, Wait};

/// The version that `Cargo.toml` of the workspace pins.
pub const VERSION: &str = "1.10.2";
const THERE: &str = "there";
const BACK: &str = "back";
/// A listening end announces itself below this key.
const ALIVE: &str = "alive";
/// Messages between Zenoh's threads and this one.
const QUEUE: usize = 4096;
/// Messages that are taken at once.
const LIMIT: usize = 64;
/// Time limit for the other ends to connect.
const PATIENCE: Duration = Duration::from_secs(20);

/// An end over a session of its own, with Zenoh's threads behind it.
#[derive(Debug)]
pub struct Session {
    publisher: Option<Publisher<'static>>,
    subscriber: Option<Subscriber<FifoChannelHandler<Sample>>>,
    sleeps: bool,
    bytes: Vec<u8>,
    /// Ends that have to be there before the first message.
    expected: usize,
    /// Tells the other end that this one listens.
    _token: Option<LivelinessToken>,
    session: zenoh::Session,
}

impl Session {
    /// Listens, or connects to those that do.
    ///
    /// # Errors
    ///
    /// What Zenoh reports.
    pub fn new(load: &Load, place: &Place, sleeps: bool) -> Result<Self> {
        let session = zenoh::open(config(place)?).wait().map_err(told)?;
        let (out, inward) = match place.role {
            Role::Ping => (Some(THERE), Some(BACK)),
            Role::Pong => (Some(BACK), Some(THERE)),
            Role::Pub => (Some(THERE), None),
            Role::Sub => (None, Some(THERE)),
        };
        let mut subscriber = None;
        if let Some(key) = inward {
            let queue = FifoChannel::new(QUEUE);
            subscriber = Some(session.declare_subscriber(key).with(queue).wait().map_err(told)?);
        }
        let mut publisher = None;
        if let Some(key) = out {
            // Waits where the default would drop.
            let declared =
                session.declare_publisher(key).congestion_control(CongestionControl::Block);
            publisher = Some(declared.wait().map_err(told)?);
        }
        let mut token = None;
        if !place.role.begins() {
            let key = format!("{ALIVE}/{}", place.local);
            token = Some(session.liveliness().declare_token(key).wait().map_err(told)?);
        }
        let expected = if place.role.begins() { load.subscribers } else { 0 };
        let bytes = vec![0; load.size];
        Ok(Self { publisher, subscriber, sleeps, bytes, expected, _token: token, session })
    }

    #[cold]
    fn wait_for_others(&mut self) -> Result<()> {
        let start = Instant::now();
        loop {
            let alive = self.session.liveliness().get(format!("{ALIVE}/*")).wait();
            let count = alive.map_err(told)?.iter().count();
            if count >= self.expected {
                self.expected = 0;
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                bail!("{count} of {} ends came", self.expected);
            }
        }
    }
}

impl End for Session {
    #[inline]
    fn send(&mut self, size: usize, mut fill: impl FnMut(&mut [u8])) -> Result<bool> {
        if self.expected > 0 {
            self.wait_for_others()?;
        }
        let Some(publisher) = &self.publisher else { bail!("this role does not send") };
        fill(&mut self.bytes[..size]);
        publisher.put(&self.bytes[..size]).wait().map_err(told)?;
        Ok(true)
    }

    fn flush(&mut self) -> Result<bool> {
        Ok(true)
    }

    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> Result<usize> {
        let Some(subscriber) = &self.subscriber else { bail!("this role does not receive") };
        for taken in 0..LIMIT {
            let sample = if self.sleeps && taken == 0 {
                subscriber.recv_timeout(LONGEST_SLEEP).map_err(told)?
            } else {
                subscriber.try_recv().map_err(told)?
            };
            let Some(sample) = sample else { return Ok(taken) };
            each(&sample.payload().to_bytes());
        }
        Ok(LIMIT)
    }
}

fn config(place: &Place) -> Result<Config> {
    let addresses: Vec<String> =
        place.waiting_ends().iter().map(|address| format!("\"tcp/{address}\"")).collect();
    let endpoints = format!("[{}]", addresses.join(","));
    let nothing = "[]".to_owned();
    let (listen, connect) =
        if place.role.begins() { (nothing, endpoints) } else { (endpoints, nothing) };
    let mut config = Config::default();
    for (key, value) in [
        ("mode", "\"peer\"".to_owned()),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("listen/endpoints", listen),
        ("connect/endpoints", connect),
    ] {
        config.insert_json5(key, &value).map_err(told)?;
    }
    Ok(config)
}

/// Zenoh's errors as ours.
fn told(error: impl Display) -> anyhow::Error {
    anyhow!("Zenoh: {error}")
}
