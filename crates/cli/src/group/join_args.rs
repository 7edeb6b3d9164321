//! Arguments of `lanecast group join`.

use crate::context::WayArgs;
use lanecast::group::Order;
use lanecast::parse_duration;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Arguments of `group join`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Each line of the input goes to all members, this one included. Lines that \
    begin with a slash are commands:\n  \
    /to NAME TEXT   send to one member alone\n  \
    /members        list the members of the view, by rank\n  \
    /stats          show the counters\n  \
    /leave          leave and end, as the end of the input does\n\
    A line that begins with two slashes is sent without the first.\n\
    Example: lanecast group join lunch --name ann\n\
    Exit status: 0 left, and the others agreed; 1 error; 2 wrong arguments; 3 left without their \
    answer."
)]
pub(crate) struct JoinArgs {
    /// The group
    #[arg(value_name = "GROUP")]
    pub(super) group: String,

    /// Name of this member; by default the user's, with the process id and a random number
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Order of the messages sent from here: that of their sender, or one for all members
    #[arg(long, value_name = "ORDER", value_enum, default_value = "sender")]
    order: OrderArg,

    /// Read no input: print until Ctrl-C
    #[arg(long)]
    pub(super) listen: bool,

    /// Print each event as a line of JSON
    #[arg(long)]
    pub(super) json: bool,

    /// Print messages only
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// Longest time to wait for the others when leaving
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_duration)]
    pub(super) leave_timeout: Duration,

    #[command(flatten)]
    pub(super) way: WayArgs,
}

/// Order of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OrderArg {
    /// The order of their sender
    Sender,
    /// One order at all members
    Total,
}

impl JoinArgs {
    /// Name of this member.
    pub(super) fn name(&self) -> String {
        let user = || std::env::var("USER").unwrap_or_else(|_| "member".into());
        self.name.clone().unwrap_or_else(|| {
            // Processes of different containers have the same id, and a later member of the same
            // name would replace the earlier one.
            let random = RandomState::new().hash_one(0) as u16;
            format!("{}-{}-{random:04x}", user(), std::process::id())
        })
    }

    pub(super) const fn order(&self) -> Order {
        match self.order {
            OrderArg::Sender => Order::Sender,
            OrderArg::Total => Order::Total,
        }
    }
}
