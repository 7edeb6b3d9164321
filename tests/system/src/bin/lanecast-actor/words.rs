//! Arguments of an actor.

use anyhow::{Context, Result, bail};
use lanecast_base::WaitStrategy;
use lanecast_net::{IoKind, NetSettings, Network, Pacing, ThreadingMode, TransportKind};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

/// Words `key=value`.
#[derive(Debug)]
pub(crate) struct Words(HashMap<String, String>);

impl Words {
    pub(crate) fn new(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let pair = |word: String| match word.split_once('=') {
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => bail!("{word} is no key=value"),
        };
        arguments.map(pair).collect::<Result<_>>().map(Self)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The value of `key`, if it is given.
    pub(crate) fn get<T: FromStr>(&self, key: &str) -> Result<Option<T>> {
        let parse = |text: &str| text.parse().ok().with_context(|| format!("{key}={text}"));
        self.text(key).map(parse).transpose()
    }

    pub(crate) fn number(&self, key: &str, otherwise: u64) -> Result<u64> {
        Ok(self.get(key)?.unwrap_or(otherwise))
    }

    fn millis(&self, key: &str, otherwise: Duration) -> Result<Duration> {
        Ok(self.get(key)?.map_or(otherwise, Duration::from_millis))
    }

    fn addresses(&self, key: &str) -> Result<Vec<SocketAddr>> {
        let words = self.text(key).into_iter().flat_map(|list| list.split(','));
        words.map(|word| word.parse().with_context(|| format!("{key}={word}"))).collect()
    }

    pub(crate) fn kind(&self) -> Result<TransportKind> {
        let name = self.text("transport").context("transport= is missing")?;
        let kind = TransportKind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.with_context(|| format!("no transport is called {name}"))
    }

    fn pacing(&self) -> Result<Pacing> {
        Ok(match self.text("pacing").unwrap_or("slowest") {
            "slowest" => Pacing::Slowest,
            "eject" => Pacing::SlowestOrEject(self.millis("patience", Duration::ZERO)?),
            "fastest" => Pacing::Fastest,
            "none" => Pacing::None,
            other => bail!("no pacing is called {other}"),
        })
    }

    /// Datagrams of a block, and of its parity: `4+1`.
    fn fec(&self) -> Result<Option<(u8, u8)>> {
        let Some(text) = self.text("fec") else { return Ok(None) };
        let (data, parity) = text.split_once('+').with_context(|| format!("fec={text}"))?;
        Ok(Some((data.parse()?, parity.parse()?)))
    }

    /// Opens the network of the settings, and says by which way its datagrams go.
    pub(crate) fn network(&self) -> Result<Network> {
        let network = Network::open(self.settings()?)?;
        if let Some(mode) = network.xdp_mode() {
            println!("io=xdp {mode}");
        } else if let Some(reason) = network.io_fallback() {
            println!("io=sockets, because {reason}");
        }
        Ok(network)
    }

    /// The settings: those of the product where nothing is said.
    pub(crate) fn settings(&self) -> Result<NetSettings> {
        let usual = NetSettings::default();
        // An unoptimised poll takes so long that all hosts would only spin, on the CPUs of one.
        let wait = if cfg!(debug_assertions) { WaitStrategy::Park } else { usual.subscriber_wait };
        Ok(NetSettings {
            interface: self.text("interface").unwrap_or("eth0").to_owned(),
            group: self.get("group")?.unwrap_or(usual.group),
            resolver_group: match self.text("resolver_group") {
                Some("none") => None,
                _ => self.get("resolver_group")?.or(usual.resolver_group),
            },
            peers: self.addresses("peers")?,
            window_bytes: self.get("window")?.unwrap_or(usual.window_bytes),
            pacing: self.pacing()?,
            late_join: self.get("late_join")?.unwrap_or(usual.late_join),
            recovery: self.millis("recovery", usual.recovery)?,
            liveness: self.millis("liveness", usual.liveness)?,
            heartbeat: self.millis("heartbeat", usual.heartbeat)?,
            receive_buffer_bytes: self.get("buffer")?.unwrap_or(usual.receive_buffer_bytes),
            artificial_loss: self.get("loss")?.unwrap_or(usual.artificial_loss),
            fec: self.fec()?,
            key_file: self.get("key_file")?,
            io: match self.text("io") {
                Some("xdp") => IoKind::Xdp,
                _ => IoKind::Sockets,
            },
            publisher_wait: wait,
            subscriber_wait: wait,
            first_sequence: self.number("first_sequence", usual.first_sequence)?,
            threading: match self.text("drive") {
                Some("thread") => ThreadingMode::Thread,
                _ => ThreadingMode::Caller,
            },
            ..usual
        })
    }
}
