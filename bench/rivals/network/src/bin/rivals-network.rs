//! One end of sockets, ØMQ, NATS or lanecast, or the list of these.

use anyhow::Result;

use rivals_network::peers::CASES;

fn main() -> Result<()> {
    rivals_network::program::main(CASES, rivals_network::run)
}
