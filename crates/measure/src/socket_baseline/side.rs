//! One end of round trips, in a process of its own: a ping or a pong over bare sockets.
//!
//! Both ends open their sockets, learn each other's addresses from the process that has started
//! them, and begin: the ping's warm-up ends when the pong has answered it.

use super::case::SocketKind;
use super::datagrams::{self, Datagrams, GROUPS};
use super::end::SocketEnd;
use super::packing::Load;
use super::result::{Received, Sent, SocketBaseline};
use super::rounds;
use super::settings::{Progress, Settings, SocketBaselineError};
use super::stream::{self, Stream};
use crate::conditions::Conditions;
use crate::names::named;
use lanecast_base::Size;
use lanecast_os::udp::UdpSocket;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

named! {
    /// The part of an end in round trips.
    pub enum Role: "role" {
        /// Sends on a schedule, and times what comes back.
        Ping = "ping",
        /// Sends everything back.
        Pong = "pong",
    }
}

/// An end that has opened its sockets, and does not know the other one yet.
#[derive(Debug)]
pub struct Side {
    load: Load,
    socket: OpenSocket,
}

#[derive(Debug)]
enum OpenSocket {
    Udp(UdpSocket),
    /// The member of the group that the other end sends to, and the address of its interface.
    Multicast(UdpSocket, Ipv4Addr),
    Listener(TcpListener),
    /// Over TCP the ping calls, and is called by none.
    Caller,
}

impl Side {
    /// Opens the sockets of a round trip's end at `address`, or for multicast at the interface that
    /// has it.
    ///
    /// # Errors
    /// If the settings do not fit together, or the system refuses.
    pub fn open(
        settings: &Settings,
        role: Role,
        address: Ipv4Addr,
    ) -> Result<Self, SocketBaselineError> {
        let load = super::checked_load(settings)?;
        let [there, back] = GROUPS;
        let group = if role == Role::Ping { back } else { there };
        let socket = match (settings.case.socket, role) {
            (SocketKind::Udp, _) => datagrams::open(address).map(OpenSocket::Udp),
            (SocketKind::Multicast, _) => {
                let member = datagrams::member(group, address);
                member.map(|(member, _)| OpenSocket::Multicast(member, address))
            }
            (SocketKind::Tcp, Role::Ping) => Ok(OpenSocket::Caller),
            (SocketKind::Tcp, Role::Pong) => stream::listen(address).map(OpenSocket::Listener),
        };
        Ok(Self { load, socket: socket.map_err(|source| settings.refused(source))? })
    }

    /// The address that the other end sends to; none of an end that calls.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn address(&self) -> io::Result<Option<SocketAddr>> {
        match &self.socket {
            OpenSocket::Udp(socket) | OpenSocket::Multicast(socket, _) => {
                socket.local_address().map(Some)
            }
            OpenSocket::Listener(listener) => listener.local_addr().map(Some),
            OpenSocket::Caller => Ok(None),
        }
    }

    /// Measures round trips to the end at `other`, in this thread. The result has no conditions of
    /// the other end.
    ///
    /// # Errors
    /// If the system refuses, or `progress` was stopped.
    pub fn ping(
        self,
        settings: &Settings,
        other: Option<SocketAddr>,
        progress: &Progress,
    ) -> Result<SocketBaseline, SocketBaselineError> {
        let load = self.load;
        let (sent, conditions) = match self.connect(settings, other)? {
            End::Datagrams(mut end) => ping(settings, &mut end, progress)?,
            End::Stream(mut end) => ping(settings, &mut end, progress)?,
        };
        if progress.is_stopped() {
            return Err(SocketBaselineError::Stopped);
        }
        Ok(SocketBaseline::new(settings, load, sent, Received::default(), None, conditions))
    }

    /// Sends everything back to the end at `other`, in this thread, until `progress` is stopped;
    /// returns the conditions.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn pong(
        self,
        settings: &Settings,
        other: Option<SocketAddr>,
        progress: &Progress,
    ) -> Result<Conditions, SocketBaselineError> {
        match self.connect(settings, other)? {
            End::Datagrams(mut end) => pong(settings, &mut end, progress),
            End::Stream(mut end) => pong(settings, &mut end, progress),
        }
    }

    fn connect(
        self,
        settings: &Settings,
        other: Option<SocketAddr>,
    ) -> Result<End, SocketBaselineError> {
        let load = self.load;
        let known = || other.ok_or(SocketBaselineError::NoAddress(settings.case.socket));
        let end = match self.socket {
            OpenSocket::Udp(socket) => {
                Datagrams::between(load, socket, known()?).map(End::Datagrams)
            }
            OpenSocket::Multicast(member, here) => {
                Datagrams::from_group(load, member, here, known()?).map(End::Datagrams)
            }
            OpenSocket::Listener(listener) => Stream::accepted(load, &listener).map(End::Stream),
            OpenSocket::Caller => Stream::calling(load, known()?).map(End::Stream),
        };
        end.map_err(|source| settings.refused(source))
    }
}

/// An end that is connected.
#[derive(Debug)]
enum End {
    Datagrams(Datagrams),
    Stream(Stream),
}

fn ping<E: SocketEnd>(
    settings: &Settings,
    end: &mut E,
    progress: &Progress,
) -> Result<(Sent, Conditions), SocketBaselineError> {
    let mut monitor = settings.monitor(settings.sender, Size(end.room_bytes() as u64));
    let sent = rounds::ping(settings, end, &mut monitor, progress)?;
    Ok((sent, monitor.conditions(None)))
}

fn pong<E: SocketEnd>(
    settings: &Settings,
    end: &mut E,
    progress: &Progress,
) -> Result<Conditions, SocketBaselineError> {
    let mut monitor = settings.monitor(settings.receiver, Size(end.room_bytes() as u64));
    rounds::pong(settings, end, &mut monitor, progress)?;
    Ok(monitor.conditions(None))
}
