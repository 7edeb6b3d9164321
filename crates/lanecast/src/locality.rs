//! Host and shared-memory domain as two numbers, which publishers advertise on the network.
//!
//! A subscriber that finds its own numbers in an advertisement already has that publisher by shared
//! memory. The numbers are therefore the same in all programs and versions.

use lanecast_os::process::Identity;
use lanecast_shm::{DomainSettings, Visibility};
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Ids of a host and of a shared-memory domain on it, neither 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Locality {
    /// Hash of the kernel's boot id: differs between hosts, and after each boot.
    pub(crate) host: u64,
    /// Hash of the directory's device and inode; for a domain of one process, of the process and
    /// the name.
    pub(crate) domain: u64,
}

impl Locality {
    /// The locality of an open domain with `settings`.
    pub(crate) fn of(settings: &DomainSettings) -> io::Result<Self> {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id")?;
        let domain = match settings.visibility {
            Visibility::Host => {
                let directory = std::fs::metadata(&settings.directory)?;
                fingerprint(&[&directory.dev().to_le_bytes(), &directory.ino().to_le_bytes()])
            }
            Visibility::Process => {
                let own = Identity::own();
                let own = [u64::from(own.pid), own.namespace, own.start_time].map(u64::to_le_bytes);
                let name = settings.directory.as_os_str().as_encoded_bytes();
                fingerprint(&[own.as_flattened(), name])
            }
        };
        Ok(Self { host: fingerprint(&[boot.trim_ascii()]), domain })
    }
}

/// Hash of `parts`, never 0.
fn fingerprint(parts: &[&[u8]]) -> u64 {
    // Without a secret key, so that unrelated programs compute the same number.
    let mut hasher = SipHasher24::new();
    for part in parts {
        hasher.write(&(part.len() as u64).to_le_bytes());
        hasher.write(part);
    }
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(visibility: Visibility, directory: &std::path::Path) -> Locality {
        let settings =
            DomainSettings { visibility, directory: directory.into(), ..DomainSettings::default() };
        Locality::of(&settings).unwrap()
    }

    #[test]
    fn a_directory_is_known_by_any_path_to_it() {
        let here = std::env::temp_dir();
        let (one, other) = (of(Visibility::Host, &here), of(Visibility::Host, &here.join(".")));
        assert_eq!(one, other);
        let elsewhere = of(Visibility::Host, "/proc".as_ref());
        assert_eq!(elsewhere.host, one.host);
        assert_ne!(elsewhere.domain, one.domain);
    }

    #[test]
    fn names_mean_something_in_one_program_only() {
        let [a, b] = ["a", "b"].map(|name| of(Visibility::Process, name.as_ref()));
        assert_ne!(a, b);
        assert_eq!(a, of(Visibility::Process, "a".as_ref()));
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
    }
}
