//! The receiving side of `lanecast pub`: subscribers over transports, or a content server.

use super::frames::Longest;
use super::pub_args::PubArgs;
use crate::content::connect;
use crate::output::warn;
use lanecast::prelude::*;
use lanecast_client::{AckLevel, Client, Publication};
use std::time::Duration;

/// Time to wait for subscribers at the end, unless --linger says another.
const LINGER: Duration = Duration::from_secs(5);
/// Longest delay until the stop flag is seen.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Longest message for a server; its own limit is usually lower, and an error of its own.
const SERVER_LONGEST: Longest = Longest { bytes: 1 << 30, remedy: "no server takes it" };

/// Where messages go.
pub(super) enum Target {
    /// The context lives as long as its publisher.
    Transport {
        publisher: Box<Publisher>,
        _context: Box<Context>,
    },
    Server(Box<Client>),
}

impl Target {
    /// Joins the topic, and waits for subscribers if that is asked for.
    pub(super) fn open(arguments: &PubArgs, stop: &impl Fn() -> bool) -> anyhow::Result<Self> {
        if arguments.server.is_named() {
            let mut settings = arguments.server.settings(arguments.kind)?;
            if arguments.persisted {
                settings.acknowledge = AckLevel::Persisted;
            }
            return Ok(Self::Server(Box::new(connect(settings)?)));
        }
        let context = arguments.way.outward()?;
        let mut publisher = context.publisher(arguments.topic())?;
        let wanted = arguments.wait_subscribers.unwrap_or(0);
        while publisher.subscribers() < wanted && !stop() {
            let _ = publisher.wait_for_subscribers(wanted, CHECK_INTERVAL);
        }
        Ok(Self::Transport { publisher: Box::new(publisher), _context: Box::new(context) })
    }

    pub(super) fn longest(&self) -> Longest {
        match self {
            Self::Transport { publisher, .. } => Longest {
                bytes: publisher.longest_message(),
                remedy: "configure a larger shm.window",
            },
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
            Self::Transport { publisher, .. } => send(publisher, message, stop),
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
            Self::Server(_) => None,
        }
    }

    /// Waits until everything was read, or the server has it; says whether that is so.
    pub(super) fn finish(self, arguments: &PubArgs) -> anyhow::Result<bool> {
        match self {
            Self::Transport { publisher, .. } => {
                Ok(drain(*publisher, arguments.linger.unwrap_or(LINGER)))
            }
            Self::Server(mut client) => {
                client.flush()?;
                Ok(true)
            }
        }
    }
}

fn send(
    publisher: &mut Publisher,
    message: &[u8],
    stop: &impl Fn() -> bool,
) -> anyhow::Result<bool> {
    loop {
        match publisher.try_send(message) {
            Ok(()) => return Ok(true),
            Err(ClaimError::BackPressured(_)) if stop() => return Ok(false),
            Err(ClaimError::BackPressured(_)) => {
                // Subscribers have a whole window to read: a short sleep costs nothing.
                std::thread::sleep(Duration::from_micros(50));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn drain(publisher: Publisher, linger: Duration) -> bool {
    let completion = publisher.close(linger);
    if completion.timed_out() {
        warn(&format!("not every subscriber read everything in {linger:?}"));
    }
    for subscriber in completion.incomplete().iter().filter(|it| !it.has_left()) {
        warn(&format!("not all was read by {subscriber}"));
    }
    if completion.omitted() > 0 {
        let omitted = completion.omitted();
        warn(&format!("not all was read by {omitted} others, which are gone"));
    }
    completion.is_complete()
}
