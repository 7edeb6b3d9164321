//! One end of Zenoh between hosts, or the list of these.

mod end;

use anyhow::{Result, ensure};

use rivals_kit::Wait;
use rivals_network::peers::Case;
use rivals_network::{play, program};

use end::Session;

const CASES: &[Case] = &[Case {
    peer: "zenoh",
    name: "zenoh",
    version: || end::VERSION.to_owned(),
    family: "tcp",
    floor: false,
    yields: true,
    rows: &["tcp-pingpong", "oneway", "fanout3", "loss-pingpong", "loss-oneway"],
}];

fn main() -> Result<()> {
    program::main(CASES, |peer, load, place| {
        ensure!(peer == "zenoh", "no peer {peer}: see rivals-zenoh list");
        play(load, place, Session::new(load, place, load.wait == Wait::Block)?)
    })
}
