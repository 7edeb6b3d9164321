//! `lanecast config`.

use crate::context::WayArgs;
use crate::output::print;
use lanecast::SETTINGS;
use std::process::ExitCode;

/// Arguments of `config`.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Print a table of all settings instead: name, variable, what may be written
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    way: WayArgs,
}

/// Checks the configuration on the way: a wrong file or variable is an error with its place.
pub(crate) fn run(arguments: &ConfigArgs) -> anyhow::Result<ExitCode> {
    let config = arguments.way.builder()?.config()?;
    if arguments.list {
        let mut table =
            lanecast_report::TextTable::new(&["setting", "variable", "value", "may be"]);
        for setting in SETTINGS {
            let (value, variable) = (setting.value(&config), setting.variable());
            table.row([setting.key, &variable, &value, setting.values]);
        }
        print(&crate::table::render(&table))?;
    } else {
        print(&lanecast::to_toml(&config))?;
    }
    Ok(ExitCode::SUCCESS)
}
