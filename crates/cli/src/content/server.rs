//! The server's address and the user, and the connection made from them.

use super::kind::KindArgs;
use anyhow::{Context as _, anyhow, bail};
use lanecast_client::{Client, ClientError, Identity, ServerAddress, Settings, Tls};
use std::fs::File;
use std::io::ErrorKind::ConnectionRefused;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::str::FromStr;

/// Longest first line of a password file.
const PASSWORD_LINE_MAX: u64 = 1 << 16;

/// Connects a client; the error of a refused connection says how to start a server.
pub(super) fn connect(settings: Settings) -> anyhow::Result<Client> {
    Client::connect_with(settings).map_err(|error| match &error {
        ClientError::Connect { error: cause, .. } if cause.kind() == ConnectionRefused => {
            anyhow!("{error}: start a server by `lanecast serve`, or name one with --server")
        }
        _ => error.into(),
    })
}

/// The server, and who asks it.
#[derive(Debug, clap::Args)]
pub(super) struct ServerArgs {
    /// The server; as tcps://HOST:PORT one that is only to be spoken to with --ca
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9007")]
    #[arg(env = "LANECAST_SERVER", value_parser = ServerAddress::from_str)]
    pub(super) server: ServerAddress,

    /// The topic
    #[arg(short, long, value_name = "NAME")]
    pub(super) topic: String,

    #[command(flatten)]
    pub(super) kind: KindArgs,

    /// The client's name; two connected clients cannot share one
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(super) name: String,

    /// User name; for the password see --password-file
    #[arg(long, value_name = "USER", default_value = "")]
    pub(super) user: String,

    /// A file whose first line is the user's password; without it, LANECAST_PASSWORD is
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

impl ServerArgs {
    pub(super) fn connect(&self) -> anyhow::Result<Client> {
        connect(self.settings()?)
    }

    pub(super) fn settings(&self) -> anyhow::Result<Settings> {
        let identity = Identity {
            name: self.name.clone(),
            user: self.user.clone(),
            password: self.password()?,
            message_type: self.kind.kind.name().to_owned(),
        };
        let mut settings = Settings::once(&self.server.to_string(), identity);
        settings.tls = self.tls()?;
        if self.server.is_encrypted() && settings.tls.is_none() {
            bail!("{} is encrypted: name its certificate authority with --ca FILE", self.server);
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
