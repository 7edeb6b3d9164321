//! Hosts and the cables between them.

use crate::host::{Host, INTERFACE};
use crate::loss::Loss;
use crate::namespace::Namespace;
use crate::tool;
use anyhow::{Result, ensure};
use std::fmt::Write;

/// The most hosts of a network.
const MOST: usize = 254;

/// Hosts that reach each other; all of it goes when it is dropped.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
    /// None between two hosts that share one cable.
    switch: Option<Namespace>,
}

impl Network {
    /// Hosts with a cable each to a switch, which is a bridge in a namespace of its own.
    pub fn bridged(hosts: usize) -> Result<Self> {
        ensure!((1..=MOST).contains(&hosts), "a network has 1 to {MOST} hosts, not {hosts}");
        let switch = Namespace::new()?;
        let hosts =
            (1..=hosts).map(|number| Host::new(number as u8)).collect::<Result<Vec<_>>>()?;
        // It hands every group to every port: a switch that listens to memberships would need
        // a querier.
        switch.ip("link add switch type bridge mcast_snooping 0\nlink set switch up\n")?;
        let mut cables = String::new();
        let mut ports = String::new();
        for (index, host) in hosts.iter().enumerate() {
            let port = port(index);
            writeln!(cables, "{}", cable(&port, &switch, INTERFACE, host.namespace()))?;
            writeln!(ports, "link set {port} master switch up")?;
        }
        tool::ip(&cables)?;
        switch.ip(&ports)?;
        hosts.iter().try_for_each(Host::configure)?;
        Ok(Self { hosts, switch: Some(switch) })
    }

    /// Two hosts with one cable between them and nothing else.
    pub fn pair() -> Result<Self> {
        let hosts = vec![Host::new(1)?, Host::new(2)?];
        tool::ip(&cable(INTERFACE, hosts[0].namespace(), INTERFACE, hosts[1].namespace()))?;
        hosts.iter().try_for_each(Host::configure)?;
        Ok(Self { hosts, switch: None })
    }

    /// As [`pair`](Self::pair), by cards of several queues each.
    pub fn pair_with_queues(queues: u32) -> Result<Self> {
        let hosts = vec![Host::new(1)?, Host::new(2)?];
        let (near, far) = (hosts[0].namespace(), hosts[1].namespace());
        let end = format!("numtxqueues {queues} numrxqueues {queues}");
        tool::ip(&format!(
            "link add {INTERFACE} netns {} {end} type veth peer name {INTERFACE} netns {} {end}",
            near.name(),
            far.name()
        ))?;
        hosts.iter().try_for_each(Host::configure)?;
        Ok(Self { hosts, switch: None })
    }

    /// The host of that number, from 0.
    pub fn host(&self, index: usize) -> &Host {
        &self.hosts[index]
    }

    /// All hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Sets the longest packet of every interface, in bytes; it begins with 1500.
    pub fn set_mtu(&self, bytes: u32) -> Result<()> {
        self.on_all_interfaces(&format!("mtu {bytes}"))
    }

    /// Makes every interface send frames of at most an MTU, as they would go over a real cable.
    /// A cable between namespaces otherwise carries up to 64 KiB of TCP or of segmented UDP whole,
    /// which is faster, and is lost as a whole.
    pub fn send_frames(&self) -> Result<()> {
        self.on_all_interfaces("gso_max_segs 1")
    }

    /// Pulls this host's cable out at the other end: the interface stays up and sees
    /// no peer.
    pub fn cut(&self, index: usize) -> Result<()> {
        let (far, interface) = self.far_end(index);
        far.ip(&format!("link set {interface} down\n"))
    }

    /// Plugs it in again.
    pub fn heal(&self, index: usize) -> Result<()> {
        let (far, interface) = self.far_end(index);
        far.ip(&format!("link set {interface} up\n"))?;
        match self.switch {
            Some(_) => Ok(()),
            // An interface that was down has lost its routes and its IPv6 address.
            None => self.hosts[1 - index].configure(),
        }
    }

    /// Every host loses this much of what comes in.
    pub fn lose(&self, loss: &Loss) -> Result<()> {
        self.hosts.iter().try_for_each(|host| host.lose(loss))
    }

    /// No host loses anything any more.
    pub fn lose_nothing(&self) -> Result<()> {
        self.hosts.iter().try_for_each(Host::lose_nothing)
    }

    fn far_end(&self, index: usize) -> (&Namespace, String) {
        assert!(index < self.hosts.len(), "there is no host {index}");
        match &self.switch {
            Some(switch) => (switch, port(index)),
            None => (self.hosts[1 - index].namespace(), INTERFACE.to_owned()),
        }
    }

    fn on_all_interfaces(&self, setting: &str) -> Result<()> {
        for (index, host) in self.hosts.iter().enumerate() {
            host.namespace().ip(&format!("link set {INTERFACE} {setting}\n"))?;
            if let Some(switch) = &self.switch {
                switch.ip(&format!("link set {} {setting}\n", port(index)))?;
            }
        }
        Ok(())
    }
}

fn port(index: usize) -> String {
    format!("port{index}")
}

fn cable(here: &str, near: &Namespace, there: &str, far: &Namespace) -> String {
    let (near, far) = (near.name(), far.name());
    format!("link add {here} netns {near} type veth peer name {there} netns {far}")
}
