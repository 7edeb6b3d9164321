//! Maps, programs and links of the kernel's BPF machine: bpf(2).
//!
//! Used by a device when it opens, and when one of its sockets comes or goes; never on the path of
//! a message.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A map from keys to values.
pub(super) const MAP_HASH: u32 = 1;
/// A map from numbers to AF_XDP sockets.
pub(super) const MAP_XSK: u32 = 17;
/// Length of the verifier's report on a program that it refuses, in bytes.
const REPORT_BYTES: usize = 16 << 10;

/// Commands of bpf(2).
#[derive(Clone, Copy)]
#[repr(i32)]
enum Command {
    MapCreate = 0,
    MapUpdate = 2,
    MapDelete = 3,
    ProgramLoad = 5,
    LinkCreate = 28,
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct MapEntry {
    map: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions: u32,
    code: u64,
    licence: u64,
    report_level: u32,
    report_bytes: u32,
    report: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

/// Calls bpf(2) with a command's attributes.
///
/// # Safety
/// `A` must be the layout of the command's attributes, and addresses in it must be valid for what
/// the command does with them.
unsafe fn bpf<A>(command: Command, attributes: &A) -> io::Result<i32> {
    let (at, length) = (core::ptr::from_ref(attributes), size_of::<A>());
    // SAFETY: the attributes are readable for the given length; the rest is the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command as i32, at, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// Takes over a descriptor that the system has made.
fn owned(fd: i32) -> OwnedFd {
    // SAFETY: the descriptor is new, and nothing else has it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().unsigned_abs()
}

fn address<T: ?Sized>(of: &T) -> u64 {
    core::ptr::from_ref(of).cast::<u8>() as u64
}

/// Creates a map; it lives as long as descriptors and programs that name it.
pub(super) fn create_map(kind: u32, (key, value): (u32, u32), entries: u32) -> io::Result<OwnedFd> {
    let create = MapCreate { kind, key_bytes: key, value_bytes: value, entries, flags: 0 };
    // SAFETY: the attributes have the command's layout and hold no addresses.
    unsafe { bpf(Command::MapCreate, &create) }.map(owned)
}

/// Sets the value of a key.
pub(super) fn update<K, V>(map: BorrowedFd<'_>, key: &K, value: &V) -> io::Result<()> {
    let entry =
        MapEntry { map: number(map), _pad: 0, key: address(key), value: address(value), flags: 0 };
    // SAFETY: key and value live through the call, and have the map's lengths.
    unsafe { bpf(Command::MapUpdate, &entry) }.map(drop)
}

/// Removes a key.
pub(super) fn delete<K>(map: BorrowedFd<'_>, key: &K) -> io::Result<()> {
    let entry = MapEntry { map: number(map), _pad: 0, key: address(key), value: 0, flags: 0 };
    // SAFETY: the key lives through the call, and has the map's length.
    unsafe { bpf(Command::MapDelete, &entry) }.map(drop)
}

/// Loads an XDP program. The error of one that the verifier refuses ends with its report.
pub(super) fn load_program(code: &[u64]) -> io::Result<OwnedFd> {
    /// BPF_PROG_TYPE_XDP.
    const XDP: u32 = 6;
    let mut name = [0; 16];
    name[..8].copy_from_slice(b"lanecast");
    let mut report = vec![0_u8; REPORT_BYTES];
    let mut load = ProgramLoad {
        kind: XDP,
        instructions: code.len() as u32,
        code: address(code),
        licence: address(c"MIT OR Apache-2.0".to_bytes_with_nul()),
        report_level: 0,
        report_bytes: 0,
        report: 0,
        kernel_version: 0,
        flags: 0,
        name,
    };
    // SAFETY: code and licence live through the call; the licence ends with a zero.
    let loaded = unsafe { bpf(Command::ProgramLoad, &load) };
    let Err(error) = loaded else { return loaded.map(owned) };
    if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error() == Some(libc::EACCES)
        || error.raw_os_error() == Some(libc::EINVAL)
    {
        (load.report_level, load.report_bytes) = (1, report.len() as u32);
        load.report = report.as_mut_ptr() as u64;
        // SAFETY: as above; the report is writable for its length.
        let _ = unsafe { bpf(Command::ProgramLoad, &load) };
        let text = String::from_utf8_lossy(&report);
        let last = text.trim_end_matches('\0').trim_end().lines().last().unwrap_or_default();
        return Err(io::Error::new(error.kind(), format!("{error}: {last}")));
    }
    Err(error)
}

/// Attaches a program to an interface, until the descriptor is closed: with its process's end at
/// the latest, however that comes.
pub(super) fn attach(
    program: BorrowedFd<'_>,
    interface: u32,
    attachment: Attachment,
) -> io::Result<OwnedFd> {
    /// BPF_XDP.
    const XDP: u32 = 37;
    let link =
        LinkCreate { program: number(program), interface, attach: XDP, flags: attachment as u32 };
    // SAFETY: the attributes have the command's layout and hold no addresses.
    unsafe { bpf(Command::LinkCreate, &link) }.map(owned)
}

/// Place at which an interface runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Attachment {
    /// In the kernel's stack, for any driver: XDP_FLAGS_SKB_MODE.
    Generic = 1 << 1,
    /// In the driver: XDP_FLAGS_DRV_MODE.
    Driver = 1 << 2,
}
