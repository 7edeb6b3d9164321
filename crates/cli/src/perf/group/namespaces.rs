//! Network namespaces for the members of one machine, joined by a bridge.

use crate::output::print_error;
use anyhow::{Context, bail, ensure};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names are `lcg<process>x<number>`, so that a later run can see that their maker has ended.
const PREFIX: &str = "lcg";
const NAMES: &str = "/run/netns";
/// The interface of each namespace.
pub(super) const INTERFACE: &str = "eth0";

/// Namespaces and the bridge between them; removed when dropped.
#[derive(Debug)]
pub(super) struct Network {
    /// The bridge's namespace, and then one for each member.
    names: Vec<String>,
}

impl Network {
    /// Makes a namespace for each of `members`, with packets of `mtu` bytes.
    ///
    /// # Errors
    /// If the user is not root, or `ip` is missing or refuses.
    pub(super) fn build(members: usize, mtu: u32) -> anyhow::Result<Self> {
        ensure!(
            lanecast_os::process::own_user() == 0,
            "--namespaces needs root: network namespaces cannot be made otherwise"
        );
        clear_stale();
        let mut network = Self { names: Vec::new() };
        for number in 0..=members {
            let name = format!("{PREFIX}{}x{number}", std::process::id());
            ip(&[], &format!("netns add {name}\n"))?;
            network.names.push(name);
        }
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
        for (index, name) in network.names.iter().enumerate().skip(1) {
            let address = address(index - 1);
            let script = format!(
                "link set lo up\nlink set {INTERFACE} mtu {mtu} up\n\
                 addr add {address}/24 dev {INTERFACE}\nroute add 224.0.0.0/4 dev {INTERFACE}\n"
            );
            ip(&["-n", name], &script)?;
        }
        Ok(network)
    }

    /// The words before a command that runs it at a member.
    pub(super) fn enter(&self, member: usize) -> Vec<String> {
        ["ip", "netns", "exec", &self.names[member + 1]].map(str::to_owned).to_vec()
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

/// Removes the namespaces of processes that have ended without doing so.
fn clear_stale() {
    // The directory comes with the first namespace.
    let Ok(names) = std::fs::read_dir(NAMES) else { return };
    for name in names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        let is_stale = maker(&name)
            .is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists());
        // Another process may clear it at the same time.
        if is_stale && ip(&[], &format!("netns delete {name}\n")).is_ok() {
            print_error(&format!("removed {name}, which a killed run had left"));
        }
    }
}

/// The process that made a namespace of this program.
fn maker(name: &str) -> Option<u32> {
    let (process, number) = name.strip_prefix(PREFIX)?.split_once('x')?;
    number.parse::<u32>().ok()?;
    process.parse().ok()
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
    fn only_our_names_have_a_maker() {
        assert_eq!(maker("lcg4194304x12"), Some(4_194_304));
        for name in ["lcg12", "lcgx1", "lcg1x", "lc1x1", "xlcg1x1", "lcg-1x1"] {
            assert_eq!(maker(name), None, "{name}");
        }
        assert_eq!(address(3), Ipv4Addr::new(10, 77, 0, 4));
    }
}
