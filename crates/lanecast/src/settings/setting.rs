//! A single setting of the table.

use crate::config::Config;

/// One setting: its name, its values, and how it reads from and writes to a [`Config`].
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name: `section.key` in a file, `LANECAST_SECTION__KEY` in the environment.
    pub key: &'static str,
    /// The accepted values, for people.
    pub values: &'static str,
    /// The effect.
    pub about: &'static str,
    pub(crate) set: fn(&mut Config, &str) -> Result<(), String>,
    pub(crate) get: fn(&Config) -> String,
}

impl Setting {
    /// The value in `config`, in the form of a configuration file.
    pub fn value(&self, config: &Config) -> String {
        (self.get)(config)
    }

    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("LANECAST_{}", self.key.to_uppercase().replace('.', "__"))
    }
}
