//! Files of keys, which only their owner may read.

use crate::keys::{KeyError, SharedKeys};
use lanecast_os::process::own_user;
use lanecast_os::trusted_file::FileStamp;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The longest file that is read.
const BYTES_MAX: u64 = 64 << 10;

/// A file of keys: [text](SharedKeys::parse) that belongs to the user or to root, and that no other
/// user may read or write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile(PathBuf);

/// A file that is no private file of keys.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct KeyFileError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("{0}")]
    System(io::Error),
    #[error("other users may use it: chmod 600 it")]
    Shared,
    #[error("it belongs to user {0}, neither to this program's nor to root: chown it")]
    Foreign(u32),
    #[error("it is no ordinary file")]
    NotAFile,
    #[error("it is longer than {BYTES_MAX} bytes, or no text")]
    NotText,
    #[error("{0}")]
    Keys(KeyError),
}

impl KeyFile {
    /// The file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the keys.
    ///
    /// # Errors
    /// If the file is not there, is not private, or holds something else.
    pub fn read(&self) -> Result<SharedKeys, KeyFileError> {
        self.read_stamped().map(|(keys, _)| keys)
    }

    /// Reads the keys, and the state of the file that they are from.
    pub(crate) fn read_stamped(&self) -> Result<(SharedKeys, FileStamp), KeyFileError> {
        self.try_read().map_err(|reason| KeyFileError { path: self.0.clone(), reason })
    }

    fn try_read(&self) -> Result<(SharedKeys, FileStamp), Reason> {
        // Opening a pipe would wait for a writer.
        if !self.0.metadata().map_err(Reason::System)?.is_file() {
            return Err(Reason::NotAFile);
        }
        let file = File::open(&self.0).map_err(Reason::System)?;
        // Of the open file: the name may lead elsewhere by now.
        let metadata = file.metadata().map_err(Reason::System)?;
        if !metadata.is_file() {
            return Err(Reason::NotAFile);
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(Reason::Shared);
        }
        if metadata.uid() != own_user() && metadata.uid() != 0 {
            return Err(Reason::Foreign(metadata.uid()));
        }
        // With room for all: a longer string would leave a copy behind. Overwritten in the end.
        let mut text = Zeroizing::new(String::with_capacity(BYTES_MAX as usize + 64));
        let read = file.take(BYTES_MAX + 1).read_to_string(&mut text);
        match read {
            Ok(bytes) if bytes as u64 <= BYTES_MAX => {}
            Err(error) if error.kind() != io::ErrorKind::InvalidData => {
                return Err(Reason::System(error));
            }
            _ => return Err(Reason::NotText),
        }
        let keys = SharedKeys::parse(&text).map_err(Reason::Keys)?;
        Ok((keys, FileStamp::of(&metadata)))
    }

    /// The state of the file; `None` if it is not there.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        FileStamp::read(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_of_keys_are_private_and_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = KeyFile::new(directory.path().join("keys"));
        let refused = || file.read().expect_err("refused").to_string();
        assert!(refused().contains("No such file"), "{}", refused());
        fs::write(file.path(), format!("# today\n{}\n", "0a".repeat(32))).expect("written");
        for (mode, is_private) in [(0o644, false), (0o660, false), (0o604, false), (0o400, true)] {
            fs::set_permissions(file.path(), Permissions::from_mode(mode)).expect("set");
            assert_eq!(file.read().is_ok(), is_private, "{mode:o}");
        }
        fs::set_permissions(file.path(), Permissions::from_mode(0o644)).expect("set");
        assert!(refused().contains("chmod 600"), "{}", refused());
        fs::set_permissions(file.path(), Permissions::from_mode(0o600)).expect("set");
        fs::write(file.path(), "secret").expect("written");
        assert!(refused().contains("line 1 is no key"), "{}", refused());
        assert!(!refused().contains("secret"), "keys are not printed");
        fs::write(file.path(), vec![b'#'; BYTES_MAX as usize + 1]).expect("written");
        assert!(refused().contains("longer than"), "{}", refused());
        fs::write(file.path(), [0xff]).expect("written");
        assert!(refused().contains("no text"), "{}", refused());
        assert!(KeyFile::new("/dev/null").read().is_err());
    }

    #[test]
    fn a_pipe_is_no_file_of_keys_and_not_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("keys");
        drop(lanecast_os::make_pipe(&path, 0o600).expect("a pipe"));
        let (told, read) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(KeyFile::new(path).read().err()));
        let refused = read.recv_timeout(std::time::Duration::from_secs(10)).expect("no wait");
        let refused = refused.expect("refused").to_string();
        assert!(refused.contains("no ordinary file"), "{refused}");
    }
}
