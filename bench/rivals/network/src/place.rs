//! Role of an end, and the addresses of all ends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

/// Role of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Sends at a rate and times the way there and back
    Ping,
    /// Sends back what it gets
    Pong,
    /// Sends one way
    Pub,
    /// Counts what comes
    Sub,
}

impl Role {
    /// Whether it begins: the other end is there before it.
    pub fn begins(self) -> bool {
        matches!(self, Role::Ping | Role::Pub)
    }
}

/// Addresses of one repetition.
#[derive(Args, Clone, Debug)]
pub struct Place {
    /// Role of this end
    #[arg(long, value_enum)]
    pub role: Role,
    /// Address of this end
    #[arg(long, default_value = "127.0.0.1")]
    pub local: Ipv4Addr,
    /// Address of the other end; of each, where there are several
    #[arg(long, value_delimiter = ',', default_value = "127.0.0.1")]
    pub remote: Vec<Ipv4Addr>,
    /// First of four free ports
    #[arg(long, default_value_t = 20_000)]
    pub port: u16,
}

impl Place {
    /// Address of the end that waits.
    pub fn waiting(&self) -> Result<SocketAddr> {
        let address = if self.role.begins() { *self.first_remote()? } else { self.local };
        Ok((address, self.port).into())
    }

    /// Addresses of all ends that wait.
    pub fn waiting_ends(&self) -> Vec<SocketAddr> {
        let here = std::slice::from_ref(&self.local);
        let ends = if self.role.begins() { self.remote.as_slice() } else { here };
        ends.iter().map(|address| SocketAddr::from((*address, self.port))).collect()
    }

    /// Address of a server between the ends: on the host of the end that begins.
    pub fn server(&self) -> Result<SocketAddr> {
        Ok((self.beginning()?.ip(), self.port).into())
    }

    /// Address of the end that begins.
    pub fn beginning(&self) -> Result<SocketAddr> {
        let address = if self.role.begins() { self.local } else { *self.first_remote()? };
        Ok((address, self.port + 1).into())
    }

    /// The group that this end sends to, or the one that it listens to. Aeron wants odd ones, and
    /// a port for each.
    pub fn group(&self, listens: bool) -> (Ipv4Addr, u16) {
        let there = self.role.begins() != listens;
        let (last, port) = if there { (1, self.port + 2) } else { (3, self.port + 3) };
        (Ipv4Addr::new(239, 77, 1, last), port)
    }

    /// Whether both ends are on one host.
    pub fn is_loopback(&self) -> bool {
        IpAddr::from(self.local).is_loopback()
    }

    fn first_remote(&self) -> Result<&Ipv4Addr> {
        self.remote.first().context("no --remote")
    }
}
