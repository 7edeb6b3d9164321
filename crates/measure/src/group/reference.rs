//! Figures of the JGroups document (2008): JGroups 2.6.4, 1 Gbit Ethernet with an MTU of 1500, one
//! member on each of 4 to 10 hosts, all sending a million messages.

use super::config::TransportKind;
use serde::Serialize;

/// The document's figure for a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GroupReference {
    /// Bytes received per second and member.
    pub bytes_per_second: f64,
    /// Messages received per second and member.
    pub rate: f64,
}

/// Megabytes per second and node, as the text of the document says: transport, size, at 4, at 10.
const TEXT: [(&str, u64, f64, f64); 4] = [
    ("udp", 1000, 56.0, 51.0),
    ("udp", 2500, 94.0, 65.0),
    ("udp", 5000, 107.0, 77.0),
    ("tcp", 1000, 49.0, 34.0),
];

impl GroupReference {
    /// The document's figure for a transport, members and a size; `None` if its text has none.
    ///
    /// JGroups' multicast stands beside `udp`, `group-rm` and `group-ru`, its TCP beside `tcp` and
    /// `group-tcp`; no other transport has a counterpart.
    pub fn of(transport: TransportKind, members: usize, size: usize) -> Option<Self> {
        let name = match transport {
            TransportKind::Udp | TransportKind::GroupRm | TransportKind::GroupRu => "udp",
            TransportKind::Tcp | TransportKind::GroupTcp => "tcp",
            TransportKind::GroupShm | TransportKind::GroupThreads => return None,
        };
        let found = TEXT.iter().find(|row| row.0 == name && row.1 == size as u64)?;
        let megabytes = match members {
            4 => found.2,
            10 => found.3,
            _ => return None,
        };
        let bytes_per_second = megabytes * 1e6;
        Some(Self { bytes_per_second, rate: bytes_per_second / size as f64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_figures_are_found() {
        let of = |transport, members, size| {
            GroupReference::of(transport, members, size).map(|found| found.bytes_per_second / 1e6)
        };
        assert_eq!(of(TransportKind::Udp, 4, 1000), Some(56.0));
        assert_eq!(of(TransportKind::GroupRm, 10, 5000), Some(77.0));
        assert_eq!(of(TransportKind::GroupTcp, 10, 1000), Some(34.0));
        assert_eq!(of(TransportKind::Tcp, 4, 2500), None);
        assert_eq!(of(TransportKind::Udp, 6, 1000), None);
        assert_eq!(of(TransportKind::GroupShm, 4, 1000), None);
        // "Ca. 500'000 1K messages over a cluster of 10 with UDP".
        let ten = GroupReference::of(TransportKind::Udp, 10, 1000).unwrap();
        assert!((ten.rate * 10.0 - 510_000.0).abs() < 1.0);
    }
}
