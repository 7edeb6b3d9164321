//! Fan-out through a server, over sockets.

use super::burst::{Bursts, DeliveryCount};
use super::load::{Load, stamp};
use super::outcome::FanoutResult;
use super::server_protocol::ServerProtocol;
use super::subscriber_pool::SubscriberPool;
use lanecast_base::clock::Clock;
use lanecast_os::affinity;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes gathered before a write.
const GATHERED: usize = 64 << 10;
/// One message in this many carries the time of sending.
const STAMPED: u64 = 64;
/// Time limit for a server to start listening, and the interval of attempts.
const LIMIT: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(20);

/// Publishes bursts through the server at `at`. Publishers and subscribers are pinned to the first
/// CPU of their lists.
///
/// # Errors
/// If the server is not there, complains, or hangs up.
pub fn over_sockets(
    protocol: &impl ServerProtocol,
    at: SocketAddr,
    load: &Load,
    bursts: Bursts,
    cpus: [&[usize]; 2],
) -> io::Result<FanoutResult> {
    let mut streams = Vec::new();
    for subscriber in 0..load.subscribers {
        let mut said = Vec::new();
        protocol.subscribe(load, subscriber, &mut said);
        let mut stream = connect(at)?;
        stream.write_all(&said)?;
        streams.push(stream);
    }
    let mut pool = SubscriberPool::new(streams);
    pool.wait_for_answers(protocol)?;
    let deliveries = DeliveryCount::new(load.wanted);
    let publishers: Vec<TcpStream> =
        (0..bursts.publishers).map(|_| connect(at)).collect::<io::Result<_>>()?;
    let barrier = Barrier::new(bursts.publishers + 1);
    let (took, latency) = thread::scope(|scope| {
        let listener = scope.spawn(|| {
            let latency = pin_to(cpus[1]).and_then(|()| pool.listen(protocol, &deliveries));
            // Publishers must not wait for deliveries that cannot arrive any more.
            deliveries.end();
            latency
        });
        let publishers = publishers.into_iter().enumerate().map(|(number, stream)| {
            let share = bursts.share(number);
            let (deliveries, barrier) = (&deliveries, &barrier);
            scope.spawn(move || {
                let publisher = Publisher { protocol, stream, load, deliveries };
                let done = publisher.run(cpus[0], bursts.count, share, barrier);
                if done.is_err() {
                    deliveries.end();
                }
                done
            })
        });
        let publishers: Vec<_> = publishers.collect();
        let took = bursts.time(&deliveries, &barrier);
        deliveries.end();
        for publisher in publishers {
            let stream = publisher.join().map_err(|_| io::Error::other("a publisher panicked"))?;
            drop(stream?);
        }
        let latency =
            listener.join().map_err(|_| io::Error::other("the subscribers panicked"))??;
        Ok::<_, io::Error>((took, latency))
    })?;
    let result = FanoutResult::new(protocol.name(), load, bursts, (took, &deliveries), &latency);
    Ok(FanoutResult {
        publisher_cpus: cpus[0].to_vec(),
        subscriber_cpus: cpus[1].to_vec(),
        ..result
    })
}

/// Pins the calling thread to the first of these CPUs.
pub(super) fn pin_to(cpus: &[usize]) -> io::Result<()> {
    cpus.first().map_or(Ok(()), |cpu| affinity::pin(*cpu))
}

/// Barriers in a burst: ready, clock started, end.
pub(super) const BARRIERS: usize = 3;

/// Waits until all are ready and the clock runs.
pub(super) fn begin(barrier: &Barrier) {
    barrier.wait();
    barrier.wait();
}

/// A publisher of bursts through a server.
struct Publisher<'a, S> {
    protocol: &'a S,
    stream: TcpStream,
    load: &'a Load,
    deliveries: &'a DeliveryCount,
}

impl<S: ServerProtocol> Publisher<'_, S> {
    /// Publishes `share` messages in each burst. Passes all barriers even after an error, as others
    /// wait there. Returns the connection: closing it with unread input would reset it and lose
    /// messages that the server has not read.
    fn run(
        mut self,
        cpus: &[usize],
        bursts: usize,
        share: u64,
        barrier: &Barrier,
    ) -> io::Result<TcpStream> {
        let mut out = Vec::with_capacity(2 * GATHERED);
        self.protocol.logon(&mut out);
        let mut done = pin_to(cpus).and_then(|()| self.stream.write_all(&out));
        let orders = self.load.orders();
        for _ in 0..bursts {
            begin(barrier);
            if done.is_ok() {
                done = self.burst(&orders, share, &mut out);
            }
            if done.is_err() {
                self.deliveries.end();
            }
            barrier.wait();
        }
        done.map(|()| self.stream)
    }

    fn burst(&mut self, orders: &[super::Order], share: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let clock = Clock::host();
        out.clear();
        let mut expected = 0;
        for (number, order) in (0..share).zip(orders.iter().cycle()) {
            let at = self.protocol.publish(self.load, order, out);
            expected += self.load.recipients(order);
            if number % STAMPED == 0 {
                stamp(&mut out[at..], clock.ticks());
            }
            if out.len() >= GATHERED {
                self.send(out, &mut expected)?;
            }
        }
        self.send(out, &mut expected)
    }

    fn send(&mut self, out: &mut Vec<u8>, expected: &mut u64) -> io::Result<()> {
        self.deliveries.expect(std::mem::take(expected));
        self.stream.write_all(out)?;
        out.clear();
        if self.deliveries.is_full() && !self.deliveries.wait(|deliveries| !deliveries.is_full()) {
            self.deliveries.end();
        }
        if self.deliveries.is_over() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

fn connect(at: SocketAddr) -> io::Result<TcpStream> {
    let start = Instant::now();
    loop {
        match TcpStream::connect(at) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(LIMIT))?;
                return Ok(stream);
            }
            Err(error) if start.elapsed() > LIMIT => return Err(error),
            Err(_) => thread::sleep(RETRY),
        }
    }
}
