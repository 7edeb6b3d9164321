//! Messages between two members.

use super::network::{MILLISECOND, Network, Seen, settings, view};
use crate::error::SendError;
use crate::view::MemberId;
use proptest::prelude::*;

fn directs(network: &Network, at: usize, from: u64) -> Vec<Vec<u8>> {
    let seen = network.nodes[at].said.seen.iter();
    seen.filter_map(|seen| match seen {
        Seen::Direct { from: sender, bytes } if *sender == from => Some(bytes.clone()),
        _ => None,
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn each_pair_is_in_order_over_a_hostile_network(
        seed: u64,
        (lost, doubled, reordered) in (0_u64..30, 0_u64..20, 0_u64..80),
        lengths in prop::collection::vec((0_usize..3, 1_usize..4, 0_usize..3_000), 1..60),
    ) {
        let mut network = Network::new(3, &settings(), seed);
        (network.lost, network.doubled, network.reordered) = (lost, doubled, reordered);
        let mut sent = vec![vec![Vec::new(); 3]; 3];
        for (number, (from, to, length)) in lengths.into_iter().enumerate() {
            let bytes = vec![number as u8; length];
            if network.send_to(from, to as u64, &bytes).is_ok() {
                sent[from][to - 1].push(bytes);
            }
            network.step();
        }
        network.run(20_000 * MILLISECOND);
        for (from, sent) in sent.iter().enumerate() {
            for (to, sent) in sent.iter().enumerate() {
                let got = directs(&network, to, from as u64 + 1);
                prop_assert_eq!(&got, sent, "{} to {}", from, to);
            }
        }
    }
}

#[test]
fn a_pair_goes_on_in_the_next_view_if_both_stayed() {
    let mut network = Network::new(2, &settings(), 1);
    network.lost = 100;
    network.send_to(0, 2, b"one").expect("room");
    network.lost = 0;
    for at in 0..2 {
        network.install(at, &view(2, &[1, 2]), &[0, 0], &[true, true]);
    }
    network.send_to(0, 2, b"two").expect("room");
    network.run(1_000 * MILLISECOND);
    assert_eq!(directs(&network, 1, 1), [b"one", b"two"]);
}

#[test]
fn a_pair_that_was_parted_begins_anew_on_both_sides() {
    let mut network = Network::new(2, &settings(), 1);
    network.send_to(0, 2, b"old").expect("room");
    let stale = network.under_way.clone();
    network.run(100 * MILLISECOND);
    network.send_to(0, 2, b"lost with the view").expect("room");
    network.under_way.clear();
    for at in 0..2 {
        network.install(at, &view(2, &[1, 2]), &[0, 0], &[at == 0, at == 1]);
    }
    network.under_way = stale;
    network.send_to(0, 2, b"new").expect("room");
    network.run(1_000 * MILLISECOND);
    assert_eq!(directs(&network, 1, 1), [&b"old"[..], b"new"]);
}

#[test]
fn the_bytes_under_way_are_bounded_and_strangers_refused() {
    let mut network = Network::new(2, &settings(), 1);
    network.nodes[1].alive = false;
    let mut sent = 0;
    let refusal = loop {
        match network.send_to(0, 2, &[0; 100]) {
            Ok(_) => sent += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal, SendError::NoCredit(MemberId(2)));
    assert!((100..=512).contains(&sent), "{sent}");
    assert_eq!(network.send_to(0, 9, b""), Err(SendError::NotAMember(MemberId(9))));
    network.nodes[1].alive = true;
    network.run(10_000 * MILLISECOND);
    assert_eq!(directs(&network, 1, 1).len(), sent);
    assert!(network.nodes[0].said.seen.contains(&Seen::Writable));
    let refused = network.send_to(0, 2, &vec![0; 40 << 10]);
    assert!(matches!(refused, Err(SendError::TooLong { .. })), "{refused:?}");
}
