//! Socket addresses in the layout of system calls.

use core::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// An IPv4 or IPv6 socket address; the first field is the family.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) union Name {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl Name {
    /// `address` in the system's layout, and its length.
    #[inline]
    pub(super) fn of(address: SocketAddr) -> (Self, libc::socklen_t) {
        match address {
            SocketAddr::V4(address) => {
                let v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
                    sin_zero: [0; 8],
                };
                (Self { v4 }, size_of::<libc::sockaddr_in>() as libc::socklen_t)
            }
            SocketAddr::V6(address) => {
                let v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                    sin6_scope_id: address.scope_id(),
                };
                (Self { v6 }, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
            }
        }
    }

    /// Reads an address that the system has written; `None` if it is no IP address.
    ///
    /// # Safety
    /// The first `length` bytes of `name` must be written.
    #[inline]
    pub(super) unsafe fn read(
        name: &MaybeUninit<Self>,
        length: libc::socklen_t,
    ) -> Option<SocketAddr> {
        if length as usize == size_of::<libc::sockaddr_in>() {
            // SAFETY: as many bytes are written.
            let v4 = unsafe { name.as_ptr().cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        } else if length as usize == size_of::<libc::sockaddr_in6>() {
            // SAFETY: as many bytes are written.
            let v6 = unsafe { name.as_ptr().cast::<libc::sockaddr_in6>().read() };
            let (ip, port) = (Ipv6Addr::from(v6.sin6_addr.s6_addr), u16::from_be(v6.sin6_port));
            Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_back_as_it_went() {
        for text in ["127.0.0.1:1", "224.9.10.11:65535", "[::1]:7", "[fe80::1%3]:9000"] {
            let address: SocketAddr = text.parse().unwrap();
            let (name, length) = Name::of(address);
            // SAFETY: `length` bytes are those that `of` has filled.
            let back = unsafe { Name::read(&MaybeUninit::new(name), length) };
            assert_eq!(back, Some(address));
        }
        // SAFETY: no byte need be written.
        assert_eq!(unsafe { Name::read(&MaybeUninit::uninit(), 0) }, None);
    }
}
