//! The receiving side of `lanecast pub`: subscribers over transports, or a content server.

use super::frames::Longest;
use super::persistent_target::PersistentTarget;
use super::pub_args::PubArgs;
use super::subscriber_news::{CHECK_INTERVAL, report, tell_subscribers};
use crate::content::connect;
use crate::long_wait::LongWait;
use crate::output::warn;
use crate::refused_hosts::RefusedHosts;
use crate::table::counted;
use lanecast::FilterablePublisher;
use lanecast::prelude::*;
use lanecast_client::{AckLevel, Client, Publication};
use std::time::Duration;

/// Time to wait for subscribers at the end, unless --linger says another.
const LINGER: Duration = Duration::from_secs(5);
/// Longest message for a server; its own limit is usually lower, and an error of its own.
const SERVER_LONGEST: Longest = Longest { bytes: 1 << 30, remedy: "no server takes it" };

/// Destination of messages.
pub(super) enum Target {
    /// The context lives as long as its publisher.
    Transport {
        publisher: Box<Publisher>,
        context: Box<Context>,
    },
    /// The publisher evaluates the filters of its subscribers.
    Filterable {
        publisher: Box<FilterablePublisher>,
        context: Box<Context>,
    },
    /// Stores keep the messages.
    Persistent(Box<PersistentTarget>),
    Server(Box<Client>),
}

impl Target {
    /// Joins the topic, and waits for subscribers if that is asked for.
    pub(super) fn open(
        arguments: &PubArgs,
        stop: &impl Fn() -> bool,
        refused: &mut RefusedHosts,
    ) -> anyhow::Result<Self> {
        let shared = &arguments.shared;
        if shared.server.is_named() {
            let mut settings = shared.server.settings(shared.kind)?;
            if arguments.persisted {
                settings.acknowledge = AckLevel::Persisted;
            }
            return Ok(Self::Server(Box::new(connect(settings)?)));
        }
        let context = Box::new(shared.way.outward()?);
        if let Some(source) = arguments.persistent.source {
            let target = PersistentTarget::open(arguments, source, context, stop, refused)?;
            return Ok(Self::Persistent(Box::new(target)));
        }
        let wanted = arguments.wait_subscribers.unwrap_or(0);
        if arguments.filterable {
            let topic = context.topic(arguments.topic()).message_type(shared.kind.kind);
            let mut publisher = topic.filterable().publisher()?;
            wait_for_subscribers(&mut publisher, wanted, stop, |publisher| {
                tell_subscribers(publisher, shared.quiet);
                refused.tell(&context);
            });
            return Ok(Self::Filterable { publisher: Box::new(publisher), context });
        }
        let mut publisher = context.publisher(arguments.topic())?;
        wait_for_subscribers(&mut publisher, wanted, stop, |publisher| {
            tell_subscribers(publisher, shared.quiet);
            refused.tell(&context);
        });
        Ok(Self::Transport { publisher: Box::new(publisher), context })
    }

    /// Does what is due while there is nothing to send: serves the filter requests of subscribers,
    /// which sending serves too, reads the answers of stores, and tells of subscribers that come
    /// and go, and of programs with other keys.
    ///
    /// # Errors
    /// If another publisher goes on with the stream.
    pub(super) fn idle(
        &mut self,
        arguments: &PubArgs,
        refused: &mut RefusedHosts,
    ) -> anyhow::Result<()> {
        let is_quiet = arguments.shared.quiet;
        match self {
            Self::Transport { publisher, context } => {
                tell_subscribers(&mut **publisher, is_quiet);
                refused.tell(context);
            }
            Self::Filterable { publisher, context } => {
                publisher.serve_filters();
                tell_subscribers(&mut **publisher, is_quiet);
                refused.tell(context);
            }
            Self::Persistent(target) => {
                target.idle(refused);
                return target.check();
            }
            Self::Server(_) => {}
        }
        Ok(())
    }

    pub(super) fn longest(&self) -> Longest {
        let of_window = |bytes| Longest { bytes, remedy: "configure a larger shm.window" };
        match self {
            Self::Transport { publisher, .. } => of_window(publisher.longest_message()),
            Self::Filterable { publisher, .. } => of_window(publisher.longest_message()),
            Self::Persistent(target) => target.longest(),
            Self::Server(_) => SERVER_LONGEST,
        }
    }

    /// Sends, waiting for room, unless told to stop first; says whether it was sent.
    pub(super) fn send(
        &mut self,
        arguments: &PubArgs,
        message: &[u8],
        stop: &impl Fn() -> bool,
    ) -> anyhow::Result<bool> {
        match self {
            Self::Transport { publisher, .. } => {
                send(&mut **publisher, TopicId::FIRST, message, stop)
            }
            Self::Filterable { publisher, .. } => {
                send(&mut **publisher, TopicId::FIRST, message, stop)
            }
            Self::Persistent(target) => target.send(message, stop),
            Self::Server(client) => {
                client.publish_with(&Publication {
                    topic: arguments.topic(),
                    body: message,
                    is_delta: arguments.delta,
                    key: arguments.key.as_deref(),
                    correlation: arguments.correlation.as_deref(),
                    lifetime: arguments.lifetime,
                })?;
                Ok(true)
            }
        }
    }

    /// Number of subscribers, where the publisher knows it.
    pub(super) fn subscribers(&self) -> Option<usize> {
        match self {
            Self::Transport { publisher, .. } => Some(publisher.subscribers()),
            Self::Filterable { publisher, .. } => Some(publisher.subscribers()),
            Self::Persistent(target) => Some(target.subscribers()),
            Self::Server(_) => None,
        }
    }

    /// Waits until everything was read, is stable, or the server has it; says whether that is so.
    pub(super) fn finish(self, arguments: &PubArgs) -> anyhow::Result<bool> {
        let linger = arguments.linger.unwrap_or(LINGER);
        match self {
            Self::Transport { publisher, .. } => Ok(drain(*publisher, linger)),
            Self::Filterable { publisher, .. } => {
                let unreadable = publisher.malformed_messages();
                if unreadable > 0 {
                    let kind = arguments.shared.kind.kind.name();
                    let unreadable = counted(unreadable, "message");
                    warn(&format!(
                        "{unreadable} could not be read as {kind}: subscribers with a filter did \
                         not get them"
                    ));
                }
                Ok(drain(*publisher, linger))
            }
            Self::Persistent(target) => Ok(target.finish(linger)),
            Self::Server(mut client) => {
                client.flush()?;
                Ok(true)
            }
        }
    }
}

/// Waits until so many subscribers are there, or for the end; `idle` does what is due meanwhile.
pub(crate) fn wait_for_subscribers<P: Publish>(
    publisher: &mut P,
    wanted: usize,
    stop: &impl Fn() -> bool,
    mut idle: impl FnMut(&mut P),
) {
    let mut wait = LongWait::begin();
    while !publisher.wait_for_subscribers(wanted, CHECK_INTERVAL) && !stop() {
        idle(publisher);
        let missing = wanted.saturating_sub(publisher.subscribers()) as u64;
        wait.explain(|| {
            format!(
                "waiting for {} more (--wait-subscribers), such as `lanecast sub` with the same \
                 topic, transports and directory",
                counted(missing, "subscriber")
            )
        });
    }
}

/// Sends, waiting for room, unless told to stop first; says whether it was sent.
pub(crate) fn send(
    publisher: &mut impl Publish,
    topic: TopicId,
    message: &[u8],
    stop: &impl Fn() -> bool,
) -> anyhow::Result<bool> {
    let mut wait = None;
    loop {
        match publisher.try_send_on(topic, message) {
            Ok(()) => return Ok(true),
            Err(ClaimError::BackPressured(_)) if stop() => return Ok(false),
            Err(ClaimError::BackPressured(_)) => {
                wait.get_or_insert_with(LongWait::begin).explain(|| {
                    "waiting for room: a subscriber does not read; `lanecast ls` shows which"
                        .to_owned()
                });
                // Subscribers have a whole window to read: a short sleep costs nothing.
                std::thread::sleep(Duration::from_micros(50));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until everything was read; warns of what was not, and says whether all was.
pub(crate) fn drain(publisher: impl Publish, linger: Duration) -> bool {
    report(&publisher.close(linger), linger)
}
