//! Options about the delivery of messages that come over the network.

use crate::content::given;
use lanecast::Context;
use lanecast::net::{DeliveryOrder, DeliverySettings};
use lanecast::parse_duration;
use std::time::Duration;

/// Order and patience of a subscriber; settings count that are not given.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Transports")]
pub(crate) struct DeliveryArgs {
    /// Order of a topic's messages over rm and ru: arrival delivers those behind a gap at once, and
    /// repaired ones when they come [default: the setting net.order]
    #[arg(long, value_enum, value_name = "ORDER")]
    order: Option<OrderName>,

    /// Report missing messages as lost after this time, such as 500us, rather than let later ones
    /// wait longer (rm and ru) [default: the setting net.give_up_after]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    give_up_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OrderName {
    /// That of publication: messages behind a gap wait
    Publication,
    /// That of arrival: no message waits for another
    Arrival,
}

impl DeliveryArgs {
    /// The first option that was given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        given(self.options())
    }

    /// Whether the order of arrival is asked for.
    pub(crate) const fn is_unordered(&self) -> bool {
        matches!(self.order, Some(OrderName::Arrival))
    }

    /// The options, and whether each was given.
    pub(crate) const fn options(&self) -> [(bool, &'static str); 2] {
        [(self.order.is_some(), "--order"), (self.give_up_after.is_some(), "--give-up-after")]
    }

    /// The settings, with what was given over `configured`.
    pub(crate) fn over(&self, configured: DeliverySettings) -> DeliverySettings {
        let order = self.order.map(|order| match order {
            OrderName::Publication => DeliveryOrder::Publication,
            OrderName::Arrival => DeliveryOrder::Arrival,
        });
        DeliverySettings {
            order: order.unwrap_or(configured.order),
            give_up_after: self.give_up_after.or(configured.give_up_after),
        }
    }

    /// The context with the delivery of these options.
    pub(crate) fn apply(&self, context: Context) -> Context {
        match self.first_given() {
            Some(_) => context.with_delivery(self.over(context.config().net.delivery)),
            None => context,
        }
    }
}
