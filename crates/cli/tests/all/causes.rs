//! An error that is printed with all its sources says its cause once.

use lanecast_broker::CatalogError;
use lanecast_client::ClientError;
use lanecast_os::interface::InterfaceError;
use lanecast_os::{DirectoryError, FileError};
use lanecast_sow::durable::SowStoreError;
use lanecast_wire::command::HeaderError;
use std::error::Error;
use std::io;

/// The error, and what it was caused by.
fn chain(error: &dyn Error) -> Vec<String> {
    let mut told = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        told.push(error.to_string());
        cause = error.source();
    }
    told
}

#[test]
fn no_cause_is_said_twice() {
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    let path = || "/a".into();
    let archive = || SowStoreError::Wait(lanecast_journal::WaitError::NoSpace);
    let catalog = || CatalogError::Archive { directory: path(), error: Box::new(archive()) };
    let interface = || InterfaceError::System(denied());
    let net = || lanecast_net::OpenError::Interface(interface());
    let errors: [Box<dyn Error>; 14] = [
        Box::new(archive()),
        Box::new(catalog()),
        Box::new(lanecast_broker::OpenError::from(catalog())),
        Box::new(ClientError::from(HeaderError::NoEnd)),
        Box::new(ClientError::from(denied())),
        Box::new(interface()),
        Box::new(net()),
        Box::new(lanecast::Error::from(net())),
        Box::new(lanecast_net::OpenError::System { doing: "open a socket", error: denied() }),
        Box::new(lanecast::ConfigError::Unreadable { path: path(), error: denied() }),
        Box::new(lanecast_stats::CountersError::System { act: "map", error: denied() }),
        Box::new(DirectoryError::Unusable { path: path(), error: denied() }),
        Box::new(FileError::Io { act: "make a file", directory: path(), error: denied() }),
        Box::new(lanecast_measure::PinningError::Refused { cpu: 1, error: denied() }),
    ];
    for error in &errors {
        let told = chain(&**error);
        for (at, words) in told.iter().enumerate() {
            let repeated = told[at + 1..].iter().find(|cause| words.contains(cause.as_str()));
            assert_eq!(repeated, None, "{words}");
        }
        let whole = told.join(": ");
        let cause = ["permission denied", "disk is full", "has no end"];
        assert!(cause.iter().any(|cause| whole.contains(cause)), "{whole}");
    }
}
