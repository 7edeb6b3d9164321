//! The program that takes one UDP port's frames out of an interface, assembled here.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Commands of bpf(2).
const MAP_CREATE: i32 = 0;
const MAP_UPDATE: i32 = 2;
const PROGRAM_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;

/// A map from numbers to AF_XDP sockets, a program of an interface, the place where it runs.
const MAP_OF_SOCKETS: u32 = 17;
const XDP_PROGRAM: u32 = 6;
const XDP_PLACE: u32 = 37;
/// In the driver, before the kernel makes a packet of the frame: XDP_FLAGS_DRV_MODE.
const IN_DRIVER: u32 = 4;

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C)]
struct MapUpdate {
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
    /// Level, length and address of the verifier's report, version of the kernel, flags.
    _unused: [u64; 3],
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    place: u32,
    flags: u32,
}

/// Calls bpf(2) with a command's attributes.
///
/// # Safety
///
/// `A` must be the layout of the command's attributes, and addresses in it must be valid for what
/// the command does with them.
unsafe fn bpf<A>(command: i32, attributes: &A) -> Result<i32> {
    let (at, length) = (std::ptr::from_ref(attributes), size_of::<A>());
    // SAFETY: the attributes are readable for that length; the rest is the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, at, length) };
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result as i32) }
}

fn owned(fd: i32) -> OwnedFd {
    // SAFETY: the descriptor is new, and nothing else has it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn number(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd().unsigned_abs()
}

fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>() as u64
}

/// Hands the datagrams to `port` that come in by the first queue of an interface to a socket; all
/// other frames go on to the kernel. Ends when the descriptor is closed, as when the process ends.
pub fn attach(socket: &OwnedFd, interface: u32, port: u16) -> Result<OwnedFd> {
    let create = MapCreate { kind: MAP_OF_SOCKETS, key_bytes: 4, value_bytes: 4, entries: 1 };
    // SAFETY: the attributes hold no addresses.
    let map = owned(unsafe { bpf(MAP_CREATE, &create) }?);
    let (key, value) = (0_u32, number(socket));
    let update = MapUpdate {
        map: number(&map),
        _pad: 0,
        key: address(&key),
        value: address(&value),
        flags: 0,
    };
    // SAFETY: key and value have the map's lengths and live through the call.
    unsafe { bpf(MAP_UPDATE, &update) }?;
    let code = assemble(map.as_raw_fd(), port);
    let load = ProgramLoad {
        kind: XDP_PROGRAM,
        instructions: code.len() as u32,
        code: address(code.as_slice()),
        licence: address(c"MIT OR Apache-2.0".to_bytes_with_nul()),
        _unused: [0; 3],
    };
    // SAFETY: code and licence live through the call; the licence ends with a zero.
    let program = owned(unsafe { bpf(PROGRAM_LOAD, &load) }?);
    let (program, place, flags) = (number(&program), XDP_PLACE, IN_DRIVER);
    let create = LinkCreate { program, interface, place, flags };
    // SAFETY: the attributes hold no addresses.
    unsafe { bpf(LINK_CREATE, &create) }.map(owned)
}

fn instruction(operation: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    u64::from(operation)
        | u64::from(from << 4 | to) << 8
        | u64::from(offset.cast_unsigned()) << 16
        | u64::from(number.cast_unsigned()) << 32
}

/// Assembles the program around a map of one socket.
fn assemble(map: i32, port: u16) -> Vec<u64> {
    /// BPF_LDX, BPF_ALU64, BPF_LD and BPF_JMP with their modes.
    const LOAD_WORD: u8 = 0x61;
    const LOAD_HALF: u8 = 0x69;
    const LOAD_BYTE: u8 = 0x71;
    const MOVE: u8 = 0xbf;
    const MOVE_NUMBER: u8 = 0xb7;
    const ADD_NUMBER: u8 = 0x07;
    const LOAD_MAP: u8 = 0x18;
    const JUMP_GREATER: u8 = 0x2d;
    const JUMP_NOT_NUMBER: u8 = 0x55;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    const PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    // Offsets of jumps: to the end that passes the frame on, which is at 19.
    let bytes = i32::from;
    vec![
        instruction(LOAD_WORD, 2, 1, 0, 0),     // 0: the first byte
        instruction(LOAD_WORD, 3, 1, 4, 0),     // 1: and their end
        instruction(MOVE, 4, 2, 0, 0),          // 2
        instruction(ADD_NUMBER, 4, 0, 0, 42),   // 3
        instruction(JUMP_GREATER, 4, 3, 14, 0), // 4: too short
        instruction(LOAD_HALF, 5, 2, 12, 0),    // 5: the protocol
        instruction(JUMP_NOT_NUMBER, 5, 0, 12, bytes(0x0800_u16.to_be())), // 6: no IPv4
        instruction(LOAD_HALF, 5, 2, 36, 0),    // 7: the port
        instruction(JUMP_NOT_NUMBER, 5, 0, 10, bytes(port.to_be())), // 8: another port
        instruction(LOAD_BYTE, 5, 2, 23, 0),    // 9: the protocol
        instruction(JUMP_NOT_NUMBER, 5, 0, 8, libc::IPPROTO_UDP), // 10: no UDP
        instruction(LOAD_BYTE, 5, 2, 14, 0),    // 11: the header
        instruction(JUMP_NOT_NUMBER, 5, 0, 6, 0x45), // 12: with options
        instruction(LOAD_WORD, 2, 1, 16, 0),    // 13: the queue
        instruction(LOAD_MAP, 1, 1, 0, map),    // 14, 15
        0,
        instruction(MOVE_NUMBER, 3, 0, 0, PASS),  // 16: else
        instruction(CALL, 0, 0, 0, REDIRECT_MAP), // 17
        instruction(EXIT, 0, 0, 0, 0),            // 18
        instruction(MOVE_NUMBER, 0, 0, 0, PASS),  // 19
        instruction(EXIT, 0, 0, 0, 0),            // 20
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_ends_where_the_frame_is_passed_on() {
        let code = assemble(7, 20_000);
        let jumps = code.iter().enumerate().filter(|(_, it)| [0x2d, 0x55].contains(&(**it as u8)));
        let ends: Vec<usize> = jumps.map(|(at, it)| at + 1 + (it >> 16) as u16 as usize).collect();
        assert_eq!((ends, code.len()), (vec![19; 5], 21));
    }
}
