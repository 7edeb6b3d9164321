//! Creates a context from command-line arguments.

use crate::content::given;
use crate::output::warn;
use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lanecast::shm::Visibility;
use lanecast::{Builder, Context, Transports};
use std::io::ErrorKind;
use std::path::PathBuf;

/// The transports of a context, by their names.
const TRANSPORTS: [&str; 7] = ["shm", "rm", "ru", "tcp", "shm+rm", "shm+ru", "shm+tcp"];

/// Which domain to look at or take part in.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DomainArgs {
    /// Configuration file; can be repeated, a later one goes before an earlier one
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    /// The domain's directory: those with the same one find each other
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

impl DomainArgs {
    pub(crate) fn builder(&self) -> anyhow::Result<Builder> {
        let mut builder = self.config.iter().fold(Context::builder(), Builder::file);
        if let Some(directory) = &self.directory {
            let text = directory.to_str();
            let text = text.with_context(|| format!("{} is not UTF-8", directory.display()))?;
            builder = builder.set_from("--directory", "shm.directory", text)?;
        }
        Ok(builder)
    }

    /// A builder for tools that meet other programs, even if these keep to themselves.
    pub(crate) fn outward(&self) -> anyhow::Result<Builder> {
        Ok(self.builder()?.set("shm.visibility", "host")?)
    }

    /// The domain's directory, without opening anything.
    pub(crate) fn directory(&self) -> anyhow::Result<PathBuf> {
        Ok(self.builder()?.config()?.shm.directory)
    }
}

/// Which way messages are to travel, for commands that publish and subscribe.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Transports")]
pub(crate) struct WayArgs {
    /// shm (this host), rm, ru, tcp (other hosts), or both: shm+rm, shm+ru, shm+tcp
    #[arg(long, value_name = "TRANSPORTS", value_parser = transports())]
    #[arg(hide_possible_values = true)]
    transports: Option<Transports>,

    /// The network interface: an address, a network such as 10.0.0.0/8, or a name such as eth0
    #[arg(long, value_name = "INTERFACE")]
    interface: Option<String>,

    /// Way of the datagrams of rm and ru: sockets, or xdp (past the kernel's network stack)
    #[arg(long, value_name = "WAY", value_parser = ["sockets", "xdp"])]
    io: Option<String>,

    /// Any setting of `lanecast config --list`; can be repeated
    #[arg(long, value_name = "SETTING=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,

    #[command(flatten)]
    domain: DomainArgs,
}

impl WayArgs {
    pub(crate) fn builder(&self) -> anyhow::Result<Builder> {
        self.over(self.domain.builder()?)
    }

    /// The context of a tool that meets other programs.
    pub(crate) fn outward(&self) -> anyhow::Result<Context> {
        built(self.over(self.domain.outward()?)?)
    }

    /// The context of a tool that only looks, and leaves no directory behind where there was none.
    /// `None`, and words for the user, if there is nothing to look at: no program of this host is
    /// in a domain without a directory, and no others are reached.
    pub(crate) fn looking(&self) -> anyhow::Result<Option<Context>> {
        let builder = self.over(self.domain.outward()?)?;
        let config = builder.config()?;
        let directory = &config.shm.directory;
        // Anything else than a directory there is an error of opening it, which says what to do.
        let is_missing = std::fs::symlink_metadata(directory)
            .is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if !is_missing {
            return built(builder).map(Some);
        }
        let Some(kind) = config.transports.kind() else {
            let directory = directory.display();
            warn(&format!(
                "there is nothing: {directory} does not exist, so that no program of this host \
                 takes part; --directory names another domain, --transports reaches other hosts"
            ));
            return Ok(None);
        };
        // The network alone, whose counters would make the directory.
        let builder = builder.transports(Transports::net(kind));
        built(builder.shm(|shm| shm.visibility = Visibility::Process)).map(Some)
    }

    /// The first option that was given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        given([
            (self.transports.is_some(), "--transports"),
            (self.interface.is_some(), "--interface"),
            (self.io.is_some(), "--io"),
            (!self.set.is_empty(), "--set"),
            (!self.domain.config.is_empty(), "--config"),
            (self.domain.directory.is_some(), "--directory"),
        ])
    }

    fn over(&self, mut builder: Builder) -> anyhow::Result<Builder> {
        for (key, value) in &self.set {
            builder = builder.set_from("--set", key, value)?;
        }
        if let Some(transports) = self.transports {
            builder = builder.set_from("--transports", "transports", transports)?;
        }
        if let Some(interface) = &self.interface {
            builder = builder.set_from("--interface", "net.interface", interface)?;
        }
        if let Some(io) = &self.io {
            builder = builder.set_from("--io", "net.io", io)?;
        }
        Ok(builder)
    }
}

/// Reads transports by their names, which shells complete.
fn transports() -> impl TypedValueParser<Value = Transports> {
    PossibleValuesParser::new(TRANSPORTS).try_map(|name| name.parse::<Transports>())
}

/// Reads the name of a setting and its value.
fn assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').ok_or("write a setting, '=' and a value, as in net.hops=2")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Opens the context, and says if its datagrams go another way than they should.
fn built(builder: Builder) -> anyhow::Result<Context> {
    let context = builder.build()?;
    warn_of_fallback(context.io_fallback());
    Ok(context)
}

/// Says that datagrams go by sockets although they should pass the kernel's stack by, and why.
pub(crate) fn warn_of_fallback(reason: Option<&str>) {
    if let Some(reason) = reason {
        warn(&format!("net.io = xdp: datagrams go by sockets, because {reason}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast::net::TransportKind;

    #[test]
    fn every_choice_of_transports_has_its_name() {
        let kinds = TransportKind::ALL;
        let all = kinds.map(Transports::net).into_iter().chain(kinds.map(Transports::both));
        let mut names: Vec<_> =
            std::iter::once(Transports::SHM).chain(all).map(Transports::name).collect();
        let mut known = TRANSPORTS;
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
    }
}
