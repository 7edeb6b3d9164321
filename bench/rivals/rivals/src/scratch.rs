//! Names of shared-memory domains, and the removal of what was left in them.
//!
//! Each repetition has a domain of its own. Whatever its programs put into shared memory or the
//! temporary directory carries the domain's name, so that it can be removed when a program was
//! killed. A run that was itself killed is cleaned up by the next one.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

const SHARED_MEMORY: &str = "/dev/shm";
const PREFIX: &str = "rivals-";

thread_local! {
    static NEXT: Cell<u32> = const { Cell::new(0) };
}

/// The domain of one repetition; what is left in it is removed at the end.
#[derive(Debug)]
pub struct Domain {
    name: String,
}

impl Domain {
    /// Creates a domain with a name of its own.
    pub fn new() -> Self {
        let number = NEXT.replace(NEXT.get() + 1);
        Self { name: format!("{PREFIX}{}-{number}", process::id()) }
    }

    /// Name of the domain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A folder of its own in shared memory.
    pub fn folder(&self) -> PathBuf {
        Path::new(SHARED_MEMORY).join(&self.name)
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let mine = |name: &str| {
            name.strip_prefix(&self.name).is_some_and(|rest| !rest.starts_with(char::is_numeric))
        };
        remove_where(mine);
    }
}

/// Removes what runs that are no longer there have left.
pub fn sweep() {
    remove_where(|name| {
        let Some(rest) = name.strip_prefix(PREFIX) else { return false };
        let owner = rest.split(['-', '_']).next().and_then(|owner| owner.parse::<u32>().ok());
        owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists())
    });
}

/// Removes files and folders whose name fits, except those that belong to another user.
fn remove_where(fits: impl Fn(&str) -> bool) {
    for place in [PathBuf::from(SHARED_MEMORY), std::env::temp_dir()] {
        let Ok(entries) = fs::read_dir(place) else { continue };
        for entry in entries.flatten() {
            if !entry.file_name().to_str().is_some_and(&fits) {
                continue;
            }
            let path = entry.path();
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            if let Err(error) = removed {
                eprintln!("cannot remove {}: {error}", path.display());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_takes_its_folder_with_it() {
        let (domain, other) = (Domain::new(), Domain::new());
        let (mine, theirs) = (domain.folder(), other.folder());
        fs::create_dir(&mine).expect("shared memory is writable");
        fs::create_dir(&theirs).expect("shared memory is writable");
        drop(domain);
        assert!(!mine.exists());
        sweep();
        assert!(theirs.exists(), "a live run's folder stays");
        drop(other);
        assert!(!theirs.exists());
    }
}
