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

/// What is gathered before it is written.
const GATHERED: usize = 64 << 10;
/// One message in so many carries the time.
const STAMPED: u64 = 64;
/// For how long a server may take to listen, and between two attempts.
const LIMIT: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(20);

/// Publishes bursts through the server that listens `at`. Publishers and subscribers are kept on
/// one of the CPUs each, if there are some.
///
/// # Errors
/// If the server is not there, complains, or hangs up.
pub fn over_sockets(
    speech: &impl ServerProtocol,
    at: SocketAddr,
    load: &Load,
    bursts: Bursts,
    cpus: [&[usize]; 2],
) -> io::Result<FanoutResult> {
    let mut streams = Vec::new();
    for subscriber in 0..load.subscribers {
        let mut said = Vec::new();
        speech.subscribe(load, subscriber, &mut said);
        let mut stream = connect(at)?;
        stream.write_all(&said)?;
        streams.push(stream);
    }
    let mut crowd = SubscriberPool::new(streams);
    crowd.wait_for_answers(speech)?;
    let balance = DeliveryCount::new(load.wanted);
    let publishers: Vec<TcpStream> =
        (0..bursts.publishers).map(|_| connect(at)).collect::<io::Result<_>>()?;
    let barrier = Barrier::new(bursts.publishers + 1);
    let (took, latency) = thread::scope(|scope| {
        let listener = scope.spawn(|| {
            let heard = keep_on(cpus[1]).and_then(|()| crowd.listen(speech, &balance));
            // Whoever waits for what no longer comes is to hear of it.
            balance.end();
            heard
        });
        let publishers = publishers.into_iter().enumerate().map(|(number, stream)| {
            let share = bursts.share(number);
            let (balance, barrier) = (&balance, &barrier);
            scope.spawn(move || {
                let publisher = Publisher { speech, stream, load, balance };
                let done = publisher.run(cpus[0], bursts.count, share, barrier);
                if done.is_err() {
                    balance.end();
                }
                done
            })
        });
        let publishers: Vec<_> = publishers.collect();
        let took = bursts.time(&balance, &barrier);
        balance.end();
        for publisher in publishers {
            let stream = publisher.join().map_err(|_| io::Error::other("a publisher panicked"))?;
            drop(stream?);
        }
        let heard = listener.join().map_err(|_| io::Error::other("the subscribers panicked"))??;
        Ok::<_, io::Error>((took, heard))
    })?;
    let result = FanoutResult::new(speech.name(), load, bursts, (took, &balance), &latency);
    Ok(FanoutResult {
        publisher_cpus: cpus[0].to_vec(),
        subscriber_cpus: cpus[1].to_vec(),
        ..result
    })
}

/// Keeps the calling thread on the first of these CPUs.
pub(super) fn keep_on(cpus: &[usize]) -> io::Result<()> {
    cpus.first().map_or(Ok(()), |cpu| affinity::pin(*cpu))
}

/// How often all wait for all in a burst: when they are ready, when the clock runs, at the end.
pub(super) const BARRIERS: usize = 3;

/// Waits until all are ready and the clock runs.
pub(super) fn begin(barrier: &Barrier) {
    barrier.wait();
    barrier.wait();
}

impl Bursts {
    /// A publisher's part of a burst.
    pub(super) fn share(&self, number: usize) -> u64 {
        let publishers = self.publishers as u64;
        self.messages / publishers + u64::from((number as u64) < self.messages % publishers)
    }

    /// Starts every burst when the last has arrived; how long they took.
    pub(super) fn time(&self, balance: &DeliveryCount, barrier: &Barrier) -> Duration {
        let mut took = Duration::ZERO;
        for _ in 0..self.count {
            barrier.wait();
            // All are ready, and none begins before the clock: it may take this thread a while to
            // go on where CPUs are few.
            let start = Instant::now();
            barrier.wait();
            // All is owed when the publishers are through.
            barrier.wait();
            if !balance.wait(|balance| balance.open() == 0) {
                balance.end();
            }
            took += start.elapsed();
        }
        took
    }
}

/// Who sends bursts to a server.
struct Publisher<'a, S> {
    speech: &'a S,
    stream: TcpStream,
    load: &'a Load,
    balance: &'a DeliveryCount,
}

impl<S: ServerProtocol> Publisher<'_, S> {
    /// Publishes so many messages in each burst. Passes all barriers of each whatever happens, as
    /// others wait there. The connection outlives it: closed with something unread, it would be
    /// reset, and the server would never see what it has not read yet.
    fn run(
        mut self,
        cpus: &[usize],
        bursts: usize,
        share: u64,
        barrier: &Barrier,
    ) -> io::Result<TcpStream> {
        let mut out = Vec::with_capacity(2 * GATHERED);
        self.speech.logon(&mut out);
        let mut done = keep_on(cpus).and_then(|()| self.stream.write_all(&out));
        let orders = self.load.orders();
        for _ in 0..bursts {
            begin(barrier);
            if done.is_ok() {
                done = self.burst(&orders, share, &mut out);
            }
            if done.is_err() {
                self.balance.end();
            }
            barrier.wait();
        }
        done.map(|()| self.stream)
    }

    fn burst(&mut self, orders: &[super::Order], share: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let clock = Clock::host();
        out.clear();
        let mut owed = 0;
        for (number, order) in (0..share).zip(orders.iter().cycle()) {
            let at = self.speech.publish(self.load, order, out);
            owed += self.load.recipients(order);
            if number % STAMPED == 0 {
                stamp(&mut out[at..], clock.ticks());
            }
            if out.len() >= GATHERED {
                self.send(out, &mut owed)?;
            }
        }
        self.send(out, &mut owed)
    }

    fn send(&mut self, out: &mut Vec<u8>, owed: &mut u64) -> io::Result<()> {
        self.balance.owe(std::mem::take(owed));
        self.stream.write_all(out)?;
        out.clear();
        if self.balance.is_full() && !self.balance.wait(|balance| !balance.is_full()) {
            self.balance.end();
        }
        if self.balance.is_over() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
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
