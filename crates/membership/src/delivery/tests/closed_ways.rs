//! Members whose ways to single others stay closed.

use super::network::{MILLISECOND, Network, settings};
use crate::event::Order;
use crate::view::MemberId;

/// Members that can send to all alone.
fn closed(members: u64) -> Network {
    let mut network = Network::new(members, &settings(), 1);
    network.nodes.iter_mut().for_each(|node| node.said.is_closed = true);
    network
}

/// Sends a message of member 1, which members at `reached` get.
fn send_to_some(network: &mut Network, reached: &[usize]) {
    while network.step() {}
    network.send(0, b"message", Order::Sender).expect("sent");
    network.under_way.retain(|(to, _)| reached.contains(to));
    while network.step() {}
}

fn repairs(network: &Network) -> Vec<u64> {
    network.nodes.iter().map(|node| node.delivery.counters().repairs_sent).collect()
}

#[test]
fn a_hole_is_filled_by_way_of_all_and_by_one_member_alone() {
    let mut network = closed(4);
    send_to_some(&mut network, &[1, 2]);
    send_to_some(&mut network, &[1, 2, 3]);
    assert_eq!(network.of(3, 1), []);
    network.run(200 * MILLISECOND);
    assert_eq!(network.of(3, 1), [0, 1]);
    assert_eq!(repairs(&network)[1..], [0; 3], "the origin answers");
    assert!(repairs(&network)[0] <= 2, "{:?}", repairs(&network));
    network.heartbeats();
    assert_eq!(network.nodes[0].delivery.stable(), 2);
}

#[test]
fn what_a_dead_member_sent_comes_from_the_holder_alone_by_way_of_all() {
    let mut network = closed(4);
    send_to_some(&mut network, &[1, 2]);
    network.nodes[0].alive = false;
    let (now, holder) = (network.now, MemberId(2));
    for node in &mut network.nodes[1..] {
        node.delivery.peer_gone(MemberId(1));
        node.delivery.hold();
        node.delivery.pursue(now, &[1, 0, 0, 0], &[holder; 4], &mut node.said);
    }
    network.run(200 * MILLISECOND);
    assert_eq!(network.of(3, 1), [0]);
    assert_eq!(repairs(&network), [0, 1, 0, 0]);
}
