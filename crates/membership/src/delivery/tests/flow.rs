//! Credit, transports without room, long messages, and lost acknowledgements.

use super::network::{MILLISECOND, Network, Seen, settings};
use crate::error::SendError;
use crate::event::Order;
use crate::settings::GroupSettings;
use crate::view::MemberId;

fn writables(network: &Network, at: usize) -> usize {
    network.nodes[at].said.seen.iter().filter(|seen| **seen == Seen::Writable).count()
}

/// Sends until there is a refusal; returns the count and the refusal.
fn fill(network: &mut Network, at: usize, bytes: &[u8]) -> (usize, SendError) {
    for sent in 0..100_000 {
        if let Err(refusal) = network.send(at, bytes, Order::Sender) {
            return (sent, refusal);
        }
    }
    panic!("no end of credit");
}

#[test]
fn the_slowest_member_is_named_and_its_acknowledgement_makes_room() {
    let mut network = Network::new(3, &settings(), 1);
    network.nodes[2].alive = false;
    let mut sent = 0;
    let refusal = loop {
        match network.send(0, &[0; 100], Order::Sender) {
            Ok(_) => sent += 1,
            Err(refusal) => break refusal,
        }
        network.run(10_000);
    };
    assert_eq!(refusal, SendError::NoCredit(MemberId(3)));
    assert_eq!(sent, (64 << 10) / 128, "the window, by whole lines");
    assert!(network.nodes[0].delivery.counters().highest_retained <= 64 << 10);
    network.run(500 * MILLISECOND);
    assert_eq!(writables(&network, 0), 0, "a member is missing");
    network.nodes[2].alive = true;
    network.run(3_000 * MILLISECOND);
    assert_eq!(writables(&network, 0), 1);
    assert_eq!(network.of(2, 1).len(), sent);
    network.send(0, b"again", Order::Sender).expect("room");
    let blocked = &network.nodes[0].delivery.counters().blocked;
    assert_eq!((blocked[0].member, blocked[0].times), (MemberId(3), 1));
    assert!(blocked[0].nanos >= 500 * MILLISECOND);
}

#[test]
fn lost_acknowledgements_do_not_block_for_ever() {
    let mut network = Network::new(2, &settings(), 1);
    let (sent, _) = fill(&mut network, 0, &[0; 100]);
    while network.step() {}
    // All that member 2 has said so far is lost.
    network.under_way.clear();
    network.run(25 * MILLISECOND);
    network.under_way.clear();
    network.run(400 * MILLISECOND);
    assert_eq!(writables(&network, 0), 1, "a probe brings the acknowledgement");
    assert_eq!(network.nodes[0].delivery.stable(), sent as u64);
}

#[test]
fn a_lost_last_message_is_noticed() {
    let mut network = Network::new(3, &settings(), 1);
    network.lost = 100;
    network.send(1, b"last", Order::Sender).expect("credit");
    network.lost = 0;
    network.run(60 * MILLISECOND);
    assert_eq!(network.of(0, 2), [0]);
    assert_eq!(network.of(2, 2), [0]);
}

#[test]
fn a_heartbeat_tells_of_lost_last_messages() {
    let mut network = Network::new(2, &settings(), 1);
    network.lost = 100;
    network.send(0, b"last", Order::Sender).expect("credit");
    network.lost = 0;
    let node = &mut network.nodes[1];
    node.delivery.on_vector(0, MemberId(1), 1, [1, 0].into_iter(), &mut node.said);
    network.run(5 * MILLISECOND);
    assert_eq!(network.of(1, 1), [0]);
}

#[test]
fn a_transport_without_room_refuses_whole_messages_only() {
    let mut network = Network::new(2, &settings(), 1);
    network.nodes[0].said.full = true;
    assert_eq!(network.send(0, &[1; 2_000], Order::Sender), Err(SendError::Transport));
    assert_eq!(network.nodes[0].delivery.next_sequence(), 0);
    network.nodes[0].said.full = false;
    network.run(2 * MILLISECOND);
    assert_eq!(writables(&network, 0), 1);
    network.send(0, &[1; 2_000], Order::Sender).expect("room");
    network.run(5 * MILLISECOND);
    assert_eq!(network.of(1, 1), [4]);
}

#[test]
fn messages_longer_than_the_credit_are_sent_as_it_comes_back() {
    let settings = GroupSettings { longest_message: 1 << 20, ..settings() };
    let mut network = Network::new(3, &settings, 1);
    (network.lost, network.reordered) = (5, 20);
    let long: Vec<_> = (0..1_u32 << 18).flat_map(u32::to_le_bytes).collect();
    let number = network.send(1, &long, Order::Sender).expect("the first fragments");
    assert!(matches!(network.send(1, b"next", Order::Sender), Err(SendError::NoCredit(_))));
    assert!(network.nodes[1].delivery.stable() <= number);
    network.run(20_000 * MILLISECOND);
    for at in 0..3 {
        assert_eq!(network.of(at, 2), [number], "member {at}");
        let Seen::Message { bytes, .. } = &network.nodes[at].said.seen[0] else { panic!() };
        assert_eq!(bytes, &long);
        assert!(network.nodes[at].delivery.counters().highest_retained <= 100 << 10);
    }
    assert_eq!(network.nodes[1].delivery.stable(), number + 1);
    let length = (1 << 20) + 1;
    let refusal = SendError::TooLong { length, most: 1 << 20 };
    assert_eq!(network.send(1, &vec![0; length], Order::Sender), Err(refusal));
}

#[test]
fn a_long_message_under_way_begins_anew_in_the_next_view() {
    let settings = GroupSettings { longest_message: 1 << 20, ..settings() };
    let mut network = Network::new(2, &settings, 1);
    let long = vec![7; 300_000];
    let number = network.send(0, &long, Order::Total).expect("the first fragments");
    network.run(50_000);
    for at in 0..2 {
        network.nodes[at].delivery.hold();
    }
    let firsts = network.nodes[0].delivery.vector();
    assert!(firsts[0] <= number, "not all of it is sent");
    for at in 0..2 {
        let node = &mut network.nodes[at];
        let holders = [MemberId(1), MemberId(2)];
        node.delivery.pursue(network.now, &firsts, &holders, &mut node.said);
    }
    network.run(5 * MILLISECOND);
    for at in 0..2 {
        let node = &mut network.nodes[at];
        assert!(node.delivery.has_reached(&firsts));
        node.delivery.finish(network.now, &mut node.said);
    }
    assert_eq!(network.messages(1), [], "a message without its end");
    for at in 0..2 {
        let view = super::network::view(2, &[1, 2]);
        network.install(at, &view, &firsts, &[true, true]);
    }
    while network.nodes[0].delivery.stable() <= number {
        assert!(network.of(1, 1).len() <= 1 && network.now < 10_000 * MILLISECOND);
        network.run(MILLISECOND);
    }
    assert_eq!(network.of(1, 1).len(), 1, "stable means that it is there");
    assert!(network.of(1, 1)[0] > number);
}

#[test]
fn a_member_alone_has_all_the_credit_it_wants() {
    let mut network = Network::new(1, &settings(), 1);
    for number in 0..5_000 {
        assert_eq!(network.send(0, &[0; 100], Order::Sender), Ok(number));
    }
    for number in 5_000..5_200 {
        network.send(0, &[0; 100], Order::Total).expect("credit");
        assert!(network.nodes[0].delivery.stable() >= number);
        network.run(1_000);
    }
    assert_eq!(network.messages(0).len(), 5_200);
}

#[test]
fn much_repair_lowers_the_credit() {
    let settings = GroupSettings { window: 2 << 20, ..settings() };
    let mut network = Network::new(2, &settings, 1);
    network.lost = 30;
    let before = network.nodes[0].delivery.own.limit();
    for _ in 0..3_000 {
        let _ = network.send(0, &[0; 400], Order::Sender);
        network.run(50_000);
    }
    assert!(network.nodes[0].delivery.own.limit() < before);
    network.nodes[1].delivery.on_memory_pressure();
    assert_eq!(network.nodes[1].delivery.own.limit(), before / 2);
}

#[test]
fn delivery_in_total_order_gives_credit_back_too() {
    let mut network = Network::new(3, &settings(), 1);
    while network.send(1, &[0; 400], Order::Total).is_ok() {}
    // All have them, and say so; the sequencer's lists are lost, for the time being.
    network.under_way.retain(|(to, _)| *to != 1);
    let mut lists = Vec::new();
    while network.step() || network.nodes[0].delivery.next_tick() <= network.now {
        network.tick();
        lists.extend(network.under_way.extract_if(.., |(_, frame)| frame[2] & 4 != 0));
    }
    assert_eq!(writables(&network, 1), 0, "own messages wait for their turn");
    network.heartbeats();
    network.under_way.extend(lists);
    network.run(MILLISECOND);
    assert_eq!(writables(&network, 1), 1);
}

#[test]
fn fragments_count_as_frames_when_repairs_are_weighed() {
    let limit_after = |repairs: u64| {
        let mut network = Network::new(2, &GroupSettings { window: 4 << 20, ..settings() }, 1);
        let before = network.nodes[0].delivery.own.limit();
        network.run(60 * MILLISECOND);
        for _ in 0..200 {
            network.send(0, &[0; 4 * 400], Order::Sender).expect("credit");
        }
        network.nodes[0].delivery.own.on_repairs(repairs);
        network.run(200 * MILLISECOND);
        (before, network.nodes[0].delivery.own.limit())
    };
    // 800 frames: 40 repairs are a twentieth of them, but a fifth of the messages.
    let (before, after) = limit_after(40);
    assert_eq!(after, before);
    let (before, after) = limit_after(60);
    assert_eq!(after, before / 2);
}

#[test]
fn long_messages_of_all_members_in_both_orders_get_through() {
    for seed in 1..=20 {
        let settings = GroupSettings {
            longest_frame: 64 << 10,
            window: 512 << 10,
            ..GroupSettings::default()
        };
        let mut network = Network::new(3, &settings, seed);
        network.lost = 10 * (seed % 2);
        let mut sent = [0; 3];
        while sent != [100; 3] {
            for (at, sent) in sent.iter_mut().enumerate() {
                let order = if *sent % 2 == 0 { Order::Sender } else { Order::Total };
                let length = if *sent % 10 == 9 { 150_000 } else { 100 };
                if *sent < 100 && network.send(at, &vec![1; length], order).is_ok() {
                    *sent += 1;
                }
            }
            network.run(100_000);
            assert!(network.now < 100_000 * MILLISECOND, "{sent:?}");
        }
        network.run(5_000 * MILLISECOND);
        for at in 0..3 {
            assert_eq!(network.messages(at).len(), 300, "member {at}, seed {seed}");
        }
    }
}
