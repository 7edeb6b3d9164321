//! A group of lanecast as the transport of the group test.

use super::arguments::GroupArgs;
use super::props;
use crate::usage::refuse;
use lanecast::group::{Departure, Event, GroupSettings, Order, SendError};
use lanecast::{Context, Group};
use lanecast_measure::group::{
    GroupConfig, GroupEvent, GroupTransport, SendRefusal, SenderId, TransportKind,
};
use std::io;
use std::time::Duration;

/// Opens the context that a transport's members of one process share.
pub(super) fn context(arguments: &GroupArgs, config: &GroupConfig) -> anyhow::Result<Context> {
    let mut builder = Context::builder();
    if let Some(props) = &config.props {
        builder = props::apply(builder, props)?;
    }
    if let Some(directory) = &arguments.directory {
        builder = builder.set("shm.directory", directory.display())?;
    }
    let transports = match config.transport {
        TransportKind::GroupRm => "rm",
        TransportKind::GroupRu => "ru",
        TransportKind::GroupTcp => "tcp",
        TransportKind::GroupShm | TransportKind::GroupThreads => "shm",
        TransportKind::Udp | TransportKind::Tcp => refuse!("{} is no group", config.transport),
    };
    let visibility = match config.transport {
        TransportKind::GroupThreads => "process",
        _ => "host",
    };
    builder = builder.set("transports", transports)?.set("shm.visibility", visibility)?;
    if let Some(interface) = &config.bind_addr {
        builder = builder.set("net.interface", interface)?;
    }
    Ok(builder.build()?)
}

/// A member of a group of lanecast.
#[derive(Debug)]
pub(super) struct Carrier(Group);

impl Carrier {
    /// Joins the group of this test.
    pub(super) fn join(
        context: &Context,
        arguments: &GroupArgs,
        name: &str,
    ) -> anyhow::Result<Self> {
        Ok(Self(context.group(&arguments.group).name(name).join()?))
    }
}

impl GroupTransport for Carrier {
    fn longest_message(&self) -> usize {
        GroupSettings::default().longest_message
    }

    #[inline]
    fn try_send(&mut self, bytes: &[u8]) -> Result<(), SendRefusal> {
        match self.0.try_send(bytes, Order::Sender) {
            Ok(_) => Ok(()),
            Err(error @ (SendError::TooLong { .. } | SendError::HasLeft)) => {
                Err(SendRefusal::Failed(io::Error::other(error)))
            }
            // No view yet, a change of it, no credit, or no room: all of them pass.
            Err(_) => Err(SendRefusal::Full),
        }
    }

    #[inline]
    fn poll(
        &mut self,
        limit: usize,
        handler: &mut impl FnMut(GroupEvent<'_>),
    ) -> io::Result<usize> {
        let mut has_left = false;
        let work = self.0.poll(limit, |event| match event {
            Event::Message { from, bytes, .. } => {
                handler(GroupEvent::Message { from: SenderId(from.0), bytes });
            }
            Event::View(_, change) => {
                for (member, why) in &change.left {
                    let why = describe(*why).to_owned();
                    handler(GroupEvent::Left { from: SenderId(member.id.0), why });
                }
            }
            Event::Left => has_left = true,
            _ => {}
        });
        if has_left { Err(io::Error::other("this member has left the group")) } else { Ok(work) }
    }

    fn wait(&mut self, limit: Duration) {
        self.0.wait_at_most(0, limit);
    }

    fn members(&self) -> Option<usize> {
        Some(self.0.view().members.len())
    }

    fn counters(&self) -> Vec<(String, u64)> {
        let counters = self.0.counters();
        let counted = [
            ("messages sent to the group", counters.sent),
            ("messages delivered", counters.delivered),
            ("acknowledgements sent", counters.acks),
            ("requests for missing frames", counters.wants),
            ("frames sent again", counters.repairs_sent),
            ("frames received again", counters.repairs_received),
            ("repeated frames dropped", counters.duplicates),
            ("frames dropped for want of room", counters.no_room),
            ("most bytes retained of one sender", counters.highest_retained as u64),
        ];
        let counted = counted.map(|(name, value)| (name.to_owned(), value));
        let view = &self.0.view().members;
        let blocked = counters.blocked.iter().flat_map(|by| {
            let member = view.iter().find(|member| member.id == by.member);
            let name = member.map_or_else(|| by.member.to_string(), |member| member.name.clone());
            [
                (format!("sends blocked by {name}"), by.times),
                (format!("time blocked by {name}, ns"), by.nanos),
            ]
        });
        counted.into_iter().chain(blocked).collect()
    }
}

fn describe(why: Departure) -> &'static str {
    match why {
        Departure::Left => "left the group",
        Departure::Crashed => "crashed",
        Departure::Silent => "fell silent",
        Departure::Unresponsive => "did not answer during a change of the view",
        Departure::Replaced => "was replaced",
        _ => "is gone",
    }
}
