//! The group's state for a joiner: state and messages are all, each once.

use super::network::{MILLISECOND, Network, Seen, settings, view};
use crate::error::StateError;
use crate::event::Order;
use crate::settings::GroupSettings;
use proptest::prelude::*;

fn with_state() -> GroupSettings {
    GroupSettings { state: true, ..settings() }
}

/// Knowledge of an application: the numbers of all messages, in its state or seen after it.
fn known(network: &Network, at: usize) -> Vec<(u64, u64)> {
    let mut known = Vec::new();
    for seen in &network.nodes[at].said.seen {
        match seen {
            Seen::State(bytes) => {
                assert!(known.is_empty(), "member {at}: messages before the state");
                known = bytes[PADDING..]
                    .chunks(16)
                    .map(|entry| {
                        let (from, sequence) = entry.split_at(8);
                        let number = |b: &[u8]| u64::from_le_bytes(b.try_into().unwrap());
                        (number(from), number(sequence))
                    })
                    .collect();
            }
            Seen::Message { from, sequence, .. } => known.push((*from, *sequence)),
            _ => {}
        }
    }
    known
}

/// A state takes many pieces.
const PADDING: usize = 20_000;

fn snapshot(network: &Network, at: usize) -> Vec<u8> {
    let mut bytes = vec![0; PADDING];
    for (from, sequence) in known(network, at) {
        bytes.extend_from_slice(&from.to_le_bytes());
        bytes.extend_from_slice(&sequence.to_le_bytes());
    }
    bytes
}

/// Answers all requests that a member's application has got.
fn answer(network: &mut Network, at: usize) -> usize {
    let mut answered = 0;
    while let Some(request) = network.nodes[at]
        .said
        .seen
        .iter()
        .position(|seen| matches!(seen, Seen::StateRequested { .. }))
    {
        let Seen::StateRequested { token, .. } = network.nodes[at].said.seen.remove(request) else {
            unreachable!()
        };
        let bytes = snapshot(network, at);
        let node = &mut network.nodes[at];
        node.delivery.provide_state(network.now, token, bytes, &mut node.said).expect("a request");
        network.collect();
        answered += 1;
    }
    answered
}

/// Lets time pass in small steps; applications answer, and members send.
fn run(network: &mut Network, members: &[usize], rounds: usize) {
    for round in 0..rounds {
        for &at in members {
            answer(network, at);
        }
        if round % 3 == 0 {
            let order = if round % 2 == 0 { Order::Sender } else { Order::Total };
            let at = members[round / 3 % members.len()];
            let _ = network.send(at, &[round as u8; 50], order);
        }
        network.run(MILLISECOND);
    }
    for _ in 0..200 {
        for &at in members {
            answer(network, at);
        }
        network.run(20 * MILLISECOND);
    }
}

fn sorted(network: &Network, at: usize) -> Vec<(u64, u64)> {
    let mut known = known(network, at);
    known.sort_unstable();
    known
}

/// All three begin in one view: the first member has the state, the others ask for it.
fn joiners_have_all(seed: u64, (lost, doubled, reordered): (u64, u64, u64)) {
    let mut network = Network::new(3, &with_state(), seed);
    (network.lost, network.doubled, network.reordered) = (lost, doubled, reordered);
    run(&mut network, &[0, 1, 2], 120);
    assert_eq!(sorted(&network, 0).len(), 40);
    for at in 1..3 {
        assert_eq!(sorted(&network, 0), sorted(&network, at));
        let seen = &network.nodes[at].said.seen;
        let states = seen.iter().filter(|seen| matches!(seen, Seen::State(_))).count();
        assert_eq!(states, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_joiner_has_all_that_the_others_have(
        seed: u64,
        chances in (0_u64..20, 0_u64..10, 0_u64..50),
    ) {
        joiners_have_all(seed, chances);
    }
}

/// Messages came between the request and the answer, which contained them: twice at the joiner.
#[test]
fn messages_between_request_and_answer_come_once() {
    joiners_have_all(2_970_813_510_417_543_453, (17, 4, 35));
}

/// The same, step by step.
#[test]
fn an_answer_is_as_of_the_last_event_before_it() {
    let mut network = Network::new(2, &with_state(), 1);
    network.run(MILLISECOND);
    assert!(matches!(network.nodes[0].said.seen[..], [Seen::StateRequested { .. }]));
    network.send(0, b"after the request", Order::Sender).expect("credit");
    network.run(MILLISECOND);
    assert_eq!(network.messages(0).len(), 1);
    assert_eq!(answer(&mut network, 0), 1);
    network.send(0, b"after the answer", Order::Sender).expect("credit");
    run(&mut network, &[0, 1], 0);
    assert_eq!(known(&network, 1), [(1, 0), (1, 1)]);
    let [Seen::State(_), Seen::Message { bytes, .. }] = &network.nodes[1].said.seen[..] else {
        panic!("{:?}", network.nodes[1].said.seen);
    };
    assert_eq!(bytes, b"after the answer");
}

/// The joiner has all of a state that contains a message it lacks.
fn with_a_lost_message() -> Network {
    let mut network = Network::new(2, &with_state(), 1);
    network.run(MILLISECOND);
    network.lost = 100;
    network.send(0, b"lost on the way to the joiner", Order::Sender).expect("credit");
    network.lost = 0;
    assert_eq!(answer(&mut network, 0), 1);
    network.run(2 * MILLISECOND);
    assert!(network.nodes[1].said.seen.is_empty(), "{:?}", network.nodes[1].said.seen);
    network
}

#[test]
fn a_state_waits_for_the_messages_that_it_contains() {
    let mut network = with_a_lost_message();
    network.run(100 * MILLISECOND);
    assert_eq!(known(&network, 1), [(1, 0)]);
    let [Seen::State(_)] = &network.nodes[1].said.seen[..] else {
        panic!("{:?}", network.nodes[1].said.seen);
    };
}

/// Else the joiner would have a message that other survivors never get.
#[test]
fn no_state_is_given_with_a_message_that_the_change_of_the_view_cuts_off() {
    let mut network = with_a_lost_message();
    network.nodes[0].alive = false;
    let (end, now) = (network.nodes[1].delivery.vector(), network.now);
    let node = &mut network.nodes[1];
    node.delivery.hold();
    node.delivery.pursue(now, &end, &[], &mut node.said);
    node.delivery.finish(now, &mut node.said);
    network.install(1, &view(2, &[2]), &end[1..], &[true]);
    network.run(100 * MILLISECOND);
    assert_eq!(network.nodes[1].said.seen, [Seen::StateLost]);
}

/// A joiner drops messages if the view changes before its state is there.
#[test]
fn nothing_is_stable_while_a_joiner_waits_for_its_state() {
    let mut network = Network::new(2, &with_state(), 1);
    network.run(MILLISECOND);
    network.send(0, b"held by the joiner", Order::Sender).expect("credit");
    network.send(1, b"of the joiner", Order::Sender).expect("credit");
    network.run(100 * MILLISECOND);
    assert_eq!(network.nodes[1].delivery.vector(), [1, 1]);
    assert_eq!(network.nodes[0].delivery.stable(), 0);
    assert_eq!(network.nodes[1].delivery.stable(), 1);
    assert_eq!(answer(&mut network, 0), 1);
    network.run(100 * MILLISECOND);
    assert_eq!(network.nodes[0].delivery.stable(), 1);
}

/// Adds a member to two others, with the id 3 and without a view.
fn add_third(network: &mut Network) {
    let mut third = Network::new(3, &with_state(), 1).nodes.pop().expect("a member");
    third.delivery = crate::delivery::Delivery::new(&with_state(), crate::view::MemberId(3), 7);
    third.said = Default::default();
    network.nodes.push(third);
}

/// The leader of a change is the first member of the next view, even if it joins by it.
#[test]
fn a_joiner_that_coordinates_is_given_the_state() {
    let mut network = Network::new(2, &with_state(), 1);
    run(&mut network, &[0, 1], 30);
    add_third(&mut network);
    let firsts = [2, 0, 1].map(|at: usize| network.nodes[at].delivery.next_sequence());
    for at in 0..2 {
        network.install(at, &view(2, &[3, 1, 2]), &firsts, &[false, true, true]);
    }
    network.install(2, &view(2, &[3, 1, 2]), &firsts, &[true, false, false]);
    run(&mut network, &[0, 1, 2], 30);
    assert!(matches!(network.nodes[2].said.seen[0], Seen::State(_)), "no message before it");
    for at in 1..3 {
        assert_eq!(sorted(&network, 0), sorted(&network, at));
    }
}

#[test]
fn another_member_provides_if_the_provider_dies() {
    let mut network = Network::new(2, &with_state(), 1);
    run(&mut network, &[0, 1], 30);
    // A third joins; the first is asked and dies.
    add_third(&mut network);
    let mut firsts: Vec<_> =
        network.nodes.iter().map(|node| node.delivery.next_sequence()).collect();
    for at in 0..3 {
        network.install(at, &view(2, &[1, 2, 3]), &firsts, &[true, true, false]);
    }
    network.run(30 * MILLISECOND);
    network.nodes[0].alive = false;
    network.send(1, b"held by the joiner", Order::Sender).expect("credit");
    network.run(30 * MILLISECOND);
    for at in 1..3 {
        let node = &mut network.nodes[at];
        node.delivery.hold();
        node.delivery.finish(network.now, &mut node.said);
    }
    firsts[1] = network.nodes[1].delivery.next_sequence();
    for at in 1..3 {
        network.install(at, &view(3, &[2, 3]), &firsts[1..], &[true, true]);
    }
    run(&mut network, &[1, 2], 30);
    assert_eq!(sorted(&network, 1), sorted(&network, 2));
    assert!(!known(&network, 1).is_empty());
}

#[test]
fn a_group_that_has_lost_its_state_begins_anew() {
    let mut network = Network::new(3, &with_state(), 1);
    network.nodes[0].alive = false;
    for at in 1..3 {
        network.install(at, &view(2, &[2, 3]), &[0, 0], &[true, true]);
    }
    network.send(1, b"message", Order::Total).expect("credit");
    run(&mut network, &[1, 2], 3);
    assert!(known(&network, 1).len() >= 2);
    assert_eq!(known(&network, 1), known(&network, 2));
    let lost = |at: usize| network.nodes[at].said.seen.contains(&Seen::StateLost);
    assert!(lost(1) && !lost(2), "the coordinator begins anew, and gives its state to the others");
}

#[test]
fn a_joiner_that_is_left_alone_begins_anew() {
    let mut network = Network::new(2, &with_state(), 1);
    network.install(1, &view(2, &[2]), &[0], &[true]);
    network.run(100 * MILLISECOND);
    assert_eq!(network.nodes[1].said.seen, [Seen::StateLost]);
}

/// The coordinator asks the others in turn, and one of them more than once.
#[test]
fn a_group_does_not_begin_anew_while_a_slow_member_may_have_the_state() {
    let mut network = Network::new(3, &with_state(), 1);
    network.run(MILLISECOND);
    network.nodes[0].said.seen.clear();
    network.under_way.clear();
    for at in 0..3 {
        network.install(at, &view(2, &[2, 3, 1]), &[0; 3], &[true; 3]);
    }
    network.nodes[0].alive = false;
    for _ in 0..40 {
        network.run(50 * MILLISECOND);
        assert_eq!(network.nodes[1].said.seen, []);
    }
    network.nodes[0].alive = true;
    run(&mut network, &[0, 1, 2], 3);
    for at in 1..3 {
        assert!(matches!(network.nodes[at].said.seen[0], Seen::State(_)));
    }
}

#[test]
fn an_unasked_state_is_refused() {
    let mut network = Network::new(2, &with_state(), 1);
    let node = &mut network.nodes[0];
    let refused = node.delivery.provide_state(0, 5, Vec::new(), &mut node.said);
    assert_eq!(refused, Err(StateError::NotRequested(5)));
    let length = with_state().longest_state + 1;
    let refused = node.delivery.provide_state(0, 5, vec![0; length], &mut node.said);
    assert_eq!(refused, Err(StateError::TooLong { length, most: length - 1 }));
}

/// Both members have delivered the message, and it is stable at its sender.
#[track_caller]
fn all_go_on(network: &mut Network) {
    network.send(0, b"after the refusal", Order::Sender).expect("credit");
    network.run(MILLISECOND);
    network.heartbeats();
    for at in 1..network.nodes.len() {
        assert_eq!(network.nodes[at].said.seen[0], Seen::StateLost);
        assert_eq!(network.messages(at), network.messages(0), "member {at}");
    }
    let sent = network.messages(0).len() as u64;
    assert_eq!(network.nodes[0].delivery.stable(), sent);
}

#[test]
fn a_state_that_is_too_long_holds_up_no_member() {
    let settings = GroupSettings { longest_state: 100, ..with_state() };
    let mut network = Network::new(2, &settings, 1);
    network.run(MILLISECOND);
    let [Seen::StateRequested { token, .. }] = network.nodes[0].said.seen[..] else {
        panic!("{:?}", network.nodes[0].said.seen);
    };
    let node = &mut network.nodes[0];
    let refused = node.delivery.provide_state(network.now, token, vec![0; 101], &mut node.said);
    assert_eq!(refused, Err(StateError::TooLong { length: 101, most: 100 }));
    network.collect();
    network.run(100 * MILLISECOND);
    all_go_on(&mut network);
}

#[test]
fn a_state_that_is_never_given_holds_up_no_member_for_ever() {
    let mut network = Network::new(3, &with_state(), 1);
    network.send(0, b"before the state", Order::Sender).expect("credit");
    network.run(20_000 * MILLISECOND);
    assert_eq!(network.messages(1), [], "the application may be slow");
    network.run(60_000 * MILLISECOND);
    all_go_on(&mut network);
    // The answer comes too late: it is not sent again and again.
    let token = network.nodes[0].said.seen.iter().find_map(|seen| match seen {
        Seen::StateRequested { token, .. } => Some(*token),
        _ => None,
    });
    let (now, node) = (network.now, &mut network.nodes[0]);
    let given = node.delivery.provide_state(now, token.unwrap(), vec![0; 1 << 20], &mut node.said);
    given.expect("an open request");
    network.collect();
    network.run(100 * MILLISECOND);
    assert_eq!(network.nodes[0].delivery.next_tick(), crate::Nanos::MAX);
}
