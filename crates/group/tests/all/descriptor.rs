//! The descriptor of a member in an event loop.

use crate::transports::options;
use lanecast_group::{Event, Group, Order};
use lanecast_os::event::wait_readable;
use lanecast_shm::{Domain, DomainSettings, Visibility};
use std::os::fd::AsFd;
use std::time::Duration;

/// Longest wait for a descriptor that has to be readable.
const PATIENCE: Duration = Duration::from_secs(10);
const HOUR_NS: u64 = 3_600_000_000_000;

/// A member alone in its group, whose only duties are those of its messages.
fn alone() -> Group<Domain> {
    let settings = DomainSettings { visibility: Visibility::Process, ..DomainSettings::default() };
    let domain = Domain::open(settings).expect("a domain");
    let mut options = options("ann");
    options.settings.join_timeout = 1_000_000;
    (options.settings.heartbeat, options.settings.hang_timeout) = (HOUR_NS, 5 * HOUR_NS);
    let mut group = Group::join(domain, "g", options).expect("a member");
    while !group.has_view() {
        let work = group.poll(64, |_| ());
        group.wait(work);
    }
    group
}

#[test]
fn a_send_between_two_polls_makes_the_descriptor_readable() {
    let mut group = alone();
    let me = group.me().id;
    let descriptor = group.wakeup().expect("a descriptor").try_clone_to_owned().expect("a copy");
    let is_readable = |limit| wait_readable([descriptor.as_fd()], Some(limit)) == [true];
    for step in 0..6 {
        while is_readable(Duration::ZERO) {
            group.poll(64, |event| panic!("not sent: {event:?}"));
        }
        match step % 3 {
            0 => group.try_send(b"to all", Order::Sender),
            // Its place in the order is a duty, which the member is to be polled for.
            1 => group.try_send(b"to all", Order::Total),
            _ => group.try_send_to(me, b"to one"),
        }
        .expect("sent");
        let mut received = 0;
        while received == 0 {
            assert!(is_readable(PATIENCE), "asleep beside the message of step {step}");
            group.poll(64, |event| match event {
                Event::Message { .. } | Event::Direct { .. } => received += 1,
                other => panic!("not sent: {other:?}"),
            });
        }
        assert_eq!(received, 1);
    }
}
