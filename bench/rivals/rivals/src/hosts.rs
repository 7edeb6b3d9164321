//! The hosts of the rows between hosts: network namespaces, or the loopback interface alone.
//!
//! ```text
//!   pair:    host 0 ---- host 1                      to one address, one way
//!   bridge:  host 0, 1, 2, 3 -- bridge               to a group, to three subscribers
//!   frames:  the same, no packet longer than 1500    what is lost, is lost frame by frame
//! ```

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Loss, Network, possible};

use crate::cell::Cell;
use crate::row::Row;

/// Hosts of a bridge: a publisher and three subscribers.
const BRIDGED: usize = 4;
const PER_MILLE: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Pair,
    Bridge,
    Frames,
}

impl Plan {
    fn of(row: Row) -> Self {
        match row {
            Row::RmPingpong | Row::Fanout3 => Plan::Bridge,
            row if row.is_lossy() => Plan::Frames,
            _ => Plan::Pair,
        }
    }

    fn build(self) -> Result<Network> {
        match self {
            Plan::Pair => Network::pair(),
            Plan::Bridge => Network::bridged(BRIDGED),
            Plan::Frames => {
                let network = Network::bridged(BRIDGED)?;
                network.send_frames()?;
                Ok(network)
            }
        }
    }
}

/// All hosts of a run; their namespaces go when this is dropped.
#[derive(Debug)]
pub struct Hosts {
    /// None of them on loopback.
    networks: Vec<(Plan, Network)>,
    loopback: bool,
}

impl Hosts {
    /// The hosts that some rows need.
    ///
    /// # Errors
    ///
    /// When networks cannot be made here, or a row cannot do without them.
    pub fn new(rows: &[Row], loopback: bool) -> Result<Self> {
        let mut networks = Vec::new();
        let rows = rows.iter().copied().filter(|row| row.is_between_hosts());
        for row in rows {
            ensure!(!(loopback && row.is_lossy()), "{row} loses nothing over --loopback");
            let has_no_frames = loopback && row.needs_ethernet();
            ensure!(!has_no_frames, "{row} needs a card or a namespace: leave --loopback out");
            let plan = Plan::of(row);
            if loopback || networks.iter().any(|(other, _)| *other == plan) {
                continue;
            }
            ensure!(
                possible(),
                "rows between hosts need root, ip (apt-get install iproute2) and nft (apt-get \
                 install nftables); with --loopback most of them do without"
            );
            networks.push((plan, plan.build()?));
        }
        Ok(Self { networks, loopback })
    }

    /// The address of a host.
    pub fn address(&self, cell: &Cell, index: usize) -> Result<Ipv4Addr> {
        if self.loopback {
            return Ok(Ipv4Addr::new(127, 0, 0, index as u8 + 1));
        }
        Ok(self.network(cell)?.host(index).v4())
    }

    /// The namespace of a host, if it has one.
    pub fn namespace(&self, cell: &Cell, index: usize) -> Result<Option<String>> {
        if self.loopback {
            return Ok(None);
        }
        Ok(Some(self.network(cell)?.host(index).name().to_owned()))
    }

    /// Every host loses as much of what comes in as the cell asks for.
    pub fn lose(&self, cell: &Cell) -> Result<()> {
        if !cell.row.is_lossy() {
            return Ok(());
        }
        self.network(cell)?.lose(&Loss::per_mille(cell.loss * PER_MILLE))
    }

    fn network(&self, cell: &Cell) -> Result<&Network> {
        let plan = Plan::of(cell.row);
        let found = self.networks.iter().find(|(other, _)| *other == plan);
        Ok(&found.with_context(|| format!("no network was made for {}", cell.row))?.1)
    }
}
