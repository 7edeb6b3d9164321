//! A client of a daemon, made by hand, and the daemon in a thread.

use lanecast_base::{Agent, AgentRunner};
use lanecast_net::{DaemonSettings, ResolverDaemon};
use lanecast_wire::net::{
    AdvertEntry, Frame, FrameWriter, Kind, address_bytes, frame_length, query_flag,
};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longer than anything takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon that runs until it is dropped.
pub(crate) struct Daemon {
    pub(crate) address: SocketAddr,
    _runner: AgentRunner,
}

/// Any free port of the loopback interface.
pub(crate) fn anywhere() -> DaemonSettings {
    DaemonSettings::at((Ipv4Addr::LOCALHOST, 0).into())
}

impl Daemon {
    pub(crate) fn start(settings: &DaemonSettings) -> Self {
        let daemon = ResolverDaemon::open(settings).expect("a daemon");
        let (address, bell) = (daemon.address().expect("an address"), daemon.event());
        let agent: Box<dyn Agent> = Box::new(daemon);
        Self {
            address,
            _runner: AgentRunner::start(agent, move || bell.signal()).expect("a thread"),
        }
    }
}

/// A frame, read and kept.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) kind: Kind,
    pub(crate) flags: u16,
    pub(crate) body: Vec<u8>,
}

/// The client.
pub(crate) struct Client {
    stream: TcpStream,
    resolver: u64,
    bytes: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, resolver: u64) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Self { stream, resolver, bytes: Vec::new() }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn publish(&mut self, session: u64, topics: &[&str]) {
        let frame = advert(self.resolver, session, topics);
        self.write(&frame).expect("room");
    }

    pub(crate) fn query(&mut self, flags: u16, topics: &[&str]) {
        let frame = query(self.resolver, flags, topics);
        self.write(&frame).expect("room");
    }

    /// The next frame that is no sign of life; none if the daemon has closed the connection.
    pub(crate) fn next(&mut self) -> Option<Kept> {
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < PATIENCE, "nothing comes but signs of life");
            let frame = self.next_of_any()?;
            if frame.kind != Kind::Query || frame.flags & query_flag::SYNC != 0 {
                return Some(frame);
            }
            // A sign of life of our own.
            let _ = self.write(&query(self.resolver, 0, &[]));
        }
    }

    fn next_of_any(&mut self) -> Option<Kept> {
        loop {
            if let Some(length) = frame_length(&self.bytes).expect("frames")
                && length <= self.bytes.len()
            {
                let bytes: Vec<u8> = self.bytes.drain(..length).collect();
                let (frame, _) = Frame::split(&bytes).expect("a frame");
                let Frame { kind, flags, body, .. } = frame;
                return Some(Kept { kind, flags, body: body.to_vec() });
            }
            let mut buffer = [0; 4_096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => self.bytes.extend_from_slice(&buffer[..length]),
                Err(error) => match error.kind() {
                    ErrorKind::ConnectionReset => return None,
                    // The process was stopped and goes on: a read with a timeout is not repeated
                    // by the system.
                    ErrorKind::Interrupted => {}
                    _ => panic!("the daemon is silent: {error}"),
                },
            }
        }
    }

    /// Reads until the daemon says why it closes the connection.
    pub(crate) fn why(&mut self) -> u16 {
        loop {
            let frame = self.next().expect("a reason");
            if frame.kind == Kind::Eject {
                assert!(self.next().is_none(), "then nothing");
                return frame.flags;
            }
        }
    }
}

pub(crate) fn advert(resolver: u64, session: u64, topics: &[&str]) -> Vec<u8> {
    let (control, control_port) = address_bytes(SocketAddr::from(([127, 0, 0, 1], 9)));
    let entry = AdvertEntry {
        session: session.into(),
        host: 0.into(),
        domain: 0.into(),
        control,
        group: [0; 16],
        control_port,
        group_port: 0.into(),
        pid: 1.into(),
        datagram_bytes: 1_472.into(),
        topics: 0.into(),
        length: 0.into(),
        transport: 2,
        flags: 0,
    };
    let mut bytes = vec![0; 60_000];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Advert, 0, resolver, 0);
    let mut open = writer.add_entry(entry, 0).expect("room");
    assert!(topics.iter().all(|topic| writer.add_entry_name(&mut open, topic)));
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}

pub(crate) fn query(resolver: u64, flags: u16, topics: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0; 60_000];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Query, flags, resolver, 0);
    assert!(topics.iter().all(|topic| writer.add_name(topic)));
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}
