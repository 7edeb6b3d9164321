//! Answers to Queries for many names of which few have publishers elsewhere.

use super::hostile::{frame, from, numbered};
use crate::split;
use lanecast_protocol::resolver_server::{ResolverServer, ResolverServerSettings};
use lanecast_protocol::{Nanos, SECOND};
use lanecast_wire::net::{Frame, Kind, adverts, query_flag};

const DAEMON: u64 = 99;
const PUBLISHER: u64 = 5;
const SUBSCRIBER: u64 = 6;
/// Sessions of the publisher, and of the subscriber's own program.
const SESSION: u64 = 20;
const OWN: u64 = 10;
/// The daemon answers SYNCs by then.
const NOW: Nanos = 6 * SECOND;

/// A daemon, and a client whose Queries for `queried` are to be answered with the session of the
/// last name alone.
struct Scene {
    server: ResolverServer,
    client: u64,
}

impl Scene {
    fn new(own: &[String], queried: &[String], flags: u16) -> Self {
        let settings =
            ResolverServerSettings { daemon: DAEMON, ..ResolverServerSettings::default() };
        let mut server = ResolverServer::new(settings, 0);
        let [publisher, client] = [(); 2].map(|()| server.connect(NOW, from()).expect("room"));
        let last = queried.last().expect("a name").trim_end_matches('*').to_owned();
        server.on_frame(NOW, publisher, &split(&frame(PUBLISHER, Some(SESSION), &[last])));
        let mut tell = |session, names: &[String], flags: u16| {
            let mut bytes = frame(SUBSCRIBER, session, names);
            // The flags follow magic, version and kind.
            bytes[4..6].copy_from_slice(&flags.to_le_bytes());
            server.on_frame(NOW, client, &split(&bytes));
        };
        own.chunks(1_000).for_each(|names| tell(Some(OWN), names, 0));
        queried.chunks(1_000).for_each(|names| tell(None, names, flags));
        tell(None, &[], query_flag::SYNC);
        Self { server, client }
    }

    /// The daemon's frames until it has told everything; in each turn as many as there are.
    fn answers_before_the_sync(mut self) -> bool {
        let (mut buffer, mut is_answered) = ([0; 16_384], false);
        for _ in 0..100 {
            while let Some(length) = self.server.next_frame(NOW, self.client, &mut buffer) {
                let frame: Frame<'_> = split(&buffer[..length]);
                match frame.kind {
                    Kind::Advert => {
                        let mut sessions = adverts(frame.body).map(|it| it.0.session.get());
                        is_answered |= sessions.any(|session| session == SESSION);
                    }
                    _ if frame.flags & query_flag::SYNC != 0 => return is_answered,
                    _ => {}
                }
            }
            let due = self.server.next_deadline();
            assert!(due.is_some_and(|due| due <= NOW), "the rest waits until {due:?}");
        }
        panic!("no SYNC");
    }
}

#[test]
fn a_sync_comes_behind_the_answers_to_names_that_the_client_publishes_itself() {
    let own = numbered(3_000, "a");
    let queried = [own.clone(), vec!["z".to_owned()]].concat();
    assert!(Scene::new(&own, &queried, 0).answers_before_the_sync());
    assert!(
        Scene::new(&own, &["a*".into(), "z*".into()], query_flag::PREFIXES)
            .answers_before_the_sync()
    );
}

#[test]
fn a_sync_comes_behind_the_answers_to_names_without_publishers() {
    let queried = [numbered(10_000, "a"), vec!["z".to_owned()]].concat();
    assert!(Scene::new(&[], &queried, 0).answers_before_the_sync());
}
