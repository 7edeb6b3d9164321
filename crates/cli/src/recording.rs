//! A recording on disk: a journal with a record for each message, and beside its segments the file
//! `recording` with the names of the topics. `docs/protocol/journal.md` describes both.

use anyhow::{Context as _, bail, ensure};
use lanecast_journal::Record;
use lanecast_os::{replace_file, replacement_path};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Name of the file with the topics.
const FILE: &str = "recording";
/// Version of that file.
const VERSION: u64 = 1;
/// The longest file that is read, in bytes.
const FILE_MAX: u64 = 16 << 20;
/// The most topics of a recording.
const TOPICS_MAX: usize = 10_000;
/// Flag of a record that stands for lost messages.
pub(crate) const LOST: u16 = 1;

/// Names of a recording's topics; records have their numbers.
#[derive(Debug)]
pub(crate) struct Recording {
    directory: PathBuf,
    topics: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Names that are on disk.
    written: usize,
}

/// A record of a recording.
pub(crate) enum Recorded<'a> {
    /// A message of the topic with this name.
    Message(&'a str, &'a [u8]),
    /// Number of messages of the topic that were lost when they were recorded.
    Lost(&'a str, u64),
}

impl Recording {
    /// The recording in `directory`.
    pub(crate) fn open(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(FILE);
        let mut text = String::new();
        let file = File::open(&path).with_context(|| {
            format!(
                "{} is no recording: {} cannot be read; `lanecast journal dump` shows other \
                 journals",
                directory.display(),
                path.display()
            )
        })?;
        let damaged = || format!("{} is damaged: restore it from a copy", path.display());
        file.take(FILE_MAX).read_to_string(&mut text).with_context(damaged)?;
        let value: Value = serde_json::from_str(&text).with_context(damaged)?;
        let version = value["version"].as_u64().with_context(damaged)?;
        ensure!(
            version == VERSION,
            "{} has version {version}, and this program reads version {VERSION}",
            path.display()
        );
        let topics = value["topics"].as_array().with_context(damaged)?;
        let topics = topics.iter().map(|topic| topic.as_str().map(str::to_owned));
        let topics = topics.collect::<Option<Vec<String>>>().with_context(damaged)?;
        ensure!(topics.len() <= TOPICS_MAX, damaged());
        Ok(Self::new(directory, topics))
    }

    fn new(directory: &Path, topics: Vec<String>) -> Self {
        let numbers = (0..).zip(&topics).map(|(number, topic)| (topic.clone(), number)).collect();
        let written = topics.len();
        Self { directory: directory.to_owned(), topics, numbers, written }
    }

    /// The recording in `directory`, to add to; a new one if there is nothing in it.
    pub(crate) fn open_or_create(directory: &Path) -> anyhow::Result<Self> {
        let at = || format!("cannot record into {}", directory.display());
        // The system would say that the file exists.
        if directory.exists() && !directory.is_dir() {
            bail!("{}: it is not a directory", at());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(directory).with_context(at)?;
        if directory.join(FILE).exists() {
            return Self::open(directory);
        }
        let new = replacement_path(&directory.join(FILE));
        // A crash in front of the first record has left no more than that.
        let is_ours = |path: &Path| path == new;
        for entry in fs::read_dir(directory).with_context(at)? {
            if !is_ours(&entry.with_context(at)?.path()) {
                bail!(
                    "{} has files and is no recording: choose a new or an empty directory",
                    directory.display()
                );
            }
        }
        let mut recording = Self::new(directory, Vec::new());
        recording.write()?;
        Ok(recording)
    }

    /// Number of the topic with this name; `None` if there are too many. The first record of a new
    /// number follows a call of [`save`](Self::save).
    pub(crate) fn number(&mut self, topic: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(topic) {
            return Some(*number);
        }
        if self.topics.len() >= TOPICS_MAX {
            return None;
        }
        let number = u32::try_from(self.topics.len()).ok()?;
        self.numbers.insert(topic.to_owned(), number);
        self.topics.push(topic.to_owned());
        Some(number)
    }

    /// Writes the names to the disk if there are new ones.
    pub(crate) fn save(&mut self) -> anyhow::Result<()> {
        if self.written < self.topics.len() { self.write() } else { Ok(()) }
    }

    /// The names, by number.
    pub(crate) fn topics(&self) -> &[String] {
        &self.topics
    }

    /// Writes the names to the disk, all or not at all.
    fn write(&mut self) -> anyhow::Result<()> {
        let path = self.directory.join(FILE);
        let text = format!("{}\n", json!({"version": VERSION, "topics": self.topics}));
        replace_file(&path, text.as_bytes(), 0o600)
            .with_context(|| format!("cannot write {}", path.display()))?;
        self.written = self.topics.len();
        Ok(())
    }

    /// The meaning of a journal's record.
    pub(crate) fn read<'a>(&'a self, record: &Record<'a>) -> anyhow::Result<Recorded<'a>> {
        let topic = self.topics.get(record.topic as usize).with_context(|| {
            format!(
                "record {} is of topic number {}, which {} does not name: restore it from a copy",
                record.sequence,
                record.topic,
                self.directory.join(FILE).display()
            )
        })?;
        if record.flags & LOST == 0 {
            return Ok(Recorded::Message(topic, record.body));
        }
        let count = record.body.try_into().map(u64::from_le_bytes);
        let count = count.ok().with_context(|| {
            format!("record {} is none of a recording of this version", record.sequence)
        })?;
        Ok(Recorded::Lost(topic, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topics_of_a_recording_are_bounded() {
        let topics = (0..TOPICS_MAX).map(|number| number.to_string()).collect();
        let mut recording = Recording::new(Path::new("nowhere"), topics);
        assert_eq!(recording.number("17"), Some(17));
        assert_eq!(recording.number("another"), None);
    }

    #[test]
    fn new_names_are_written_once_for_all_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let mut recording = Recording::open_or_create(directory.path()).unwrap();
        for topic in ["first", "second", "first"] {
            recording.number(topic);
        }
        let named = |path| Recording::open(path).unwrap().topics;
        assert_eq!(named(directory.path()), Vec::<String>::new());
        recording.save().unwrap();
        assert_eq!(named(directory.path()), ["first", "second"]);
        // Nothing new: a write would need the directory.
        drop(directory);
        recording.save().unwrap();
    }
}
