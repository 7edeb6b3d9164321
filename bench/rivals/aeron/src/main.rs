//! One end of Aeron between hosts, or the list of these.

mod driver;
mod end;

use anyhow::{Result, bail};

use rivals_network::peers::Case;
use rivals_network::{play, program};
use rusteron_media_driver::Aeron;

use end::{Stream, Way};

const CASES: &[Case] = &[
    aeron("udp", "aeron-udp", &["udp-pingpong", "idle", "oneway", "loss-pingpong", "loss-oneway"]),
    aeron(
        "multicast",
        "aeron-multicast",
        &["rm-pingpong", "oneway", "fanout3", "loss-pingpong", "loss-oneway"],
    ),
];

const fn aeron(family: &'static str, name: &'static str, rows: &'static [&'static str]) -> Case {
    Case { peer: "aeron", name, version, family, floor: false, yields: false, rows }
}

fn version() -> String {
    Aeron::version_text().to_owned()
}

fn main() -> Result<()> {
    program::main(CASES, |peer, load, place| {
        let way = match peer {
            "aeron-udp" => Way::Unicast,
            "aeron-multicast" => Way::Multicast,
            _ => bail!("no peer {peer}: see rivals-aeron list"),
        };
        play(load, place, Stream::new(load, place, way)?)
    })
}
