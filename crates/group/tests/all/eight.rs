//! Eight members of one group: over transports that are mixed, and all leaving at once.

use crate::crowd::{Seat, send, until, until_together};
use crate::transports::{LOOPBACK, network, options, over, threads};
use lanecast_group::{Departure, Order};
use lanecast_net::TransportKind;
use lanecast_transport::Transport;
use std::time::{Duration, Instant};

const MEMBERS: usize = 8;
/// Messages of each member.
const COUNT: u32 = 20;
/// Longest wait of members that leave. One that waits for members that have left takes all of it.
const PATIENCE: Duration = Duration::from_secs(60);

fn join<T: Transport>(open: impl Fn(usize) -> T, watched: bool) -> Vec<Seat<T>> {
    let member = |number| {
        let mut options = options(&format!("member {number}"));
        options.watch = LOOPBACK.filter(|_| watched);
        Seat::join(open(number), options)
    };
    let mut seats = (0..MEMBERS).map(member).collect::<Vec<_>>();
    until_together(&mut seats);
    seats
}

/// All members send, and all hear all.
fn all_hear_all<T: Transport>(seats: &mut [Seat<T>]) {
    let before: Vec<_> = seats.iter().map(|seat| seat.received.len()).collect();
    for count in 0..COUNT {
        for from in 0..seats.len() {
            let order = if count % 4 == 0 { Order::Total } else { Order::Sender };
            send(seats, from, &[from as u8, count as u8], order);
        }
    }
    let all = COUNT as usize * seats.len();
    until("all messages", seats, |seats| {
        seats.iter().zip(&before).all(|(seat, before)| seat.received.len() == before + all)
    });
}

/// All leave at once, and none waits for the others.
fn all_leave<T: Transport + Send>(seats: Vec<Seat<T>>) {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let leave = |seat: Seat<T>| scope.spawn(|| seat.group.leave(PATIENCE));
        for leaving in seats.into_iter().map(leave).collect::<Vec<_>>() {
            assert!(leaving.join().expect("no panic"), "the others agreed");
        }
    });
    let took = start.elapsed();
    assert!(took < PATIENCE / 4, "{took:?} for the members that leave");
    println!("all left within {took:?}");
}

#[test]
fn members_of_mixed_transports_come_and_go() {
    let settings = network();
    let kind = |number| if number % 2 == 0 { TransportKind::Rm } else { TransportKind::Tcp };
    let mut seats = join(|number| over(&settings, kind(number)), true);
    all_hear_all(&mut seats);
    // Without a word, while the others are not polled: nothing waits for their programs.
    let (start, survivors) = (Instant::now(), MEMBERS / 2);
    let gone: Vec<_> = seats.drain(survivors..).map(|seat| seat.id()).collect();
    let took = start.elapsed();
    assert!(took < settings.liveness, "{took:?} for {} members", gone.len());
    until_together(&mut seats);
    for seat in &seats {
        let departures = seat.departures();
        assert!(gone.iter().all(|id| departures.contains(&(*id, Departure::Left))));
    }
    all_hear_all(&mut seats);
    all_leave(seats);
}

#[test]
fn all_members_leave_at_once_between_threads() {
    let domain = threads();
    all_leave(join(|_| domain.clone(), false));
}

#[test]
fn all_members_leave_at_once_by_multicast() {
    let settings = network();
    all_leave(join(|_| over(&settings, TransportKind::Rm), true));
}

#[test]
fn all_members_leave_at_once_by_tcp() {
    let settings = network();
    all_leave(join(|_| over(&settings, TransportKind::Tcp), true));
}

/// The longest wait is a bound of the protocol, within which a silent member is given up.
#[test]
fn a_member_that_leaves_without_an_answer_says_so() {
    let domain = threads();
    let member = |name: &str| Seat::join(domain.clone(), options(name));
    let mut seats = vec![member("ann"), member("ben")];
    until_together(&mut seats);
    let (ann, ben) = (seats.remove(0), seats.remove(0));
    let is_known = ann.group.leave(Duration::from_secs(5));
    assert!(!is_known, "{:?} was not polled", ben.id());
}
