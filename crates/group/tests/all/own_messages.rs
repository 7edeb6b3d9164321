//! Messages of a member to itself, which wait for its next poll.

use crate::transports::options;
use lanecast_group::{Event, Group, SendError};
use lanecast_shm::{Domain, DomainSettings, Visibility};

/// Smallest window of a member, in bytes.
const WINDOW: usize = 64 << 10;

#[test]
fn messages_to_oneself_are_bounded_by_the_window_until_the_next_poll() {
    let settings = DomainSettings { visibility: Visibility::Process, ..DomainSettings::default() };
    let domain = Domain::open(settings).expect("a domain");
    let mut options = options("ann");
    options.settings.window = WINDOW;
    let mut group = Group::join(domain, "g", options).expect("a member");
    while !group.has_view() {
        let work = group.poll(64, |_| ());
        group.wait(work);
    }
    let me = group.me().id;
    for bytes in [&[7; 1_000][..], &[]] {
        let mut sent = 0;
        let refusal = loop {
            match group.try_send_to(me, bytes) {
                Ok(_) => sent += 1,
                Err(refusal) => break refusal,
            }
            assert!(sent * (bytes.len() + 1) <= 2 * WINDOW, "{sent} of {} bytes", bytes.len());
        };
        assert_eq!(refusal, SendError::NoCredit(me));
        let (mut received, mut is_writable) = (0, false);
        group.poll(64, |event| match event {
            Event::Direct { from, bytes: own } => {
                assert_eq!((from, own), (me, bytes));
                received += 1;
            }
            Event::Writable => is_writable = true,
            other => panic!("not sent: {other:?}"),
        });
        assert_eq!((received, is_writable), (sent, true));
    }
    // A call that waits polls.
    let mut received = 0;
    for _ in 0..2 * WINDOW / 1_000 {
        let mut count =
            |event: Event<'_>| received += usize::from(matches!(event, Event::Direct { .. }));
        group.send_to(me, &[7; 1_000], &mut count).expect("sent");
    }
    assert!(received > 0);
}
