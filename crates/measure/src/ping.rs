//! Round trips of messages on a schedule: the ping's side.
//!
//! In order: open, wait until the pong has joined on both topics, warm up, send the measured part,
//! wait for the last answers, report the result, linger, close. Either two busy threads, one that
//! sends and one that receives, as in the source document's tool, or one thread that does both,
//! for machines of two CPUs.

mod finished_run;
mod hooks;
mod message_sender;
mod one_thread;
mod pong;
mod reference;
mod replies;
mod result;
mod sender;
mod settings;
pub(crate) mod stamp;
mod two_threads;

pub use hooks::{Ended, Hooks, Notice};
pub use pong::{PongHooks, PongSettings, pong};
pub use reference::{DOCUMENT_MESSAGES, DOCUMENT_RATE, DOCUMENT_SIZE, Reference};
pub use result::{PingResult, PongResult, Traffic};
pub use settings::{PingError, Settings, Threads, Topics};
pub use stamp::STAMP;

use crate::monitor::RunMonitor;
use crate::touch::Touch;
use lanecast_transport::{Publish, Transport};
use message_sender::MessageSender;
use replies::Replies;
use sender::Sender;

/// Runs the ping over `transport`.
///
/// # Errors
/// If the settings do not fit together, the transport refuses, or no pong joins before `stop`.
pub fn ping<C: Transport>(
    transport: &C,
    settings: &Settings,
    hooks: Hooks<'_, C::Subscriber>,
) -> Result<PingResult, PingError> {
    settings.check()?;
    let mut monitor =
        RunMonitor::new(transport.name(), settings.setup, Touch::Header, settings.sender);
    let open = |error| PingError::Open(error);
    let topics = &settings.topics;
    let publisher = transport.publisher(&topics.ping).map_err(|error| open(Box::new(error)))?;
    let longest = publisher.longest_message();
    if settings.size > longest {
        return Err(PingError::TooLong { size: settings.size, longest });
    }
    let subscriber =
        transport.subscriber(&[&topics.pong]).map_err(|error| open(Box::new(error)))?;
    let source = publisher.source().to_owned();
    let outlet = MessageSender::new(publisher, settings.generic, settings.size);
    let sender = Sender::new(outlet, settings, hooks.stop);
    let replies = Replies::new(settings, hooks.notify);
    let done = match settings.threads {
        Threads::One => {
            one_thread::run(settings, sender, subscriber, replies, &mut monitor, &hooks)
        }
        Threads::Two => {
            two_threads::run(settings, sender, subscriber, replies, &mut monitor, &hooks)
        }
    }?;
    let mut result = done.result(settings, source, monitor);
    (hooks.announce)(&result);
    result.drained = Some(done.sender.close(settings.linger));
    Ok(result)
}
