//! Options of messages that stores keep (`-p`).

use crate::usage::refuse;
use lanecast_measure::parse_number;
use lanecast_measure::persistent::PersistMode;
use std::str::FromStr;
use std::time::Duration;

/// Stable id of the program that sends, as in the document's tools.
pub(super) const SENDER: u64 = 6;
/// Stable id of the program that receives, or sends back.
pub(super) const RECEIVER: u64 = 7;

/// Arguments about stores.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PersistenceArgs {
    /// Persistence: '' for none (streaming), s source-paced (SPP), r receiver-paced (RPP). Stores
    /// have to run: lanecast store
    #[arg(short = 'p', long, value_name = "MODE", default_value = "", hide_default_value = true)]
    persistence: Mode,

    /// With -p: the stores, with commas between; a message counts when most of them have it on
    /// disk [default: those of persistence.stores]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    stores: Vec<String>,

    /// With -p: the stores of one topic, in place of those; may be repeated [default: those of
    /// persistence.topic_stores]
    #[arg(long, value_name = "TOPIC=NAMES")]
    topic_stores: Vec<String>,

    /// With -p: longest time without an answer of the stores, or any progress
    #[arg(long, value_name = "MS", default_value = "10000", value_parser = parse_number::<u64>)]
    store_patience_ms: u64,
}

/// The values of `-p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mode(Option<PersistMode>);

impl FromStr for Mode {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self(None)),
            "s" => Ok(Self(Some(PersistMode::Source))),
            "r" => Ok(Self(Some(PersistMode::Receiver))),
            _ => Err(format!("'{text}': write '' for streaming, s source-paced, r receiver-paced")),
        }
    }
}

impl PersistenceArgs {
    /// The letter of `-p`.
    pub(super) fn letter(&self) -> &'static str {
        self.persistence.0.map_or("", PersistMode::name)
    }

    /// Name of the application in a configuration file of Ultra Messaging.
    pub(super) const fn application(&self) -> &'static str {
        application(self.persistence.0)
    }

    /// Persistence under the stable id `id`, if it was asked for.
    ///
    /// # Errors
    /// Stores without `-p`.
    pub(super) fn request(&self, id: u64) -> anyhow::Result<Option<PersistenceRequest>> {
        let Some(mode) = self.persistence.0 else {
            let given = [(&self.stores, "--stores"), (&self.topic_stores, "--topic-stores")];
            if let Some((_, option)) = given.iter().find(|(names, _)| !names.is_empty()) {
                refuse!("{option} is for -p s or -p r: streaming messages are not kept");
            }
            return Ok(None);
        };
        let patience = Duration::from_millis(self.store_patience_ms);
        let (stores, topic_stores) = (self.stores.clone(), self.topic_stores.clone());
        let request = PersistenceRequest {
            mode,
            id,
            resumes: false,
            is_non_blocking: false,
            stores,
            topic_stores,
            patience,
        };
        Ok(Some(request))
    }
}

/// Name of the application of a mode, or of streaming, in a file of Ultra Messaging.
pub(super) const fn application(mode: Option<PersistMode>) -> &'static str {
    match mode {
        None => "um_perf",
        Some(PersistMode::Source) => "um_perf_spp",
        Some(PersistMode::Receiver) => "um_perf_rpp",
    }
}

/// Persistence that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct PersistenceRequest {
    pub(super) mode: PersistMode,
    pub(super) id: u64,
    /// Subscribers go on where one that was killed had come to.
    pub(super) resumes: bool,
    /// Subscribers do not hold the publisher back.
    pub(super) is_non_blocking: bool,
    /// Stores of the command line, in place of those of the configuration.
    pub(super) stores: Vec<String>,
    /// The same of single topics, each as `TOPIC=NAMES`.
    pub(super) topic_stores: Vec<String>,
    pub(super) patience: Duration,
}

impl PersistenceRequest {
    /// Makes the subscribers hold no publisher back, if that was asked for.
    ///
    /// # Errors
    /// Without a receiver-paced publisher there is nothing to hold back.
    pub(super) fn set_non_blocking(
        request: Option<&mut Self>,
        is_asked: bool,
    ) -> anyhow::Result<()> {
        match request.filter(|it| it.mode == PersistMode::Receiver) {
            _ if !is_asked => {}
            Some(request) => request.is_non_blocking = true,
            None => refuse!(
                "--non-blocking is for -p r: streaming and source-paced publishers do not wait for \
                 what subscribers have consumed"
            ),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_the_documented_letters() {
        let letters = ["", "s", "r"].map(|text| text.parse::<Mode>().map(|mode| mode.0));
        let modes = [None, Some(PersistMode::Source), Some(PersistMode::Receiver)];
        assert_eq!(letters, modes.map(Ok));
        assert!("q".parse::<Mode>().unwrap_err().contains("s source-paced"));
    }

    #[test]
    fn each_mode_has_its_application_and_only_persistence_has_stores() {
        let arguments = |text: &str, stores: &[&str]| PersistenceArgs {
            persistence: text.parse().unwrap(),
            stores: stores.iter().map(|it| (*it).to_owned()).collect(),
            topic_stores: Vec::new(),
            store_patience_ms: 1,
        };
        let application = |text| arguments(text, &[]).application();
        assert_eq!(["", "s", "r"].map(application), ["um_perf", "um_perf_spp", "um_perf_rpp"]);
        assert!(arguments("", &[]).request(6).unwrap().is_none());
        let error = arguments("", &["a"]).request(6).unwrap_err().to_string();
        assert!(error.contains("-p s"), "{error}");
        assert_eq!(arguments("r", &["a", "b"]).request(6).unwrap().unwrap().stores, ["a", "b"]);
    }
}
