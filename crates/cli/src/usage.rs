//! Wrong arguments that only a command itself finds: their exit status is 2, as for those that the
//! command line's reader finds.

use lanecast::{ConfigError, net, shm};
use lanecast_os::interface::InterfaceError;
use std::fmt;

/// A value, or a combination of options, that a command cannot use.
#[derive(Debug)]
struct WrongArgument(String);

impl fmt::Display for WrongArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongArgument {}

/// The error of arguments that do not fit, in these words.
pub(crate) fn wrong_argument(words: impl Into<String>) -> anyhow::Error {
    WrongArgument(words.into()).into()
}

/// Returns from a function with the error of arguments that do not fit, formatted as by `format!`.
macro_rules! refuse {
    ($($words:tt)*) => {
        return Err($crate::usage::wrong_argument(format!($($words)*)))
    };
}
pub(crate) use refuse;

/// Whether arguments have to be changed, not the machine or the other programs: the exit status is
/// 2 then. Settings count if an option has given them: their place is the option then.
pub(crate) fn is_of_command_line(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<WrongArgument>()
            || cause.downcast_ref().is_some_and(is_of_context)
            || cause.downcast_ref().is_some_and(is_of_option)
            || cause.downcast_ref().is_some_and(is_of_memory)
            || cause.downcast_ref().is_some_and(is_of_network)
            || cause.downcast_ref().is_some_and(is_of_added_topic)
            || is_of_measurement(cause)
            || cause.is::<InterfaceError>() && names_interface(std::env::args())
    })
}

fn is_of_context(error: &lanecast::Error) -> bool {
    use lanecast::Error;
    match error {
        Error::Config(error) => is_of_option(error),
        Error::Shm(error) => is_of_memory(error),
        Error::Net(error) => is_of_network(error),
        // Of filters and names no file knows.
        Error::Filter(_) | Error::Pattern(_) | Error::Name(_) => true,
        _ => false,
    }
}

fn is_of_memory(error: &shm::OpenError) -> bool {
    matches!(error, shm::OpenError::Topic(shm::TopicError::Name(_)))
}

fn is_of_network(error: &net::OpenError) -> bool {
    match error {
        net::OpenError::Topic(net::TopicError::Name(_)) => true,
        net::OpenError::Interface(_) => names_interface(std::env::args()),
        _ => false,
    }
}

fn is_of_added_topic(error: &lanecast::TopicError) -> bool {
    use lanecast::TopicError;
    matches!(
        error,
        TopicError::Shm(shm::TopicError::Name(_)) | TopicError::Net(net::TopicError::Name(_))
    )
}

/// Whether a measurement has lengths, counts or rates that it cannot use on any machine.
fn is_of_measurement(error: &(dyn std::error::Error + 'static)) -> bool {
    use lanecast_measure::ping::PingError;
    use lanecast_measure::publisher::PublisherError;
    use lanecast_measure::smx::PlacementError;
    use lanecast_measure::socket_baseline::SocketBaselineError;
    let of_publisher = error.downcast_ref().is_some_and(|error| {
        matches!(
            error,
            PublisherError::TooSmallForTimestamps { .. }
                | PublisherError::TooLong { .. }
                | PublisherError::NoTopic
                | PublisherError::EmptyBurst
                | PublisherError::BurstWithoutRate { .. }
                | PublisherError::TooMany
        )
    });
    let of_ping = error.downcast_ref().is_some_and(|error| {
        matches!(error, PingError::TooSmall { .. } | PingError::TooLong { .. } | PingError::Nothing)
    });
    let of_baseline = error.downcast_ref().is_some_and(|error| {
        matches!(error, SocketBaselineError::Size { .. } | SocketBaselineError::Nothing)
    });
    let of_series = matches!(error.downcast_ref(), Some(PlacementError::Shared(_)));
    of_publisher || of_ping || of_baseline || of_series
}

/// Whether the words of the command line name the network interface.
fn names_interface(words: impl IntoIterator<Item = String>) -> bool {
    let mut words = words.into_iter().take_while(|word| word != "--");
    words.any(|word| word.starts_with("--interface") || word.contains("net.interface="))
}

fn is_of_option(error: &ConfigError) -> bool {
    let (ConfigError::Unknown { place, .. }
    | ConfigError::Value { place, .. }
    | ConfigError::Unfit { place, .. }) = error
    else {
        return false;
    };
    place.split(", ").any(|place| place.starts_with("--"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_named_by_its_option_or_by_its_setting() {
        let names = |line: &str| names_interface(line.split(' ').map(str::to_owned));
        for line in ["sub t --interface eth0", "sub t --interface=eth0", "--set net.interface=lo"] {
            assert!(names(line), "{line}");
        }
        for line in ["sub t --set net.hops=2", "pub t -- --interface"] {
            assert!(!names(line), "{line}");
        }
    }
}
