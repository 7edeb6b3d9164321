//! `lanecast journal repair`.

use super::arguments::JournalArgs;
use crate::output::{print, print_json};
use crate::printable::printable;
use crate::table::grouped;
use lanecast_journal::Repair;
use serde_json::json;
use std::process::ExitCode;

/// Arguments of `repair`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Without --yes it changes nothing. What is cut off is gone: copy the \
    directory before.\nExit status: 0 nothing to do, or done; 1 there is something to do, or an \
    error.")]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    journal: JournalArgs,

    /// Do it
    #[arg(long)]
    yes: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &RepairArgs) -> anyhow::Result<ExitCode> {
    let directory = arguments.journal.directory();
    let repair = Repair::plan(&directory)?;
    let does_it = repair.is_needed() && arguments.yes;
    if does_it {
        repair.apply(&directory)?;
    }
    if arguments.json {
        let cut = repair.cut.map(|(segment, offset)| json!({"segment": segment, "offset": offset}));
        print_json(&json!({
            "is_needed": repair.is_needed(), "is_done": does_it,
            "damage": repair.damage.as_ref().map(ToString::to_string),
            "cut": cut, "removed": repair.removed, "lost_records": repair.lost_records,
            "damaged_headers": repair.damaged_headers, "wrong_lengths": repair.wrong_lengths,
        }))?;
    } else {
        print(&to_text(&repair, arguments.yes))?;
    }
    let is_left = repair.is_needed() && !does_it;
    Ok(ExitCode::from(u8::from(is_left)))
}

fn to_text(repair: &Repair, is_done: bool) -> String {
    if !repair.is_needed() {
        return "there is nothing to repair\n".into();
    }
    let (cut, removed, lost, written, given) = if is_done {
        ("was cut", "was removed", "lost", "was written again", "was given")
    } else {
        (
            "would be cut",
            "would be removed",
            "would lose",
            "would be written again",
            "would be given",
        )
    };
    let mut text = String::new();
    if let Some(damage) = &repair.damage {
        text += &format!("{}\n", printable(&damage.to_string()));
    }
    for segment in &repair.wrong_lengths {
        text += &format!("the file of segment {segment} {given} the length that its header says\n");
    }
    if let Some((segment, offset)) = repair.cut {
        text += &format!("segment {segment} {cut} at offset {offset}\n");
    }
    for segment in &repair.removed {
        text += &format!("segment {segment} {removed}\n");
    }
    if repair.damage.is_some() {
        text += &format!("that {lost} {} readable records\n", grouped(repair.lost_records));
    }
    for segment in &repair.damaged_headers {
        text += &format!("the damaged header of segment {segment} {written}\n");
    }
    if !is_done {
        text += "nothing was changed: copy the directory, then repeat this with --yes\n";
    }
    text
}
