//! Rings in every topology under random operations, beside a model that is too simple to be
//! wrong; and whether every value is dropped once, whatever happens.

#![allow(clippy::forget_non_drop, reason = "that a claim does nothing when dropped may change")]

mod drops;
mod end;
mod model;
mod value;

use end::{Shape, Topology};
use model::{Act, Close, Model};
use proptest::prelude::*;

fn shapes() -> impl Strategy<Value = Shape> {
    let topology = prop_oneof![
        Just(Topology::Unicast),
        (2..4_usize).prop_map(Topology::Multicast),
        Just(Topology::Pipeline),
        Just(Topology::Diamond),
        (1..4_usize).prop_map(Topology::Workers),
        (1..4_usize).prop_map(Topology::WorkersBehind),
    ];
    let stride = prop_oneof![Just(1), 2..10_usize];
    (topology, 0..4_usize, 0..7_u32, stride).prop_map(|(topology, lanes, bits, stride)| Shape {
        topology,
        lanes,
        capacity: 1 << bits,
        stride: stride.min(1 << bits),
    })
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let close = prop_oneof![
        Just(Close::Drop),
        Just(Close::Leak),
        (0..20_usize).prop_map(Close::First),
        Just(Close::All),
    ];
    let (lane, stage) = (0..6_usize, 0..60_usize);
    let act = prop_oneof![
        6 => (lane.clone(), 1..12_usize).prop_map(|(lane, count)| Act::Push { lane, count }),
        6 => (lane.clone(), 1..20_usize, close)
            .prop_map(|(lane, count, close)| Act::Claim { lane, count, close }),
        2 => lane.clone().prop_map(|lane| Act::Flush { lane }),
        1 => lane.prop_map(|lane| Act::End { lane }),
        8 => (stage.clone(), 0..80_usize).prop_map(|(stage, max)| Act::Read { stage, max }),
        4 => (stage.clone(), 0..20_usize).prop_map(|(stage, max)| Act::Change { stage, max }),
        4 => (stage.clone(), 1..20_usize).prop_map(|(stage, count)| Act::Pop { stage, count }),
        1 => (stage.clone(), 1..20_usize).prop_map(|(stage, max)| Act::Fall { stage, max }),
        1 => stage.prop_map(|stage| Act::Leave { stage }),
    ];
    proptest::collection::vec(act, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rings_hand_over_what_was_pushed(shape in shapes(), acts in acts(), reads_on: bool) {
        let mut model = Model::new(shape);
        acts.iter().for_each(|act| model.act(act));
        if reads_on {
            model.read_to_the_end();
        }
        drop(model);
        value::assert_all_dropped();
    }
}
