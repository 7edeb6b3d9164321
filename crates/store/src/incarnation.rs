//! The incarnation of a store: the identity of its data, in a file beside the journal.
//!
//! The file has the incarnation, as 16 hexadecimal digits. One that was drawn for records of an
//! earlier incarnation has the mark of the journal's last cut behind it (see
//! [`Repair::last_cut`](lanecast_journal::Repair::last_cut)), or zeros.

use crate::error::DirectoryError;
use lanecast_os::replace_file;
use std::fs;
use std::io;
use std::path::Path;

/// The file's name.
const NAME: &str = "incarnation";
const DIGITS: usize = 16;
/// Only the store's user reads the file.
const MODE: u32 = 0o600;

/// Identity of a store's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incarnation {
    pub(crate) number: u64,
    /// Mark of the last cut of a journal that had records of an earlier incarnation; `None` if all
    /// records are of this one.
    cut: Option<u64>,
}

impl Incarnation {
    /// The identity of the data in `directory`, drawn anew if records were lost since: a store that
    /// counts as the one before has everything that it had promised to keep.
    ///
    /// `last_cut` is the mark of the journal's last cut.
    pub(crate) fn open(
        directory: &Path,
        is_empty: bool,
        last_cut: Option<u64>,
    ) -> Result<Self, DirectoryError> {
        let kept = if is_empty { None } else { Self::read(directory)? };
        let is_whole = |it: &Self| last_cut.is_none_or(|mark| it.cut == Some(mark));
        match kept.filter(is_whole) {
            Some(kept) => Ok(kept),
            None => {
                let drawn = Self::draw(directory, is_empty, last_cut);
                drawn.map_err(|error| DirectoryError::Io { path: directory.to_owned(), error })
            }
        }
    }

    /// Whether records, and checkpoints of these, may be of an earlier incarnation.
    pub(crate) const fn has_older_records(&self) -> bool {
        self.cut.is_some()
    }

    /// Another identity for the same records: some that were promised are not there.
    pub(crate) fn renew(self, directory: &Path) -> Result<Self, DirectoryError> {
        let drawn = Self::draw(directory, false, self.cut);
        drawn.map_err(|error| DirectoryError::Io { path: directory.to_owned(), error })
    }

    /// Draws a new identity, and keeps it before anything is promised under it.
    fn draw(directory: &Path, is_empty: bool, last_cut: Option<u64>) -> io::Result<Self> {
        let number = lanecast_os::process::random()?;
        let cut = last_cut.or((!is_empty).then_some(0));
        let text = match cut {
            Some(cut) => format!("{number:016x} {cut:016x}\n"),
            None => format!("{number:016x}\n"),
        };
        replace_file(&directory.join(NAME), text.as_bytes(), MODE)?;
        Ok(Self { number, cut })
    }

    /// `None` if there is no file: an operator who restores an older copy leaves it out.
    fn read(directory: &Path) -> Result<Option<Self>, DirectoryError> {
        let path = directory.join(NAME);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.unwrap_or_default(),
        };
        let number = |digits: &str| {
            let is_whole = digits.len() == DIGITS;
            is_whole.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
        };
        let read = match text.trim_end().split_once(' ') {
            None => number(text.trim_end()).map(|number| Self { number, cut: None }),
            Some((first, cut)) => {
                number(first).zip(number(cut)).map(|(number, cut)| Self { number, cut: Some(cut) })
            }
        };
        read.map(Some).ok_or(DirectoryError::Incarnation(path))
    }
}
