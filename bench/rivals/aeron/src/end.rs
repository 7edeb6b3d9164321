//! One end: a publication, a subscription, or both, and the driver that moves their bytes.

use std::ffi::CString;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rivals_kit::Load;
use rivals_network::end;
use rivals_network::place::{Place, Role};
use rusteron_media_driver::{
    AeronExclusivePublication, AeronFragmentClosureAssembler, AeronHeader, AeronSubscription,
    Handlers,
};

use crate::driver::Driver;

const STREAM: i32 = 1001;
/// Fragments that one poll hands over.
const FRAGMENTS: usize = 256;
/// Messages that are offered between two turns of the driver.
const GATHERED: u32 = 16;
/// Time limit for the other ends to connect.
const LIMIT: Duration = Duration::from_secs(20);

/// Destination of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One address
    Unicast,
    /// A group, at the rate of its slowest member
    Multicast,
}

/// An end; what moves bytes is called from its own thread only.
pub struct Stream {
    publication: Option<AeronExclusivePublication>,
    subscription: Option<AeronSubscription>,
    assembler: AeronFragmentClosureAssembler,
    message: Vec<u8>,
    connected: bool,
    /// Messages since the driver's last turn.
    gathered: u32,
    /// Goes last.
    driver: Driver,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream")
    }
}

impl Stream {
    /// An end in its role, with a driver of its own.
    ///
    /// # Errors
    ///
    /// What Aeron reports.
    pub fn new(load: &Load, place: &Place, way: Way) -> Result<Self> {
        let role = match place.role {
            Role::Ping | Role::Pub => "begins".to_owned(),
            Role::Pong | Role::Sub => place.local.to_string(),
        };
        let driver = Driver::start(&format!("{}-{role}", load.domain))?;
        let sends = place.role != Role::Sub;
        let receives = place.role != Role::Pub;
        let mut publication = None;
        if sends {
            let uri = CString::new(uri(place, way, false, load.subscribers)?)?;
            let adding = driver.client().async_add_exclusive_publication(&uri, STREAM)?;
            publication = Some(wait_for(&driver, || Ok(adding.poll()?))?);
        }
        let mut subscription = None;
        if receives {
            let uri = CString::new(uri(place, way, true, load.subscribers)?)?;
            let adding = driver.client().async_add_subscription(
                &uri,
                STREAM,
                Handlers::NONE,
                Handlers::NONE,
            )?;
            subscription = Some(wait_for(&driver, || Ok(adding.poll()?))?);
        }
        Ok(Self {
            publication,
            subscription,
            assembler: AeronFragmentClosureAssembler::new()?,
            message: vec![0; load.size],
            connected: false,
            gathered: 0,
            driver,
        })
    }

    #[cold]
    fn connect(&mut self) -> Result<()> {
        let publication = self.publication.as_ref().context("this role does not send")?;
        wait_for(&self.driver, || Ok(publication.is_connected().then_some(())))?;
        self.connected = true;
        Ok(())
    }
}

impl end::End for Stream {
    #[inline]
    fn send(&mut self, size: usize, mut fill: impl FnMut(&mut [u8])) -> Result<bool> {
        if !self.connected {
            self.connect()?;
        }
        let publication = self.publication.as_ref().context("this role does not send")?;
        fill(&mut self.message[..size]);
        match publication.offer(&self.message[..size]) {
            Ok(_) => self.gathered += 1,
            Err(error) if error.is_retryable() => {
                self.driver.work()?;
                return Ok(false);
            }
            Err(error) => bail!("the stream broke: {error:?}"),
        }
        if self.gathered >= GATHERED {
            self.flush()?;
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<bool> {
        self.gathered = 0;
        self.driver.work()?;
        Ok(true)
    }

    #[inline]
    fn receive(&mut self, each: impl FnMut(&[u8])) -> Result<usize> {
        self.driver.work()?;
        let Some(subscription) = &self.subscription else { return Ok(0) };
        let mut counted = Counted { each, count: 0 };
        self.assembler.poll(subscription, &mut counted, Counted::take, FRAGMENTS)?;
        Ok(counted.count)
    }
}

/// Handler of messages, with a count of them.
struct Counted<F> {
    each: F,
    count: usize,
}

impl<F: FnMut(&[u8])> Counted<F> {
    fn take(&mut self, bytes: &[u8], _: AeronHeader) {
        (self.each)(bytes);
        self.count += 1;
    }
}

/// Address that a publication sends to, or that a subscription listens on.
fn uri(place: &Place, way: Way, listens: bool, subscribers: usize) -> Result<String> {
    if way == Way::Multicast {
        let (group, port) = place.group(listens);
        // An interface is found by its network: on loopback every address belongs to one.
        let local = format!("{}/{}", place.local, if place.is_loopback() { 8 } else { 24 });
        // A publication to a group is connected when all subscribers are.
        let pace = if listens { String::new() } else { format!("|fc=min,g:/{subscribers}") };
        return Ok(format!("aeron:udp?endpoint={group}:{port}|interface={local}{pace}"));
    }
    let to_waiting = place.role.begins() != listens;
    let endpoint = if to_waiting { place.waiting()? } else { place.beginning()? };
    Ok(format!("aeron:udp?endpoint={endpoint}"))
}

/// Lets driver and client work until there is something.
fn wait_for<T>(driver: &Driver, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        driver.work()?;
        driver.work_for_client()?;
        if let Some(found) = ask()? {
            return Ok(found);
        }
        if start.elapsed() > LIMIT {
            bail!("the other end did not come in {LIMIT:?}");
        }
    }
}
