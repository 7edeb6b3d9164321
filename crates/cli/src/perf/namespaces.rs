//! Network namespaces of one machine, joined by a bridge, or two of them by one cable.
//!
//! The command that measures makes them and owns them; their processes are its children.

use crate::life_lock::hold;
use crate::output::print_error;
use anyhow::{Context, bail, ensure};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names are `lcg<process>x<number>x<random number>`: processes that share the directory may have
/// the same number, each in a PID namespace of its own.
const PREFIX: &str = "lcg";
const NAMES: &str = "/run/netns";
/// The interface of each namespace.
pub(super) const INTERFACE: &str = "eth0";

/// Namespaces, and what joins them; removed when dropped.
#[derive(Debug)]
pub(super) struct Network {
    /// The bridge's namespace if there is one, and then one for each member.
    names: Vec<String>,
    /// These namespaces, with a lock on each: a later run sees by it whether their maker has ended.
    locks: Vec<File>,
    /// Index of the first member's.
    first: usize,
}

impl Network {
    /// Makes a namespace for each of `members`, with packets of `mtu` bytes.
    ///
    /// # Errors
    /// If the user is not root, or `ip` is missing or refuses.
    pub(super) fn build(members: usize, mtu: u32) -> anyhow::Result<Self> {
        let network = Self::unjoined(members + 1, 1)?;
        let bridge = &network.names[0];
        // It hands every group to every port: a bridge that listens to memberships needs a querier.
        ip(
            &["-n", bridge],
            "link add bridge0 type bridge mcast_snooping 0\nlink set bridge0 up\n",
        )?;
        let (mut cables, mut ports) = (String::new(), String::new());
        for (index, name) in network.names.iter().enumerate().skip(1) {
            let cable =
                format!("link add port{index} netns {bridge} type veth peer name {INTERFACE}");
            writeln!(cables, "{cable} netns {name}")?;
            writeln!(ports, "link set port{index} mtu {mtu}")?;
            writeln!(ports, "link set port{index} master bridge0 up")?;
        }
        ip(&[], &cables)?;
        ip(&["-n", bridge], &ports)?;
        network.configure(mtu)?;
        Ok(network)
    }

    /// Makes two namespaces with a cable (veth) between them, for packets of `mtu` bytes.
    ///
    /// # Errors
    /// Same as [`build`](Self::build).
    pub(super) fn pair(mtu: u32) -> anyhow::Result<Self> {
        let network = Self::unjoined(2, 0)?;
        let [one, other] = [&network.names[0], &network.names[1]];
        let peer = format!("peer name {INTERFACE} netns {other}");
        ip(&[], &format!("link add {INTERFACE} netns {one} type veth {peer}\n"))?;
        network.configure(mtu)?;
        Ok(network)
    }

    fn unjoined(namespaces: usize, first: usize) -> anyhow::Result<Self> {
        ensure!(
            lanecast_os::process::own_user() == 0,
            "network namespaces need root: run the command by sudo"
        );
        clear_stale();
        let mut network = Self { names: Vec::new(), locks: Vec::new(), first };
        for number in 0..namespaces {
            let (name, lock) = made(number)?;
            network.names.push(name);
            network.locks.push(lock);
        }
        Ok(network)
    }

    fn configure(&self, mtu: u32) -> anyhow::Result<()> {
        for (member, name) in self.names[self.first..].iter().enumerate() {
            let address = address(member);
            let script = format!(
                "link set lo up\nlink set {INTERFACE} mtu {mtu} up\n\
                 addr add {address}/24 dev {INTERFACE}\nroute add 224.0.0.0/4 dev {INTERFACE}\n"
            );
            ip(&["-n", name], &script)?;
        }
        Ok(())
    }

    /// The words before a command that runs it at a member.
    pub(super) fn enter(&self, member: usize) -> Vec<String> {
        ["ip", "netns", "exec", self.name(member)].map(str::to_owned).to_vec()
    }

    fn name(&self, member: usize) -> &str {
        &self.names[self.first + member]
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            if let Err(error) = ip(&[], &format!("netns delete {name}\n")) {
                print_error(&format!("lanecast: {name} is left behind: {error:#}"));
            }
        }
    }
}

/// The address of a member, from 0.
pub(super) fn address(member: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, member as u8 + 1)
}

/// Makes a namespace, and locks it.
fn made(number: usize) -> anyhow::Result<(String, File)> {
    loop {
        let (process, random) = (std::process::id(), lanecast_os::process::random()?);
        let name = format!("{PREFIX}{process}x{number}x{random:016x}");
        ip(&[], &format!("netns add {name}\n"))?;
        // Another process may take it for stale until it is locked, and remove it.
        if let Some(lock) = hold(&Path::new(NAMES).join(&name))? {
            return Ok((name, lock));
        }
    }
}

/// Removes the namespaces of processes that have ended without doing so.
fn clear_stale() {
    // The directory comes with the first namespace.
    let Ok(names) = std::fs::read_dir(NAMES) else { return };
    let Ok(directory) = std::fs::metadata(NAMES) else { return };
    for name in names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        if !is_ours(&name) {
            continue;
        }
        let namespace = File::open(Path::new(NAMES).join(&name));
        // One that is being made is still a file of the directory's own. The lock keeps its maker
        // from it until it is gone.
        let is_made = |it: &File| it.metadata().is_ok_and(|it| it.dev() != directory.dev());
        let is_stale = namespace.as_ref().is_ok_and(|it| is_made(it) && it.try_lock().is_ok());
        if is_stale && ip(&[], &format!("netns delete {name}\n")).is_ok() {
            print_error(&format!("removed {name}, which a killed run had left"));
        }
    }
}

/// Whether this program made the namespace. Earlier versions, whose names end with the number, held
/// no lock.
fn is_ours(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).map(|rest| rest.split('x').collect::<Vec<_>>());
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let is_random = |text: &str| text.len() == 16 && u64::from_str_radix(text, 16).is_ok();
    matches!(parts.as_deref(), Some([process, number, random])
        if is_number(process) && is_number(number) && is_random(random))
}

/// Runs lines of `ip` commands.
fn ip(options: &[&str], script: &str) -> anyhow::Result<()> {
    let mut child = Command::new("ip")
        .args(options)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run ip: install iproute2")?;
    // A program that ends early closes its input, and tells why in its own words.
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(script.as_bytes());
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("ip: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_names_are_known() {
        assert!(is_ours("lcg4194304x12x00000000000000ff"));
        for name in ["lcg12", "lcg1x1", "lcgx1x00000000000000ff", "lcg1x1xff", "lcg1x1x", "my"] {
            assert!(!is_ours(name), "{name}");
        }
        assert_eq!(address(3), Ipv4Addr::new(10, 77, 0, 4));
    }
}
