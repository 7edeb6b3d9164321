//! `lanecast man`: the pages of the manual.

use anyhow::{Context as _, bail};
use clap::Command;
use clap_mangen::Man;
use std::fs;
use std::path::Path;

/// The section with what a command's help says behind its options.
const NOTES: &str = ".SH EXTRA\n";

/// Writes a page for `command` and for each command below it into `directory`, which is made if it
/// does not exist.
pub(crate) fn write(command: Command, directory: &Path) -> anyhow::Result<()> {
    let at = || format!("cannot write into {}", directory.display());
    // The system would say that the file exists.
    if directory.exists() && !directory.is_dir() {
        bail!("{}: it is not a directory", at());
    }
    fs::create_dir_all(directory).with_context(at)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_all(&command, directory)
}

fn write_all(command: &Command, directory: &Path) -> anyhow::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write_all(inner, directory)?;
    }
    let page = Man::new(command.clone());
    let path = directory.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = with_lines(&String::from_utf8(text)?);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The page whose notes keep their lines: roff would run examples and exit status together.
fn with_lines(page: &str) -> String {
    let Some((before, notes)) = page.split_once(NOTES) else { return page.to_owned() };
    let end = notes.find("\n.SH ").map_or(notes.len(), |end| end + 1);
    let (notes, after) = notes.split_at(end);
    let lines: Vec<_> = notes.lines().collect();
    format!("{before}.SH NOTES\n{}\n{after}", lines.join("\n.br\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_keep_their_lines() {
        let directory = tempfile::tempdir().unwrap();
        let inner = Command::new("inner").after_help("First.\nExample:\n  tool inner\nStatus: 0.");
        let tool = Command::new("tool").version("1").subcommand(inner);
        write(tool, &directory.path().join("made")).unwrap();
        let page = fs::read_to_string(directory.path().join("made/tool-inner.1")).unwrap();
        let (_, notes) = page.split_once(".SH NOTES\n").expect(&page);
        assert!(notes.starts_with("First.\n.br\nExample:\n.br\n  tool inner\n.br\n"), "{page}");
        assert_eq!(
            with_lines(".SH EXTRA\na\nb\n.SH VERSION\nc\n"),
            ".SH NOTES\na\n.br\nb\n.SH VERSION\nc\n"
        );
    }
}
