//! The program that chooses frames for AF_XDP sockets, assembled here.
//!
//! It runs in the kernel for each frame that the interface receives. IPv4 datagrams to an address
//! and port of the map go to the socket of the receiving queue; everything else passes to the
//! kernel's stack: other protocols, fragments, headers with options, other ports.

use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Key of the map of ports: address and port as they are in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct PortKey {
    address: u32,
    port: u32,
}

impl PortKey {
    pub(super) fn of(at: SocketAddrV4) -> Self {
        Self { address: u32::from(*at.ip()).to_be(), port: u32::from(at.port().to_be()) }
    }
}

const _: () = assert!(cfg!(target_endian = "little"), "the program compares bytes in this order");

/// Verdicts, and the helper functions of the kernel.
const XDP_PASS: i32 = 2;
const MAP_LOOKUP: i32 = 1;
const REDIRECT_MAP: i32 = 51;

/// Operations: BPF_LDX, BPF_STX, BPF_ALU64 and BPF_JMP with their modes.
const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const LOAD_BYTE: u8 = 0x71;
const STORE_WORD: u8 = 0x63;
const MOVE: u8 = 0xbf;
const MOVE_NUMBER: u8 = 0xb7;
const ADD: u8 = 0x0f;
const ADD_NUMBER: u8 = 0x07;
const AND_NUMBER: u8 = 0x57;
const LOAD_MAP: u8 = 0x18;
const JUMP_GREATER: u8 = 0x2d;
const JUMP_NOT_NUMBER: u8 = 0x55;
const JUMP_NUMBER: u8 = 0x15;
const JUMP_NOT_LESS: u8 = 0x35;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Source register of [`LOAD_MAP`] that says: the number is a map's descriptor.
const BY_DESCRIPTOR: u8 = 1;

/// Offsets within a frame of Ethernet, IPv4 without options, and UDP.
const ETHERTYPE: i16 = 12;
const VERSION_AND_LENGTH: i16 = 14;
const FRAGMENT: i16 = 20;
const PROTOCOL: i16 = 23;
const TO_ADDRESS: i16 = 30;
const TO_PORT: i16 = 36;
const HEADERS: i32 = 42;

/// Offsets within the context, `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RECEIVE_QUEUE: i16 = 16;

/// A program under construction.
#[derive(Default)]
struct Assembler {
    code: Vec<u64>,
    /// Jumps to the end that passes the frame on.
    to_pass: Vec<usize>,
}

impl Assembler {
    fn add(&mut self, operation: u8, to: u8, from: u8, offset: i16, number: i32) {
        let registers = u64::from(from << 4 | to) << 8;
        let offset = u64::from(offset.cast_unsigned()) << 16;
        let number = u64::from(number.cast_unsigned()) << 32;
        self.code.push(u64::from(operation) | registers | offset | number);
    }

    fn pass_if(&mut self, jump: u8, register: u8, other: u8, number: i32) {
        self.to_pass.push(self.code.len());
        self.add(jump, register, other, 0, number);
    }

    fn load_map(&mut self, register: u8, map: BorrowedFd<'_>) {
        self.add(LOAD_MAP, register, BY_DESCRIPTOR, 0, map.as_raw_fd());
        // The instruction takes two places.
        self.code.push(0);
    }

    /// Ends the program with the verdict that passes the frame on.
    fn finish(mut self) -> Vec<u64> {
        let pass = self.code.len();
        self.add(MOVE_NUMBER, 0, 0, 0, XDP_PASS);
        self.add(EXIT, 0, 0, 0, 0);
        for at in self.to_pass {
            // Offsets count from the next instruction.
            self.code[at] |= ((pass - at - 1) as u64) << 16;
        }
        self.code
    }
}

/// Assembles the program. `ports` maps a [`PortKey`] to the index in `sockets` of its socket on
/// queue 0; those of further queues follow.
pub(super) fn assemble(ports: BorrowedFd<'_>, sockets: BorrowedFd<'_>, queues: u32) -> Vec<u64> {
    let mut program = Assembler::default();
    let queues = i32::try_from(queues).unwrap_or(i32::MAX);
    // r6: the context, kept across calls.
    program.add(MOVE, 6, 1, 0, 0);
    program.add(LOAD_WORD, 2, 1, DATA, 0);
    program.add(LOAD_WORD, 3, 1, DATA_END, 0);
    program.add(MOVE, 4, 2, 0, 0);
    program.add(ADD_NUMBER, 4, 0, 0, HEADERS);
    // The verifier demands this check before any byte is read.
    program.pass_if(JUMP_GREATER, 4, 3, 0);
    program.add(LOAD_HALF, 5, 2, ETHERTYPE, 0);
    program.pass_if(JUMP_NOT_NUMBER, 5, 0, i32::from(0x0800_u16.to_be()));
    program.add(LOAD_BYTE, 5, 2, VERSION_AND_LENGTH, 0);
    program.pass_if(JUMP_NOT_NUMBER, 5, 0, 0x45);
    program.add(LOAD_BYTE, 5, 2, PROTOCOL, 0);
    program.pass_if(JUMP_NOT_NUMBER, 5, 0, libc::IPPROTO_UDP);
    // More fragments to come, or not the first one: the stack puts them together.
    program.add(LOAD_HALF, 5, 2, FRAGMENT, 0);
    program.add(AND_NUMBER, 5, 0, 0, i32::from(0x3fff_u16.to_be()));
    program.pass_if(JUMP_NOT_NUMBER, 5, 0, 0);
    program.add(LOAD_WORD, 5, 2, TO_ADDRESS, 0);
    program.add(STORE_WORD, 10, 5, -8, 0);
    program.add(LOAD_HALF, 5, 2, TO_PORT, 0);
    program.add(STORE_WORD, 10, 5, -4, 0);
    program.load_map(1, ports);
    program.add(MOVE, 2, 10, 0, 0);
    program.add(ADD_NUMBER, 2, 0, 0, -8);
    program.add(CALL, 0, 0, 0, MAP_LOOKUP);
    program.pass_if(JUMP_NUMBER, 0, 0, 0);
    program.add(LOAD_WORD, 2, 0, 0, 0);
    program.add(LOAD_WORD, 5, 6, RECEIVE_QUEUE, 0);
    program.pass_if(JUMP_NOT_LESS, 5, 0, queues);
    program.add(ADD, 2, 5, 0, 0);
    program.load_map(1, sockets);
    // A place without a socket passes the frame on too.
    program.add(MOVE_NUMBER, 3, 0, 0, XDP_PASS);
    program.add(CALL, 0, 0, 0, REDIRECT_MAP);
    program.add(EXIT, 0, 0, 0, 0);
    program.finish()
}
