//! Becomes another program, in a session of its own whose group has been raised.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use rivals_kit::placement;

/// First words of the note that is written when the group could not be raised.
pub const REFUSED: &str = "not raised:";

/// The program to become.
#[derive(Args, Debug)]
pub struct Raise {
    /// Program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

impl Raise {
    /// Does not return unless the program cannot be started. A group that cannot be raised is
    /// told on stderr; the program runs all the same.
    ///
    /// # Errors
    ///
    /// When the program cannot be started.
    pub fn run(&self) -> Result<()> {
        placement::end_with_parent()?;
        if let Err(error) = placement::raise() {
            eprintln!("{REFUSED} {error}");
        }
        let (program, arguments) = self.command.split_first().context("no program given")?;
        let error: io::Error = Command::new(program).args(arguments).exec();
        Err(error).with_context(|| format!("cannot start {}", program.display()))
    }
}
