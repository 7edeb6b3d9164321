//! Peers between hosts: each is a case of a program that plays one end, in a namespace.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use super::{READY_LIMIT, Repetition, Side, Standing};
use crate::cell::Cell;
use crate::hosts::Hosts;
use crate::measurement::Measurement;
use crate::options::Peer;
use crate::process::{Program, Running};
use crate::row::Row;
use crate::scratch::Domain;

/// Peer to which lanecast's own cases belong.
const OWN: &str = "lanecast";
/// Version of a part of the kernel.
const NO_VERSION: &str = "-";
/// Ports of one repetition, far from those that the kernel gives to connections.
const PORTS: u16 = 4;
const FIRST_PORT: u16 = 20_000;
const LAST_PORT: u16 = 30_000;

/// A program whose cases are peers.
#[derive(Debug)]
pub struct Ends {
    /// File of the program, below the folder of built programs.
    pub name: &'static str,
    /// Server that its peers need on the first host.
    pub server: Option<PathBuf>,
}

/// One case.
#[derive(Debug)]
pub struct End {
    name: String,
    version: String,
    program: (&'static str, PathBuf),
    server: Option<PathBuf>,
    standing: Standing,
    /// Whether the library has threads of its own, for which the measured ones must make room.
    yields: bool,
    peer: String,
    rows: Vec<Row>,
    hosts: Rc<Hosts>,
}

impl Ends {
    /// The cases of the program that belong to a peer of the command line; without one, lanecast's
    /// own.
    ///
    /// # Errors
    ///
    /// When it has not been built or does not run.
    pub fn of(&self, peer: Option<Peer>, folder: &Path, hosts: &Rc<Hosts>) -> Result<Vec<End>> {
        let wanted = peer.map_or_else(|| OWN.to_owned(), Peer::name);
        let mut all = self.all(folder, hosts)?;
        all.retain(|end| end.peer == wanted);
        Ok(all)
    }

    fn all(&self, folder: &Path, hosts: &Rc<Hosts>) -> Result<Vec<End>> {
        let path = folder.join(self.name);
        ensure!(path.is_file(), "not built: no {}", self.name);
        if let Some(server) = &self.server {
            ensure!(server.is_file(), "not built: no {}", server.display());
        }
        let output = Command::new(&path).arg("list").output()?;
        ensure!(output.status.success(), "{} does not run", self.name);
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().map(|line| self.read(line, &path, hosts)).collect()
    }

    /// Reads a line of the list: peer, side, version, family, floor or peer, spin or yield, rows.
    fn read(&self, line: &str, path: &Path, hosts: &Rc<Hosts>) -> Result<End> {
        let mut words = line.split_whitespace();
        let mut word = || words.next().with_context(|| format!("{} lists \"{line}\"", self.name));
        let (peer, name, version) = (word()?, word()?, word()?);
        let (family, standing, wait) = (word()?, word()?, word()?);
        let rows = words.map(|row| {
            Row::from_str(row, false).map_err(|error| anyhow::anyhow!("{}: {error}", self.name))
        });
        Ok(End {
            name: name.to_owned(),
            version: version.to_owned(),
            program: (self.name, path.to_owned()),
            server: self.server.clone(),
            standing: Standing {
                own: peer == OWN,
                floor: standing == "floor",
                family: family.to_owned(),
            },
            yields: wait == "yield",
            peer: peer.to_owned(),
            rows: rows.collect::<Result<_>>()?,
            hosts: Rc::clone(hosts),
        })
    }
}

impl Side for End {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> String {
        if self.version == NO_VERSION { String::new() } else { self.version.clone() }
    }

    fn standing(&self) -> Standing {
        self.standing.clone()
    }

    fn takes(&self, cell: &Cell) -> bool {
        self.rows.contains(&cell.row)
    }

    /// Low: a first repetition that was too short is repeated.
    fn likely_rate(&self, cell: &Cell) -> f64 {
        let lossless = 200e6 / (cell.size + 376) as f64;
        if cell.loss > 0 { lossless / 20.0 } else { lossless }
    }

    fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
        let (domain, cell) = (Domain::new(), &repetition.cell);
        let (port, deadline) = (next_port(), repetition.deadline());
        let there = (1..=cell.subscribers).map(|host| self.hosts.address(cell, host));
        let there = there.collect::<Result<Vec<_>>>()?;
        let there = there.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        self.hosts.lose(cell)?;
        let _server = self.start_server(cell, port)?;
        let here = self.hosts.address(cell, 0)?.to_string();
        let (waiting, beginning) = roles(cell);
        let mut others = Vec::new();
        for host in 1..=cell.subscribers {
            let end = self.end(repetition, &domain, host, waiting, port)?;
            others.push(end.args(["--remote", &here]).start()?);
        }
        others.iter_mut().try_for_each(|other| other.wait_ready(READY_LIMIT))?;
        let first = self.end(repetition, &domain, 0, beginning, port)?;
        let mut first = first.args(["--remote", &there]).start()?;
        let printed = if cell.row.is_round_trip() {
            vec![wait_for(&mut first, &mut others, deadline)?]
        } else {
            let mut printed = Vec::new();
            for other in &mut others {
                printed.push(wait_for(other, std::slice::from_mut(&mut first), deadline)?);
            }
            printed
        };
        others.into_iter().chain([first]).for_each(Running::stop);
        let each: Result<Vec<_>> =
            printed.iter().map(|text| Measurement::from_line(text)).collect();
        Measurement::joined(each?)
    }
}

impl End {
    fn end(
        &self,
        repetition: &Repetition,
        domain: &Domain,
        host: usize,
        role: &str,
        port: u16,
    ) -> Result<Program> {
        let (cell, cpus) = (&repetition.cell, repetition.cpus);
        let cpu = if host == 0 { cpus.publisher } else { cpus.subscriber };
        let crowded = host > 0 && cell.subscribers > 1;
        let wait = match cell.row {
            Row::BlockPingpong => "block",
            // Its threads have the CPU while there is nothing for this one.
            _ if self.yields && host > 0 => "block",
            _ if self.yields || crowded => "yield",
            _ => "spin",
        };
        let program = Program::new(self.program.0, &self.program.1)
            .args(["run", "--peer", &self.name, "--role", role, "--wait", wait])
            .args(repetition.load_arguments(domain, cpu))
            .args([repetition.warmup_argument(), format!("--port={port}")])
            .args([format!("--local={}", self.hosts.address(cell, host)?)]);
        Ok(program.on(self.hosts.namespace(cell, host)?))
    }

    /// Starts what stands between the ends; they wait until it listens.
    fn start_server(&self, cell: &Cell, port: u16) -> Result<Option<Running>> {
        let Some(path) = &self.server else { return Ok(None) };
        let address = self.hosts.address(cell, 0)?.to_string();
        let server = Program::new("the server", path)
            .args(["--addr", &address, "--port", &port.to_string()])
            .on(self.hosts.namespace(cell, 0)?);
        Ok(Some(server.start()?))
    }
}

/// Roles of the ends that wait, and of the one that begins.
fn roles(cell: &Cell) -> (&'static str, &'static str) {
    if cell.row.is_round_trip() { ("pong", "ping") } else { ("sub", "pub") }
}

/// Waits for one program while others go on, none of which may fail.
fn wait_for(one: &mut Running, others: &mut [Running], deadline: Instant) -> Result<String> {
    one.wait_while(deadline, || {
        for other in others.iter_mut() {
            if let Some(error) = other.failure() {
                bail!(error);
            }
        }
        Ok(())
    })
}

fn next_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Runs that follow each other must not meet connections that the kernel still remembers.
    let offset = (std::process::id() as u16).wrapping_mul(64);
    let number = NEXT.fetch_add(PORTS, Ordering::Relaxed).wrapping_add(offset);
    FIRST_PORT + (number % (LAST_PORT - FIRST_PORT)) / PORTS * PORTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_tells_who_takes_part_in_what() {
        let ends = Ends { name: "ends", server: None };
        let hosts = Rc::new(Hosts::new(&[], true).expect("loopback"));
        let read = |line| ends.read(line, Path::new("ends"), &hosts);
        let end = read("udp udp-gso - udp floor spin oneway loss-oneway").expect("a line");
        assert_eq!((end.name(), end.version()), ("udp-gso", String::new()));
        assert!(end.standing.floor && !end.standing.own && !end.yields);
        assert!(end.takes(&Cell::alone(Row::LossOneway)));
        assert!(!end.takes(&Cell::alone(Row::Fanout3)));
        let own = read("lanecast lanecast-tcp 0.1.0 tcp peer spin").expect("a line");
        assert!(own.standing.own && own.standing.family == "tcp");
        assert!(read("udp udp").is_err());
        assert!(read("udp udp - udp floor spin no-such-row").is_err());
    }

    #[test]
    fn ports_of_two_repetitions_do_not_meet() {
        let ports = [next_port(), next_port()];
        assert!(ports[0].abs_diff(ports[1]) >= PORTS);
        assert!(ports.iter().all(|port| (FIRST_PORT..LAST_PORT).contains(port)));
    }
}
