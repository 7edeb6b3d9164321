//! Fan-out without a server: publishers evaluate filters and send each message once, with the
//! numbers of its recipients, through a ring to the subscribers' thread.

use super::burst::{Bursts, DeliveryCount};
use super::load::{Load, Order, stamp, stamped};
use super::outcome::FanoutResult;
use super::server::{BARRIERS, begin, pin_to};
use crate::recorder::Recorder;
use lanecast_base::WaitStrategy;
use lanecast_base::clock::Clock;
use lanecast_filter::fields::FieldSet;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Index, Message};
use lanecast_ring::bytes::{self, ByteConsumer, ByteProducer};
use std::io;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// Size of each publisher's ring.
const RING_BYTES: usize = 1 << 20;
/// Messages published together, and the longest delay of the first one.
const STRIDE: u32 = 64;
const STRIDE_DELAY: Duration = Duration::from_micros(20);
/// Messages read in one poll.
const AT_ONCE: usize = 256;
/// One message in this many carries the time of sending.
const STAMPED: usize = 64;
/// A subscriber's number in the ring.
const ID_BYTES: usize = size_of::<u32>();

/// Publishes bursts from threads to a thread, pinned to `cpus` if there are any.
///
/// # Errors
/// If there is no memory, or the system refuses a CPU.
pub fn embedded(load: &Load, bursts: Bursts, cpus: [&[usize]; 2]) -> io::Result<FanoutResult> {
    let ring = bytes::multi_producer(bursts.publishers, RING_BYTES).map_err(io::Error::other)?;
    let mut ring = ring.wait(WaitStrategy::SpinYield).stride(STRIDE, STRIDE_DELAY);
    let consumer = ring.consumer();
    let producers = ring.producers().map_err(io::Error::other)?;
    let (deliveries, barrier) =
        (DeliveryCount::new(load.wanted), Barrier::new(bursts.publishers + 1));
    let (took, latency) = thread::scope(|scope| {
        let listener =
            scope.spawn(|| pin_to(cpus[1]).map(|()| listen(consumer, load, &deliveries)));
        let publishers: Vec<_> = producers
            .into_iter()
            .enumerate()
            .map(|(number, producer)| {
                let share = bursts.share(number) as usize;
                let (deliveries, barrier) = (&deliveries, &barrier);
                scope.spawn(move || {
                    // Memory is allocated after pinning, and so on the node of that CPU.
                    let pinned = pin_to(cpus[0]);
                    let publisher = Matcher::new(load);
                    match publisher {
                        Ok(matcher) => {
                            run(matcher, producer, bursts.count, share, deliveries, barrier);
                            pinned
                        }
                        Err(error) => {
                            deliveries.end();
                            for _ in 0..BARRIERS * bursts.count {
                                barrier.wait();
                            }
                            Err(error)
                        }
                    }
                })
            })
            .collect();
        let took = bursts.time(&deliveries, &barrier);
        for publisher in publishers {
            publisher.join().map_err(|_| io::Error::other("a publisher panicked"))??;
        }
        deliveries.end();
        let latency =
            listener.join().map_err(|_| io::Error::other("the subscribers panicked"))??;
        Ok::<_, io::Error>((took, latency))
    })?;
    let result = FanoutResult::new("embedded", load, bursts, (took, &deliveries), &latency);
    Ok(FanoutResult {
        publisher_cpus: cpus[0].to_vec(),
        subscriber_cpus: cpus[1].to_vec(),
        ..result
    })
}

/// Filter index of all subscribers.
struct Matcher {
    load: Load,
    reader: Reader,
    row: Row,
    index: Index,
    ids: Vec<u32>,
}

impl Matcher {
    fn new(load: &Load) -> io::Result<Self> {
        let (mut fields, mut index) = (FieldSet::new(MessageType::Fix), Index::new());
        for subscriber in 0..load.subscribers {
            let filter = Filter::parse(&load.filter(subscriber)).map_err(io::Error::other)?;
            index.insert(subscriber as u32, &filter, &mut fields).map_err(io::Error::other)?;
        }
        let reader = Reader::new(&fields);
        Ok(Self { load: *load, reader, row: Row::new(), index, ids: Vec::new() })
    }

    /// Stores the recipients of an order in `ids`.
    #[inline]
    fn find(&mut self, order: &[u8]) {
        self.ids.clear();
        if self.reader.read(order, &mut self.row).is_err() {
            return;
        }
        let environment = Environment { topic: "orders", client: "", unix_ns: 0 };
        let message = Message { row: &self.row, bytes: order, environment: &environment };
        self.index.matches(&message, &mut self.ids);
    }
}

/// Publishes bursts.
fn run(
    mut matcher: Matcher,
    mut producer: ByteProducer,
    bursts: usize,
    share: usize,
    deliveries: &DeliveryCount,
    barrier: &Barrier,
) {
    let (clock, orders) = (Clock::host(), matcher.load.orders());
    for _ in 0..bursts {
        begin(barrier);
        let mut expected = 0;
        for (number, order) in (0..share).zip(orders.iter().cycle()) {
            matcher.find(order.bytes());
            // By the definition of the load, not by the index: a difference shows as a loss.
            expected += matcher.load.recipients(order);
            if matcher.ids.is_empty() {
                continue;
            }
            let sent = (number % STAMPED == 0).then(|| clock.ticks());
            if put(&mut producer, &matcher.ids, order, sent).is_err() {
                break;
            }
        }
        producer.flush();
        deliveries.expect(expected);
        barrier.wait();
    }
}

/// Writes a message to the ring: number of recipients, recipients, bytes.
#[inline]
fn put(
    producer: &mut ByteProducer,
    ids: &[u32],
    order: &Order,
    sent: Option<u64>,
) -> Result<(), bytes::ClaimError> {
    let head = ID_BYTES * (1 + ids.len());
    let mut claim = producer.claim(head + order.bytes().len())?;
    let numbers = std::iter::once(ids.len() as u32).chain(ids.iter().copied());
    for (place, number) in claim.chunks_exact_mut(ID_BYTES).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    claim[head..].copy_from_slice(order.bytes());
    if let Some(sent) = sent {
        stamp(&mut claim[head..], sent);
    }
    claim.commit();
    Ok(())
}

/// Counts of a subscriber.
#[derive(Clone, Copy, Default)]
struct Subscriber {
    messages: u64,
    bytes: u64,
}

impl Subscriber {
    #[inline]
    fn receive(&mut self, order: &[u8]) {
        self.messages += 1;
        self.bytes += order.len() as u64;
    }
}

/// Hands each message to its recipients until all publishers have ended.
fn listen(mut consumer: ByteConsumer, load: &Load, deliveries: &DeliveryCount) -> Recorder {
    let (clock, mut latency) = (Clock::host(), Recorder::new());
    let mut subscribers = vec![Subscriber::default(); load.subscribers];
    while !consumer.is_closed() {
        let mut count = 0;
        let work = consumer.poll(AT_ONCE, |record| {
            let Some((wanted, rest)) = record.split_first_chunk() else { return };
            let wanted = u32::from_le_bytes(*wanted) as usize;
            let Some((ids, order)) = rest.split_at_checked(wanted * ID_BYTES) else { return };
            for id in ids.chunks_exact(ID_BYTES) {
                let id = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
                if let Some(subscriber) = subscribers.get_mut(id as usize) {
                    subscriber.receive(order);
                    count += 1;
                }
            }
            if let Some(sent) = stamped(order) {
                latency.record(clock.ns(clock.ticks().saturating_sub(sent)));
            }
        });
        if count > 0 {
            deliveries.arrive(count);
        }
        consumer.wait(work);
    }
    latency
}
