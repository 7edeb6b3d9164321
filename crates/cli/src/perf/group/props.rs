//! `-props`: the configuration of the transport, from a file or an address.

use crate::usage::refuse;
use anyhow::Context as _;
use lanecast::Builder;
use std::io::ErrorKind;
use std::time::Duration;

/// Longest configuration that is read from an address, in bytes.
const LONGEST: u64 = 1 << 20;
/// Longest time for an answer, from the connection to the last byte.
const PATIENCE: Duration = Duration::from_secs(10);

/// Applies the configuration that `props` names.
pub(super) fn apply(builder: Builder, props: &str) -> anyhow::Result<Builder> {
    match props.split_once("://") {
        Some(("file", path)) => Ok(builder.file(path)),
        Some(("http", _)) => {
            let text = fetch(props).with_context(|| format!("cannot read props from {props}"))?;
            Ok(builder.text(props, text))
        }
        // One letter is a drive.
        Some((scheme, _)) if scheme.len() > 1 => {
            refuse!("props: {scheme}:// is not read: give a file, or a file:// or http:// address")
        }
        _ => Ok(builder.file(props)),
    }
}

/// The text at an `http://` address. It is reached directly, without the proxies of the
/// environment: all members shall read the same.
fn fetch(address: &str) -> anyhow::Result<String> {
    let config = ureq::Agent::config_builder();
    let agent = config.timeout_global(Some(PATIENCE)).proxy(None).build().new_agent();
    let mut answer = agent.get(address).call()?;
    let text = answer.body_mut().with_config().limit(LONGEST).read_to_string();
    text.map_err(|error| match error {
        ureq::Error::BodyExceedsLimit(_) => anyhow::anyhow!("it is longer than 1 MiB"),
        ureq::Error::Io(error) if error.kind() == ErrorKind::InvalidData => {
            anyhow::anyhow!("it is no UTF-8 text")
        }
        error => error.into(),
    })
}
