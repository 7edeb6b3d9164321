//! `lanecast resolve`: the daemon at which programs find each other where there is no multicast.

mod tally;

use crate::context::DomainArgs;
use crate::descriptors;
use crate::output::{print_error, print_line};
use crate::stop;
use crate::table::counted;
use crate::usage::refuse;
use anyhow::Context;
use lanecast::parse_duration;
use lanecast_base::Agent;
use lanecast_net::{DaemonSettings, RESOLVER_PORT, ResolverDaemon};
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tally::Tally;

/// At most so often a refused client is told of.
const COMPLAIN_EVERY: Duration = Duration::from_secs(1);

/// Arguments of `resolve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Programs find the daemon by their setting net.resolvers, which may name \
    several: any one is enough, and all may be started anew at any time. The daemon keeps \
    nothing; what it knows, its clients tell it again.\n\
    With the settings net.tls_certificate and net.tls_key (-c FILE, or LANECAST_NET__TLS_KEY) \
    connections are encrypted, with net.tls_authorities clients have to show a certificate.\n\
    Counters: lanecast stat. Exit status: 0 ended by a signal, 1 error, 2 wrong arguments.")]
pub(crate) struct ResolveArgs {
    /// Address to listen on: one of this host, and a port if it is not 7331
    #[arg(long, value_name = "ADDRESS[:PORT]", default_value = "127.0.0.1")]
    #[arg(value_parser = parse_address)]
    listen: SocketAddr,

    /// Listen to other hosts as well; clients are authenticated with net.tls_authorities only
    #[arg(long)]
    allow_remote: bool,

    /// The most clients
    #[arg(long, value_name = "COUNT", default_value_t = 512)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=16_384))]
    clients_max: u32,

    /// The most topics that a client may publish, and the most that it may want
    #[arg(long, value_name = "COUNT", default_value_t = 65_536)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    client_topics_max: u32,

    /// The most topics that may be published and wanted by all of them
    #[arg(long, value_name = "COUNT", default_value_t = 524_288)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    topics_max: u32,

    /// Time for which the publishers of a lost connection are kept
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    grace: Duration,

    #[command(flatten)]
    domain: DomainArgs,
}

impl ResolveArgs {
    fn settings(&self) -> anyhow::Result<DaemonSettings> {
        let at = self.listen;
        if !self.allow_remote && !at.ip().is_loopback() {
            refuse!(
                "--listen: {at} is reached from other hosts, and any that reaches it may register \
                 and ask: add --allow-remote if all of them are trusted"
            );
        }
        if at.ip().is_multicast() {
            refuse!("--listen: {at} is a multicast address: take one of this host");
        }
        Ok(DaemonSettings {
            clients_max: self.clients_max as usize,
            client_topics_max: self.client_topics_max as usize,
            topics_max: self.topics_max as usize,
            grace: self.grace,
            tls: self.domain.builder()?.config()?.net.tls,
            ..DaemonSettings::at(at)
        })
    }
}

/// An address without a port has the daemon's own.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse().or_else(|_| {
        let ip = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        ip.map(|ip| SocketAddr::new(ip, RESOLVER_PORT))
    });
    let examples = "127.0.0.1, 10.0.0.1:7331 or [::1]:7331";
    address.map_err(|_| format!("no address of a host: write it as in {examples}"))
}

pub(crate) fn run(arguments: &ResolveArgs) -> anyhow::Result<ExitCode> {
    let settings = arguments.settings()?;
    descriptors::reserve(settings.clients_max)?;
    let stop = stop::flag()?;
    let mut daemon = ResolverDaemon::open(&settings)?;
    let mut tally = Tally::open(&arguments.domain)?;
    let at = daemon.address().context("cannot look at a socket")?;
    print_line(&format!("resolver listening on {at}"))?;
    let mut complaints = Complaints::default();
    while !stop() {
        if daemon.do_work() == 0 {
            daemon.idle();
        }
        complaints.hear(&mut daemon, &tally);
        tally.show(&daemon);
    }
    let counters = daemon.counters();
    print_error(&format!(
        "resolver ended: {}, {} registered, {} told",
        counted(counters.connected, "client"),
        counted(counters.registered, "topic"),
        counted(counters.sent, "fact")
    ));
    Ok(ExitCode::SUCCESS)
}

/// Log of refused clients, limited to a line per second.
#[derive(Debug, Default)]
struct Complaints {
    last: Option<Instant>,
    unsaid: u64,
}

impl Complaints {
    fn hear(&mut self, daemon: &mut ResolverDaemon, tally: &Tally) {
        while let Some((from, why)) = daemon.next_rejection() {
            tally.error(&why);
            if self.last.is_some_and(|last| last.elapsed() < COMPLAIN_EVERY) {
                self.unsaid += 1;
                continue;
            }
            let others = match std::mem::take(&mut self.unsaid) {
                0 => String::new(),
                count => format!(" (and {count} others before)"),
            };
            self.last = Some(Instant::now());
            print_error(&format!("client {from} is sent away: {why}{others}"));
        }
        while let Some(error) = daemon.next_file_error() {
            tally.error(&error);
            print_error(&format!("the old certificates stay in use: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_port_if_none_is_given() {
        let read = |text| parse_address(text).map(|it: SocketAddr| it.to_string());
        assert_eq!(read("127.0.0.1").as_deref(), Ok("127.0.0.1:7331"));
        assert_eq!(read("10.1.2.3:0").as_deref(), Ok("10.1.2.3:0"));
        for text in ["::1", "[::1]", "[::1]:7331"] {
            assert_eq!(read(text).as_deref(), Ok("[::1]:7331"), "{text}");
        }
        for text in ["", "host", "1.2.3.4:x", "1.2.3.4:70000", ":7331", "7331"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
