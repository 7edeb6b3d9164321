//! CPU affinity of threads.

use crate::checked;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Pins the calling thread to `cpu`.
///
/// # Errors
/// If there is no such CPU, or this process may not use it. A mask set by `taskset` does not
/// restrict the choice.
pub fn pin(cpu: usize) -> io::Result<()> {
    apply(&set_of(cpu)?).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => refusal(cpu, "is not given to this process's control group"),
        _ => error,
    })
}

/// The set of this CPU alone, if there is one.
fn set_of(cpu: usize) -> io::Result<libc::cpu_set_t> {
    let online = online();
    if cpu >= libc::CPU_SETSIZE as usize || (!online.is_empty() && !online.contains(&cpu)) {
        return Err(refusal(cpu, "is not there"));
    }
    // SAFETY: all bits zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: `cpu` lies within the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    Ok(set)
}

/// Allocates nothing.
fn apply(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: `set` is a valid set of the size given; thread 0 is the caller.
    checked(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) }).map(drop)
}

fn refusal(cpu: usize, why: &str) -> io::Error {
    let message = format!("CPU {cpu} {why}: choose of {:?}", online());
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Pins the process that `command` starts to `cpu`, with all its threads.
///
/// # Errors
/// If there is no such CPU. Starting the process fails if it may not use it.
pub fn pin_child(command: &mut Command, cpu: usize) -> io::Result<()> {
    let set = set_of(cpu)?;
    // SAFETY: between fork and exec it makes one system call and allocates nothing.
    unsafe { command.pre_exec(move || apply(&set)) };
    Ok(())
}

/// The CPUs that the calling thread may run on, ascending.
///
/// # Errors
/// If the system call fails.
pub fn allowed() -> io::Result<Vec<usize>> {
    // SAFETY: all bits zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: `set` is writable and of the size given; thread 0 is the caller.
    checked(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) })?;
    let bits = size_of::<libc::cpu_set_t>() * 8;
    // SAFETY: every `cpu` asked for lies within the set.
    Ok((0..bits).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// The online CPUs, ascending; empty if unknown.
pub fn online() -> Vec<usize> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    parse_list(&list)
}

/// The CPU that the calling thread runs on at present.
pub fn current_cpu() -> usize {
    // SAFETY: sched_getcpu has no preconditions.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// The NUMA node of `cpu`, if known.
pub fn node_of(cpu: usize) -> Option<usize> {
    let entries = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}")).ok()?;
    entries
        .filter_map(Result::ok)
        .find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
}

/// Parses a kernel list of CPUs or nodes, such as `0-2,5`. Malformed parts, and numbers beyond any
/// kernel's, are left out.
pub fn parse_list(list: &str) -> Vec<usize> {
    const HIGHEST: usize = 8191;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        (last <= HIGHEST).then_some(first..=last)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_pinned_and_its_parent_is_not() {
        let before = allowed().unwrap();
        let cpu = before[0];
        let mut command = Command::new("cat");
        command.arg("/proc/self/status");
        pin_child(&mut command, cpu).unwrap();
        let status = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(status.contains(&format!("\nCpus_allowed_list:\t{cpu}\n")), "{status}");
        assert_eq!(allowed().unwrap(), before);
        assert!(pin_child(&mut command, libc::CPU_SETSIZE as usize).is_err());
    }

    #[test]
    fn lists_are_ranges_and_single_numbers() {
        assert_eq!(parse_list("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        for nonsense in ["", "x", "3-1", "0-18446744073709551615", "-", "1-2-3"] {
            assert_eq!(parse_list(nonsense), [] as [usize; 0], "{nonsense}");
        }
    }

    #[test]
    fn pinning_moves_the_thread_and_a_missing_cpu_is_named() {
        std::thread::spawn(|| {
            let cpu = *allowed().unwrap().last().unwrap();
            pin(cpu).unwrap();
            assert_eq!(current_cpu(), cpu);
            let error = pin(99_999).unwrap_err().to_string();
            assert!(error.contains("99999") && error.contains("choose of"), "{error}");
        })
        .join()
        .unwrap();
    }
}
