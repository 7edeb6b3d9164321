//! The suite over contexts: each set of transports, with subscribers nearby and far away.

use lanecast::{Context, Error, Publisher, SessionId, Subscriber, TopicSelection, Transport};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use tempfile::TempDir;

/// Contexts on networks that no other test of this run, and no other run at this time, is on.
struct Stage {
    publishers: Context,
    /// Contexts of subscribers, used in turn.
    subscribers: Vec<Context>,
    turn: AtomicUsize,
    _directory: TempDir,
}

impl Stage {
    /// Publishers over `transports`, and for each entry of `subscribers` a context over these:
    /// nearby has the publishers' directory, far away another one.
    fn new(transports: &str, subscribers: &[(&str, &str)]) -> Box<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let port = 30_000 + NEXT.fetch_add(2, Ordering::Relaxed);
        let run = std::process::id() as u16;
        let group = |port| format!("239.193.{}.{}:{port}", run >> 8, run & 0xff);
        let directory = TempDir::new_in("/dev/shm").expect("a directory");
        let context = |transports: &str, domain: &str| {
            // The smallest windows, so that every case goes around them many times.
            let settings = [
                ("transports", transports.to_owned()),
                ("shm.directory", directory.path().join(domain).display().to_string()),
                ("shm.window", "64KiB".into()),
                ("net.window", "64KiB".into()),
                // A machine that is busy elsewhere for seconds is not dead.
                ("net.liveness", "20s".into()),
                ("net.resolver_group", group(port)),
                ("net.group", group(port + 1)),
            ];
            let builder = settings.iter().try_fold(Context::builder(), |b, (k, v)| b.set(k, v));
            builder.expect("settings").build().expect("a context")
        };
        Box::new(Self {
            publishers: context(transports, "near"),
            subscribers: subscribers.iter().map(|(ways, domain)| context(ways, domain)).collect(),
            turn: AtomicUsize::new(0),
            _directory: directory,
        })
    }

    /// One context for all, between the threads of this process.
    fn threads() -> Box<Self> {
        let directory = TempDir::new_in("/dev/shm").expect("a directory");
        let settings = [
            ("transports", "shm".to_owned()),
            ("shm.visibility", "process".into()),
            ("shm.directory", directory.path().join("domain").display().to_string()),
            ("shm.window", "64KiB".into()),
        ];
        let builder = settings.iter().try_fold(Context::builder(), |b, (k, v)| b.set(k, v));
        let publishers = builder.expect("settings").build().expect("a context");
        let (subscribers, turn) = (vec![publishers.clone()], AtomicUsize::new(0));
        Box::new(Self { publishers, subscribers, turn, _directory: directory })
    }

    /// One context for all.
    fn one(transports: &str) -> Box<Self> {
        Self::new(transports, &[(transports, "near")])
    }
}

impl Transport for Stage {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    type Error = Error;

    fn name(&self) -> &'static str {
        self.publishers.name()
    }

    fn keeps_order_across_topics(&self) -> bool {
        self.publishers.keeps_order_across_topics()
    }

    fn publisher(&self, topic: &str) -> Result<Publisher, Error> {
        self.publishers.publisher(topic)
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, Error> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.subscribers[turn % self.subscribers.len()].subscriber_to(topics)
    }

    fn subscriber_of(&self, selection: &TopicSelection) -> Result<Subscriber, Error> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.subscribers[turn % self.subscribers.len()].subscriber_of(selection)
    }

    fn subscriber_except(&self, topics: &[&str], session: SessionId) -> Result<Subscriber, Error> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.subscribers[turn % self.subscribers.len()].subscriber_except(topics, session)
    }
}

macro_rules! suites {
    ($tests:ident, $($name:ident: $stage:expr,)*) => {
        $(mod $name {
            use super::*;
            lanecast_conformance::$tests!($stage);
        })*
    };
}

suites! { conformance_tests,
    shm: Stage::one("shm"),
    ru: Stage::one("ru"),
    shm_and_ru: Stage::one("shm+ru"),
    shm_and_ru_from_afar: Stage::new("shm+ru", &[("shm+ru", "far")]),
    shm_and_rm_from_both: Stage::new("shm+rm", &[("shm+rm", "near"), ("rm", "far")]),
    shm_and_tcp_from_both: Stage::new("shm+tcp", &[("tcp", "far"), ("shm+tcp", "near")]),
    // A publisher on the network alone is heard there, by subscribers that have both.
    ru_into_both: Stage::new("ru", &[("shm+ru", "near")]),
}

// The whole suite is run over these without the façade.
suites! { waiting_tests,
    threads: Stage::threads(),
    rm: Stage::one("rm"),
    tcp: Stage::one("tcp"),
}

/// Persistence over each transport: the stores, too, use the context's.
mod persistence {
    use super::Stage;
    use lanecast::Context;
    use std::ops::Deref;

    struct OneContext(Box<Stage>);

    impl Deref for OneContext {
        type Target = Context;
        fn deref(&self) -> &Context {
            &self.0.publishers
        }
    }

    macro_rules! suites {
        ($($name:ident: $transports:literal,)*) => {
            $(mod $name {
                use super::*;
                lanecast_conformance::persistence_tests!(OneContext(Stage::one($transports)));
            })*
        };
    }

    suites! {
        rm: "rm",
        ru: "ru",
        tcp: "tcp",
        shm_and_tcp: "shm+tcp",
    }
}

/// No card is behind the loopback, so that no rights are needed to be refused.
#[test]
fn a_context_tells_why_its_datagrams_go_by_sockets() {
    let directory = TempDir::new_in("/dev/shm").expect("a directory");
    for (io, transports) in [("xdp", "ru"), ("xdp", "shm"), ("sockets", "ru")] {
        let settings = [
            ("transports", transports),
            ("shm.directory", directory.path().to_str().expect("a name")),
            ("net.io", io),
            ("net.interface", "127.0.0.1"),
        ];
        let builder = settings.iter().try_fold(Context::builder(), |b, (k, v)| b.set(k, v));
        let context = builder.expect("settings").build().expect("a context");
        let reason = context.io_fallback();
        // Memory has no datagrams.
        let is_told = io == "xdp" && transports == "ru";
        assert_eq!(reason.is_some(), is_told, "{io} {transports}: {reason:?}");
        assert!(reason.is_none_or(|reason| reason.contains("lo is a loopback")), "{reason:?}");
    }
}
