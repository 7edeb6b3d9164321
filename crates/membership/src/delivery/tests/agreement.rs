//! Same messages, same order, at all members; also of a member that dies.

use super::network::{Dice, MILLISECOND, Network, settings, view};
use crate::event::Order;
use crate::view::MemberId;
use proptest::prelude::*;

/// Messages of all lengths, those of three fragments among them.
fn body(dice: &mut Dice) -> Vec<u8> {
    let length = [0, 8, 100, 480, 481, 1_000, 1_440][dice.below(7) as usize];
    vec![dice.below(256) as u8; length]
}

fn random_order(dice: &mut Dice) -> Order {
    if dice.below(2) == 0 { Order::Sender } else { Order::Total }
}

/// All members delivered the same: each sender's messages in its order, those in total order in
/// one.
fn check(network: &Network, alive: &[usize]) {
    let senders = network.nodes.len() as u64;
    for &at in alive {
        for from in 1..=senders {
            let sequences = network.of(at, from);
            assert!(sequences.is_sorted_by(|a, b| a < b), "{at} of {from}: {sequences:?}");
            assert_eq!(sequences, network.of(alive[0], from), "member {at}, sender {from}");
        }
        assert_eq!(network.agreed(at), network.agreed(alive[0]), "member {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn all_deliver_the_same_over_a_hostile_network(
        seed: u64,
        members in 2_u64..5,
        (lost, doubled, reordered) in (0_u64..30, 0_u64..20, 0_u64..80),
        sends in 1_usize..200,
    ) {
        let mut network = Network::new(members, &settings(), seed);
        (network.lost, network.doubled, network.reordered) = (lost, doubled, reordered);
        let mut dice = Dice::new(seed ^ 1);
        let mut sent = vec![Vec::new(); members as usize];
        for _ in 0..sends {
            let at = dice.below(members) as usize;
            let (bytes, order) = (body(&mut dice), random_order(&mut dice));
            match network.send(at, &bytes, order) {
                Ok(sequence) => sent[at].push(sequence),
                Err(_) => network.run(20 * MILLISECOND),
            }
            for _ in 0..dice.below(8) {
                network.step();
            }
            network.tick();
        }
        network.run(8_000 * MILLISECOND);
        network.heartbeats();
        check(&network, &(0..members as usize).collect::<Vec<_>>());
        for (at, sent) in sent.iter().enumerate() {
            prop_assert_eq!(&network.of(0, at as u64 + 1), sent, "sender {}", at);
            let delivery = &network.nodes[at].delivery;
            prop_assert_eq!(delivery.stable(), delivery.next_sequence());
            for (rank, lane) in delivery.streams.lanes.iter().enumerate() {
                prop_assert_eq!(lane.retained.used(), 0, "sender {} at {}", rank, at);
            }
        }
    }
}

/// A leader's decision: the farthest that any survivor got, and that survivor.
fn cut(network: &Network, alive: &[usize]) -> (Vec<u64>, Vec<MemberId>) {
    let vectors: Vec<_> =
        alive.iter().map(|&at| (network.nodes[at].delivery.vector(), at)).collect();
    let ranks = 0..vectors[0].0.len();
    let best = |rank: usize| vectors.iter().map(|(vector, at)| (vector[rank], *at)).max().unwrap();
    let (targets, holders): (Vec<_>, Vec<_>) = ranks.map(best).unzip();
    (targets, holders.into_iter().map(|at| MemberId(network.nodes[at].id)).collect())
}

/// Changes the view to the survivors, from its hold to its installation.
fn change(network: &mut Network, alive: &[usize], epoch: u64) {
    for &at in alive {
        network.nodes[at].delivery.hold();
    }
    let (targets, holders) = cut(network, alive);
    for &at in alive {
        let node = &mut network.nodes[at];
        node.delivery.pursue(network.now, &targets, &holders, &mut node.said);
    }
    network.collect();
    let end = network.now + 10_000 * MILLISECOND;
    while !alive.iter().all(|&at| network.nodes[at].delivery.has_reached(&targets)) {
        assert!(network.now < end, "the survivors never meet");
        network.run(MILLISECOND);
    }
    for &at in alive {
        let node = &mut network.nodes[at];
        node.delivery.finish(network.now, &mut node.said);
    }
    check(network, alive);
    let ids: Vec<_> = alive.iter().map(|&at| network.nodes[at].id).collect();
    let firsts: Vec<_> =
        alive.iter().map(|&at| network.nodes[at].delivery.next_sequence()).collect();
    for &at in alive {
        network.install(at, &view(epoch, &ids), &firsts, &vec![true; ids.len()]);
    }
}

/// A run of `steps` frames in which all send both orders; then `dead` says nothing more.
fn cut_off(dead: usize, steps: usize, seed: u64, lost: u64) -> Network {
    let mut network = Network::new(3, &settings(), seed);
    (network.lost, network.reordered) = (lost, 30);
    let mut dice = Dice::new(seed);
    for _ in 0..6 {
        for at in 0..3 {
            let (bytes, order) = (body(&mut dice), random_order(&mut dice));
            network.send(at, &bytes, order).expect("credit");
        }
    }
    for _ in 0..steps {
        network.tick();
        network.step();
    }
    network.nodes[dead].alive = false;
    // Some of its last frames still arrive, some do not.
    network.under_way.retain(|_| network.dice.below(3) > 0);
    network
}

#[test]
fn survivors_agree_when_a_member_is_cut_off_at_any_step() {
    for seed in 1..=6 {
        for dead in 0..3 {
            for steps in 0..70 {
                let mut network = cut_off(dead, steps, seed, 10 * (seed % 3));
                let alive: Vec<_> = (0..3).filter(|&at| at != dead).collect();
                change(&mut network, &alive, 2);
                // Nothing of a survivor is missing.
                for &at in &alive {
                    let from = network.nodes[at].id;
                    assert_eq!(network.of(alive[0], from).len(), 6, "{dead} {steps} {seed}");
                }
                // The next view works.
                for &at in &alive {
                    network.send(at, b"next", Order::Total).expect("credit");
                }
                network.run(3_000 * MILLISECOND);
                check(&network, &alive);
                assert_eq!(network.of(alive[0], network.nodes[alive[1]].id).len(), 7);
            }
        }
    }
}

#[test]
fn a_round_given_up_loses_nothing() {
    for seed in 1..=20 {
        let mut network = cut_off(2, 20 + seed as usize, seed, 10);
        network.nodes[2].alive = true;
        for at in 0..3 {
            network.nodes[at].delivery.hold();
        }
        let before: Vec<_> = (0..3).map(|at| network.nodes[at].delivery.vector()).collect();
        assert_eq!(network.send(0, b"held", Order::Sender), Err(crate::SendError::Changing));
        network.run(50 * MILLISECOND);
        let after: Vec<_> = (0..3).map(|at| network.nodes[at].delivery.vector()).collect();
        assert_eq!(before, after, "a held member's vector stays");
        for at in 0..3 {
            let node = &mut network.nodes[at];
            node.delivery.resume(network.now, &mut node.said);
        }
        network.run(5_000 * MILLISECOND);
        check(&network, &[0, 1, 2]);
        assert_eq!(network.messages(1).len(), 18, "seed {seed}");
    }
}

#[test]
fn total_order_is_one_order_across_senders() {
    let mut network = Network::new(3, &settings(), 5);
    network.reordered = 90;
    for number in 0..60_u8 {
        for at in 0..3 {
            network.send(at, &[number], Order::Total).expect("credit");
        }
        network.run(100_000);
    }
    network.run(1_000 * MILLISECOND);
    check(&network, &[0, 1, 2]);
    assert_eq!(network.agreed(2).len(), 180);
}

#[test]
fn frames_of_a_view_that_is_not_installed_yet_wait_for_it() {
    let mut network = Network::new(2, &settings(), 3);
    let next = view(2, &[1, 2]);
    network.install(0, &next, &[0, 0], &[true, true]);
    network.send(0, b"early", Order::Sender).expect("credit");
    while network.step() {}
    assert_eq!(network.messages(1), []);
    network.install(1, &next, &[0, 0], &[true, true]);
    assert_eq!(network.of(1, 1), [0], "without being asked for again");
    assert_eq!(network.nodes[1].delivery.counters().wants, 0);
}
