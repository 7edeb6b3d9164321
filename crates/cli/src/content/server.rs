//! The server's address and the user, and the connection made from them.

use super::kind::KindArgs;
use crate::filter::filter_text;
use crate::output::warn;
use crate::usage::refuse;
use anyhow::{Context as _, anyhow};
use clap::builder::NonEmptyStringValueParser;
use lanecast::Context;
use lanecast_client::{Client, ClientError, Identity, ServerAddress, Settings, Tls};
use std::fs::File;
use std::io::ErrorKind::ConnectionRefused;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::str::FromStr;

/// Longest first line of a password file.
const PASSWORD_LINE_MAX: u64 = 1 << 16;

/// Connects a client; the error of a refused connection says how to start a server.
pub(crate) fn connect(settings: Settings) -> anyhow::Result<Client> {
    Client::connect_with(settings).map_err(|error| match &error {
        ClientError::Connect { error: cause, .. } if cause.kind() == ConnectionRefused => {
            anyhow!("{error}: start a server by `lanecast serve`, or name one with --server")
        }
        _ => error.into(),
    })
}

/// The default address of a server, and the variable that names another one.
const DEFAULT: &str = "127.0.0.1:9007";
const VARIABLE: &str = "LANECAST_SERVER";

/// A topic of a content server, and a filter of its records.
#[derive(Debug, clap::Args)]
pub(super) struct RecordsArgs {
    /// The topic
    #[arg(value_name = "TOPIC", required_unless_present = "old_topic")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    topic: Option<String>,

    /// The topic, as the previous version took it
    #[arg(short = 't', long = "topic", value_name = "TOPIC", hide = true)]
    #[arg(conflicts_with = "topic")]
    old_topic: Option<String>,

    /// Only records that match, such as "/symbol = 'IBM' and /qty >= 5000"
    #[arg(short, long, value_name = "FILTER", value_parser = filter_text)]
    pub(super) filter: Option<String>,

    #[command(flatten)]
    pub(super) kind: KindArgs,
}

impl RecordsArgs {
    pub(super) fn topic(&self) -> &str {
        self.topic.as_ref().or(self.old_topic.as_ref()).map_or("", String::as_str)
    }

    /// Connects to the server that was named, or to the default one.
    pub(super) fn connect(&self, server: &ServerArgs) -> anyhow::Result<Client> {
        if self.old_topic.is_some() {
            warn_old_topic();
        }
        connect(server.settings(self.kind)?)
    }
}

/// Says that `-t` goes.
pub(crate) fn warn_old_topic() {
    warn("-t TOPIC is now the first argument; -t goes with the next version");
}

/// The content server, and the user.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Content server")]
pub(crate) struct ServerArgs {
    /// The content server [without a value: that of LANECAST_SERVER, of the configuration file
    /// (server = "HOST:PORT"), or 127.0.0.1:9007]; tcps://HOST:PORT is one that is only to be
    /// spoken to with --ca
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1)]
    #[arg(env = VARIABLE, value_parser = named_server)]
    server: Option<Option<NamedServer>>,

    /// The client's name; two connected clients cannot share one
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,

    /// User name; for the password see --password-file
    #[arg(long, value_name = "USER", default_value = "")]
    user: String,

    /// A file whose first line is the user's password [without it: that of LANECAST_PASSWORD]
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,

    /// Encrypt the connection, to a server whose certificate one of those in this file has issued
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// The certificate that is shown to a server that wants one
    #[arg(long, value_name = "FILE", requires_all = ["ca", "certificate_key"])]
    certificate: Option<PathBuf>,

    /// The certificate's key, which only the file's owner can read
    #[arg(long, value_name = "FILE", requires = "certificate")]
    certificate_key: Option<PathBuf>,
}

/// The value of `--server`, or of its variable.
#[derive(Clone, Debug)]
enum NamedServer {
    /// As if there were neither.
    None,
    At(ServerAddress),
}

/// The value of `--server`, which a message behind the option is taken for.
fn named_server(text: &str) -> Result<NamedServer, String> {
    if is_none(text) {
        return Ok(NamedServer::None);
    }
    let address = ServerAddress::from_str(text).map_err(|error| {
        format!("{error}; without a value --server stands last, behind the topic and messages")
    });
    address.map(NamedServer::At)
}

/// Whether it names no server, in a variable as in the setting.
fn is_none(text: &str) -> bool {
    text.is_empty() || text == "none"
}

impl ServerArgs {
    /// Whether a server was named.
    pub(crate) const fn is_named(&self) -> bool {
        matches!(self.server, Some(None | Some(NamedServer::At(_))))
    }

    /// Names the default server, unless another was named.
    pub(crate) fn name_default(&mut self) {
        if !self.is_named() {
            self.server = Some(None);
        }
    }

    /// The server that was named: by the option, else by the variable, else by the configuration
    /// file.
    fn address(&self) -> anyhow::Result<ServerAddress> {
        if let Some(Some(NamedServer::At(server))) = &self.server {
            return Ok(server.clone());
        }
        if let Ok(text) = std::env::var(VARIABLE)
            && !is_none(&text)
        {
            return text.parse().with_context(|| VARIABLE);
        }
        let config = Context::builder().config()?;
        let text = config.server.as_deref().unwrap_or(DEFAULT);
        text.parse().with_context(|| format!("the setting server = {text:?}"))
    }

    /// The first given option, other than the server, that makes sense with a server only.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        given([
            (!self.name.is_empty(), "--name"),
            (!self.user.is_empty(), "--user"),
            (self.ca.is_some(), "--ca"),
        ])
    }

    pub(crate) fn settings(&self, kind: KindArgs) -> anyhow::Result<Settings> {
        let server = self.address()?;
        let identity = Identity {
            name: self.name.clone(),
            user: self.user.clone(),
            password: self.password()?,
            message_type: kind.kind.name().to_owned(),
        };
        let mut settings = Settings::once(&server.to_string(), identity);
        settings.tls = self.tls()?;
        if server.is_encrypted() && settings.tls.is_none() {
            refuse!("{} is encrypted: name its certificate authority with --ca FILE", server);
        }
        Ok(settings)
    }

    fn tls(&self) -> anyhow::Result<Option<Tls>> {
        let Some(ca) = &self.ca else { return Ok(None) };
        let tls = Tls::with_roots(ca).context("--ca")?;
        let (Some(certificate), Some(key)) = (&self.certificate, &self.certificate_key) else {
            return Ok(Some(tls));
        };
        Ok(Some(tls.certificate(certificate, key).context("--certificate, --certificate-key")?))
    }

    /// The password, from a file or the environment: other users can read a process's arguments.
    fn password(&self) -> anyhow::Result<String> {
        let Some(file) = &self.password_file else {
            let given = std::env::var("LANECAST_PASSWORD").unwrap_or_default();
            return Ok(if self.user.is_empty() { String::new() } else { given });
        };
        let mut line = Vec::new();
        let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        let read = BufReader::new(opened.take(PASSWORD_LINE_MAX)).read_until(b'\n', &mut line);
        read.with_context(|| format!("cannot read {}", file.display()))?;
        let line = String::from_utf8(line);
        let line =
            line.with_context(|| format!("the password in {} is no text", file.display()))?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

/// The first option that was given.
pub(crate) fn given<const N: usize>(options: [(bool, &'static str); N]) -> Option<&'static str> {
    options.into_iter().find(|option| option.0).map(|option| option.1)
}
