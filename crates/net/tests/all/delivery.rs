//! Delivery in order of arrival, and with a bound on the wait for repairs, over artificial loss.

use lanecast_net::{DeliveryOrder, DeliverySettings, NetSettings, NetTransport, Network};
use lanecast_net::{Publisher, Subscriber, TransportKind};
use lanecast_transport::{Event, LossReason, Publish, Subscribe, Transport};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(30);
const MESSAGES: u64 = 2_000;
/// A bound that every round trip on a loaded machine keeps.
const NEVER: Duration = Duration::from_secs(60);

/// A network with lossy subscribers of this `delivery`.
fn transport(port: u16, kind: TransportKind, delivery: DeliverySettings) -> NetTransport {
    let run = std::process::id() as u16;
    let address = [239, 194, (run >> 8) as u8, run as u8];
    let network = Network::open(NetSettings {
        group: SocketAddr::from((address, port)),
        resolver_group: Some(SocketAddr::from((address, port + 1))),
        artificial_loss: 100,
        recovery: NEVER,
        ..NetSettings::default()
    });
    NetTransport::new(network.expect("a network"), kind).with_delivery(delivery)
}

/// A subscriber, and the numbers of the messages that it has read and lost.
struct Received {
    subscriber: Subscriber,
    read: BTreeSet<u64>,
    lost: BTreeSet<u64>,
    /// Messages that came after a later one.
    overtaken: u64,
}

impl Received {
    fn poll(&mut self) -> usize {
        let Self { subscriber, read, lost, overtaken } = self;
        subscriber.poll(64, |event| match event {
            Event::Message(message) => {
                let number = message.number();
                let told = u64::from_le_bytes(*message.bytes().first_chunk().expect("a number"));
                assert_eq!(number, told, "each message has its own number");
                *overtaken += u64::from(read.last().is_some_and(|last| number < *last));
                assert!(!lost.contains(&number) && read.insert(number), "{number} twice");
            }
            Event::Lost(gap) => {
                assert_eq!(gap.why, LossReason::GaveUp);
                for number in gap.first..gap.first + gap.count {
                    assert!(!read.contains(&number) && lost.insert(number), "{number} twice");
                }
            }
            _ => {}
        })
    }
}

fn publish(publisher: &mut Publisher, number: u64, received: &mut Received, start: Instant) {
    let mut message = [0; 1_000];
    message[..8].copy_from_slice(&number.to_le_bytes());
    while publisher.try_send(&message).is_err() {
        assert!(start.elapsed() < LIMIT, "no room");
        received.poll();
    }
    received.poll();
}

/// Publishes until every message was read or lost.
fn run(transport: &NetTransport) -> Received {
    let start = Instant::now();
    let subscriber = transport.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = transport.publisher("prices").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "no subscriber joined");
    let (read, lost) = (BTreeSet::new(), BTreeSet::new());
    let mut received = Received { subscriber, read, lost, overtaken: 0 };
    (0..MESSAGES).for_each(|number| publish(&mut publisher, number, &mut received, start));
    while ((received.read.len() + received.lost.len()) as u64) < MESSAGES {
        assert!(start.elapsed() < LIMIT, "{} were read", received.read.len());
        let work = received.poll();
        received.subscriber.wait(work);
        publisher.flush();
    }
    received
}

fn in_order_of_arrival(kind: TransportKind, port: u16) {
    let delivery = DeliverySettings { order: DeliveryOrder::Arrival, give_up_after: None };
    let received = run(&transport(port, kind, delivery));
    assert_eq!((received.read.len() as u64, received.lost.len()), (MESSAGES, 0));
    assert!(received.overtaken > 0, "a repaired message comes behind later ones");
}

#[test]
fn unicast_messages_behind_a_gap_come_at_once() {
    in_order_of_arrival(TransportKind::Ru, 21_080);
}

#[test]
fn multicast_messages_behind_a_gap_come_at_once() {
    in_order_of_arrival(TransportKind::Rm, 21_082);
}

#[test]
fn a_bound_ends_gaps_long_before_the_recovery_time() {
    // Shorter than any round trip.
    let give_up_after = Some(Duration::from_micros(1));
    for (order, port) in [(DeliveryOrder::Publication, 21_084), (DeliveryOrder::Arrival, 21_086)] {
        let delivery = DeliverySettings { order, give_up_after };
        let received = run(&transport(port, TransportKind::Ru, delivery));
        assert!(!received.lost.is_empty(), "{order:?}");
        if order == DeliveryOrder::Publication {
            assert_eq!(received.overtaken, 0);
        }
    }
}

#[test]
fn a_connection_keeps_the_order_and_loses_nothing() {
    let (order, give_up_after) = (DeliveryOrder::Arrival, Some(Duration::from_micros(1)));
    let delivery = DeliverySettings { order, give_up_after };
    let received = run(&transport(21_088, TransportKind::Tcp, delivery));
    assert_eq!((received.read.len() as u64, received.lost.len()), (MESSAGES, 0));
    assert_eq!(received.overtaken, 0);
}
