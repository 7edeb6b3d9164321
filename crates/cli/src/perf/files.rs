//! Files that results are written to, besides what is printed.

use crate::report::Form;
use crate::usage::refuse;
use anyhow::Context;
use lanecast_os::rewrite_file;
use lanecast_report::{Report, Since, Source};
use std::fs::{File, Metadata, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files for the result.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct FilesArgs {
    /// Write the result to a file, too: .jsonl (the line that --json prints), .html, .txt, .hgrm
    /// or .hlog (times in nanoseconds); what the file holds is replaced; can be repeated
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    outputs: Vec<PathBuf>,
}

/// Number of distributions that will be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// None, and what one would have to do for some.
    None(&'static str),
    /// One, or none if the other side does not play along.
    One,
    /// More than a `.hgrm` has room for.
    Several,
}

impl FilesArgs {
    /// The files, checked and open, before anything is measured.
    pub(crate) fn open(&self, times: Times) -> anyhow::Result<Files> {
        Files::open(&self.outputs, times)
    }
}

/// Files open for writing. A file that did not exist before is removed if nothing is written to it.
#[derive(Debug)]
pub(crate) struct Files(Vec<Open>);

#[derive(Debug)]
struct Open {
    /// As it was given, for errors.
    path: PathBuf,
    /// The file that `path` led to when it was opened: links may lead elsewhere by now.
    place: PathBuf,
    form: FileForm,
    file: File,
    /// Whether it was made here and is still empty.
    is_new: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileForm {
    Lines,
    Report(Form),
}

impl Files {
    /// Opens `paths`; each one's name says what goes into it.
    ///
    /// # Errors
    /// If a name says nothing known, if `times` cannot be written so, or if a file cannot be.
    pub(crate) fn open(paths: &[PathBuf], times: Times) -> anyhow::Result<Self> {
        let forms: Vec<FileForm> =
            paths.iter().map(|path| form(path, times)).collect::<Result<_, _>>()?;
        let mut files = Self(Vec::new());
        for (path, form) in paths.iter().zip(forms) {
            let is_new = !path.exists();
            // What is in it stays until there is something better.
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
            // Without a path, as for a pipe on standard output, its name has to do.
            let place = path.canonicalize().unwrap_or_else(|_| path.clone());
            files.0.push(Open { path: path.clone(), place, form, file, is_new });
        }
        Ok(files)
    }

    /// Name of the measurement lines in reports: their file, if there is one.
    pub(crate) fn lines_name(&self) -> String {
        let is_lines = |open: &&Open| open.form == FileForm::Lines;
        let name = self.0.iter().find(is_lines).map(|open| open.path.display().to_string());
        name.unwrap_or_else(|| "this run".to_owned())
    }

    /// Writes `lines` into every file; one that fails does not keep the others from theirs. Without
    /// lines, files keep what they hold.
    pub(crate) fn write(mut self, lines: &[String]) -> anyhow::Result<()> {
        if self.0.is_empty() || lines.is_empty() {
            return Ok(());
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let name = self.lines_name();
        let report = Report::read(&[Source::lines(name, text.as_str())])?;
        let written = self.0.iter_mut().map(|open| {
            let found = match open.form {
                FileForm::Lines => Ok(text.clone()),
                FileForm::Report(form) => form.render(&report, Since::default()),
            };
            found
                .and_then(|text| open.replace(&text))
                .with_context(|| format!("{} is not written", open.path.display()))
        });
        // All are tried before the first error is told.
        written.collect::<Vec<_>>().into_iter().collect()
    }
}

impl Open {
    /// Replaces a regular file as a whole, so that a full disk leaves the old one.
    fn replace(&mut self, text: &str) -> anyhow::Result<()> {
        if self.file.metadata()?.is_file() {
            rewrite_file(&self.place, text.as_bytes())?;
        } else {
            self.file.write_all(text.as_bytes())?;
        }
        self.is_new = false;
        Ok(())
    }

    /// Whether the file still has its name.
    fn is_in_place(&self) -> bool {
        let (named, opened) = (self.place.symlink_metadata(), self.file.metadata());
        let identity = |it: &Metadata| (it.dev(), it.ino());
        named.is_ok_and(|named| opened.is_ok_and(|it| identity(&it) == identity(&named)))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // A link that led to the file stays, and so does another file that has its name by now.
        if self.is_new && self.is_in_place() {
            let _ = std::fs::remove_file(&self.place);
        }
    }
}

fn form(path: &Path, times: Times) -> anyhow::Result<FileForm> {
    let name = path.display();
    if path.extension().is_some_and(|extension| extension == "jsonl" || extension == "json") {
        return Ok(FileForm::Lines);
    }
    let Some(form) = Form::of(path) else {
        refuse!("{name}: its name must end in .jsonl, .html, .txt, .hgrm or .hlog");
    };
    match (form, times) {
        (Form::Percentiles | Form::IntervalLog, Times::None(why)) => refuse!("{name}: {why}"),
        (Form::Percentiles, Times::Several) => {
            refuse!(
                "{name}: a .hgrm has room for one distribution, here there are several: use .hlog"
            )
        }
        _ => Ok(FileForm::Report(form)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const LINE: &str = r#"{"schema":1,"kind":"jitter","ts_max_ns":9,"gaps":{"buckets":[[9,4]]}}"#;

    fn refusal(path: &Path, times: Times) -> String {
        Files::open(&[path.to_owned()], times).unwrap_err().to_string()
    }

    #[test]
    fn names_say_what_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let names = ["a.jsonl", "a.json", "a.html", "a.txt", "a.hgrm", "a.hlog"];
        let paths = names.map(|name| directory.path().join(name));
        std::fs::write(&paths[0], "older and much longer than what comes\n".repeat(9)).unwrap();
        let files = Files::open(&paths, Times::One).unwrap();
        files.write(&[LINE.to_owned()]).unwrap();
        let text = |at: usize| std::fs::read_to_string(&paths[at]).unwrap();
        assert_eq!(text(0), format!("{LINE}\n"));
        assert!(text(2).starts_with("<!DOCTYPE html>") && text(3).contains("Jitter"));
        assert!(text(4).contains("TotalCount") && text(5).contains("Tag=a.jsonl:1/gaps,"));
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_behind_its_link_and_with_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("old.jsonl"), "old").unwrap();
        std::fs::set_permissions(path("old.jsonl"), PermissionsExt::from_mode(0o640)).unwrap();
        std::fs::hard_link(path("old.jsonl"), path("kept")).unwrap();
        std::os::unix::fs::symlink("old.jsonl", path("link.jsonl")).unwrap();
        let files = Files::open(&[path("link.jsonl")], Times::One).unwrap();
        files.write(&[LINE.to_owned()]).unwrap();
        let text = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        // Written in place, the old content would have changed under its other name, too.
        assert_eq!((text("kept").as_str(), text("old.jsonl")), ("old", format!("{LINE}\n")));
        assert!(path("link.jsonl").is_symlink());
        assert_eq!(path("old.jsonl").metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_link_to_nothing_stays_and_leads_to_the_result() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::os::unix::fs::symlink("made.jsonl", path("link.jsonl")).unwrap();
        let open = || Files::open(&[path("link.jsonl")], Times::One).unwrap();
        drop(open());
        assert!(path("link.jsonl").is_symlink() && !path("made.jsonl").exists());
        open().write(&[LINE.to_owned()]).unwrap();
        assert!(path("link.jsonl").is_symlink());
        assert_eq!(std::fs::read_to_string(path("made.jsonl")).unwrap(), format!("{LINE}\n"));
    }

    #[test]
    fn a_link_that_leads_elsewhere_during_the_run_changes_and_removes_no_other_file() {
        for result in [vec![], vec![LINE.to_owned()]] {
            let directory = tempfile::tempdir().unwrap();
            let path = |name: &str| directory.path().join(name);
            std::fs::write(path("old.jsonl"), "old").unwrap();
            std::os::unix::fs::symlink("made.jsonl", path("link.jsonl")).unwrap();
            let files = Files::open(&[path("link.jsonl")], Times::One).unwrap();
            std::fs::remove_file(path("link.jsonl")).unwrap();
            std::os::unix::fs::symlink("old.jsonl", path("link.jsonl")).unwrap();
            files.write(&result).unwrap();
            assert_eq!(std::fs::read_to_string(path("old.jsonl")).unwrap(), "old");
            let made = std::fs::read_to_string(path("made.jsonl")).ok();
            assert_eq!(made, result.first().map(|line| format!("{line}\n")));
        }
    }

    #[test]
    fn a_file_that_took_the_name_of_an_empty_one_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let files = Files::open(&[path("new.jsonl")], Times::One).unwrap();
        std::fs::write(path("another"), "another").unwrap();
        std::fs::rename(path("another"), path("new.jsonl")).unwrap();
        drop(files);
        assert_eq!(std::fs::read_to_string(path("new.jsonl")).unwrap(), "another");
    }

    #[test]
    fn unwritable_files_are_refused_before_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let none = Times::None("use -f 1");
        assert!(refusal(&path("a.png"), Times::One).contains(".jsonl, .html"));
        assert!(refusal(&path("a"), Times::One).contains("must end in"));
        assert!(refusal(&path("a.hlog"), none).ends_with("use -f 1"));
        assert!(refusal(&path("a.hgrm"), Times::Several).contains("use .hlog"));
        assert!(refusal(&path("no/a.html"), none).contains("cannot be written"));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_left_and_nothing_is_lost_without_a_result() {
        let directory = tempfile::tempdir().unwrap();
        let paths = ["old.html", "new.html", "new.hgrm"].map(|name| directory.path().join(name));
        std::fs::write(&paths[0], "old").unwrap();
        drop(Files::open(&paths, Times::One).unwrap());
        Files::open(&paths, Times::One).unwrap().write(&[]).unwrap();
        assert_eq!(std::fs::read_to_string(&paths[0]).unwrap(), "old");
        assert!(!paths[1].exists());

        // A result without times: the page is written all the same.
        let line = r#"{"schema":1,"kind":"publisher","size":64}"#.to_owned();
        let error = Files::open(&paths, Times::One).unwrap().write(&[line]).unwrap_err();
        assert!(format!("{error:#}").contains("new.hgrm is not written: no line holds times"));
        assert!(paths[1].exists() && !paths[2].exists());
    }
}
