use super::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Whatever the system tells of an interface, a network over it has room for the protocols' frames,
/// or is refused.
#[test]
fn an_interface_that_is_too_narrow_is_refused() {
    let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    for (address, headers) in addresses.into_iter().zip([28, 48]) {
        for (key_file, envelope) in [(None, 0), (Some(PathBuf::from("keys")), SEALED_OVERHEAD)] {
            for datagram_bytes in [None, Some(600), Some(65_000)] {
                let settings = NetSettings {
                    key_file: key_file.clone(),
                    datagram_bytes,
                    ..Default::default()
                };
                let least = DATAGRAM_MIN + envelope + headers;
                for mtu in (0..least).chain([65_536]) {
                    match settings.datagram_bytes(address, mtu) {
                        Ok(bytes) => assert!(mtu >= least && bytes + headers <= mtu, "{mtu}"),
                        Err(OpenError::Setting { what, .. }) => {
                            assert_eq!((what, mtu < least), ("net.interface", true), "{mtu}");
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                assert_eq!(settings.datagram_bytes(address, least).ok(), Some(least - headers));
            }
        }
    }
}

#[test]
fn frames_that_keep_the_way_warm_are_neither_a_flood_nor_rarer_than_heartbeats() {
    let heartbeat = NetSettings::default().heartbeat;
    let check = |keep_warm| NetSettings { keep_warm, ..NetSettings::default() }.check();
    for interval in [None, Some(Duration::from_micros(20)), Some(heartbeat)] {
        check(interval).expect("a valid interval");
    }
    let beyond = [Duration::ZERO, Duration::from_micros(19), heartbeat + Duration::from_nanos(1)];
    for interval in beyond {
        let refused = check(Some(interval)).expect_err("out of bounds");
        assert!(matches!(refused, OpenError::Setting { what: "net.keep_warm", .. }), "{refused}");
    }
}
