//! System calls of Linux behind safe functions: the only crate that calls libc.
//!
//! Sockets: `udp`, `tcp`, `pausing_listener`, `raw_io`, past the stack `xdp`. Sleeping: `poll`,
//! `epoll`, `event` (eventfd), `timerfd`, `process_end` (pidfd), `futex`, `directory_watch`
//! (inotify). Memory: `file`, `mapping`, `mirrored_mapping`. Files on disk: `replace`,
//! `trusted_file`. Locks: `lock` (files), `biased` with `barrier`.
//! Host and process: `interface`, `topology`, `affinity`, `priority`, `process`, `directory`,
//! `disk_space`, `netlink`.

pub mod affinity;
pub mod barrier;
pub mod biased;
mod cpu_sweep;
mod directory;
mod directory_watch;
mod disk_space;
mod durable_directory;
pub mod epoll;
pub mod event;
mod file;
pub mod futex;
pub mod interface;
mod lock;
mod mapping;
mod mirrored_mapping;
pub mod netlink;
pub mod packet_socket;
mod pausing_listener;
pub mod poll;
pub mod priority;
pub mod process;
pub mod process_end;
pub mod raw_io;
#[doc(hidden)]
pub mod refusal;
mod replace;
mod socket;
pub mod tcp;
pub mod timerfd;
pub mod topology;
pub mod trusted_file;
pub mod udp;
pub mod xdp;

pub use directory::{Access, DirectoryError, list_directory, private_directory};
pub use directory_watch::{DirectoryWatch, WatchWaker};
pub use disk_space::DiskSpace;
pub use durable_directory::durable_directory;
pub use file::{FileError, NewFile, make_pipe, memory_file, open, open_pipe, touch};
pub use lock::{LockByte, is_locked};
pub use mapping::{MapMode, Mapping};
pub use mirrored_mapping::MirroredMapping;
pub use pausing_listener::PausingListener;
pub use replace::{replace_file, replacement_path, rewrite_file};

use std::io;
use std::time::Duration;

/// `result`, or the last system call's error if it is negative.
fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Converts a duration; one that is too long becomes the longest.
fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// The size of a page, in bytes.
pub fn page_size() -> usize {
    // SAFETY: sysconf only reads a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
