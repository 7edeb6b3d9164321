//! One thread waits for sockets and for other threads at once: in poll(2), on a UDP socket of the
//! loopback and on a `SocketSignal`, which signals that messages lie in a pipe.
//!
//! Run it: `cargo run -p lanecast-examples --example pollset_with_sockets`
#![forbid(unsafe_code)]

use lanecast_os::event::wait_readable;
use lanecast_ring::pipe::{self, Peer, Reader, Unbounded, Writer};
use lanecast_ring::signal::{Signal, SignalSet, Signals, SocketSignal};
use std::error::Error;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

const MESSAGES: usize = 5;
/// The number of the signal that says "look into the pipe".
const PIPE: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_nonblocking(true)?;
    let to = socket.local_addr()?;
    let signals = SocketSignal::new()?;
    let signal = signals.bind(PIPE)?;
    let (writer, reader) = pipe::unbounded();

    let thread = std::thread::spawn(move || write(writer, &signal));
    let network = std::thread::spawn(move || send(to));
    let counts = wait_for_both(&socket, signals, reader)?;
    thread.join().map_err(|_| "the writing thread panicked")?;
    network.join().map_err(|_| "the sending thread panicked")??;
    println!(
        "done: {} messages from the thread, {} datagrams from the network",
        counts.0, counts.1
    );
    Ok(())
}

fn write(mut writer: Writer<String, Unbounded>, signal: &impl Signal) {
    for number in 1..=MESSAGES {
        writer.write(format!("message {number} of a thread"));
        // The pipe says whether the reader found it empty: only then it needs a signal.
        if writer.flush() == Peer::Asleep {
            signal.signal();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(to: SocketAddr) -> std::io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    for number in 1..=MESSAGES {
        socket.send_to(format!("datagram {number}").as_bytes(), to)?;
        std::thread::sleep(Duration::from_millis(30));
    }
    Ok(())
}

/// Reads both until everything has come; how much came from where.
fn wait_for_both(
    socket: &UdpSocket,
    mut signals: SocketSignal,
    mut pipe: Reader<String>,
) -> Result<(usize, usize), Box<dyn Error>> {
    let (mut messages, mut datagrams) = (0, 0);
    while messages < MESSAGES || datagrams < MESSAGES {
        // The pipe: a read that finds nothing marks it asleep, so that its writer will signal.
        while let Some(message) = pipe.read() {
            println!("from the pipe:   {message}");
            messages += 1;
        }
        datagrams += read_datagrams(socket)?;
        // In this order: arm; block, unless signals are there already; take the signals.
        let mut taken = signals.arm();
        if taken.is_empty() && messages + datagrams < 2 * MESSAGES {
            taken = block(socket, &mut signals)?;
        }
        if taken.contains(PIPE) {
            println!("signal {PIPE}:      there is something in the pipe");
        }
    }
    Ok((messages, datagrams))
}

fn block(socket: &UdpSocket, signals: &mut SocketSignal) -> Result<SignalSet, Box<dyn Error>> {
    let limit = Duration::from_secs(10);
    if wait_readable([signals.as_fd(), socket.as_fd()], Some(limit)) == [false; 2] {
        return Err("nothing came for ten seconds".into());
    }
    Ok(signals.check())
}

/// Reads what has come from the network; how many datagrams that was.
fn read_datagrams(socket: &UdpSocket) -> std::io::Result<usize> {
    let (mut buffer, mut count) = ([0; 64], 0);
    loop {
        let length = match socket.recv(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(count),
            received => received?,
        };
        println!("from the socket: {}", String::from_utf8_lossy(&buffer[..length]));
        count += 1;
    }
}
