//! Errors of building a ring and of publishing to it.

use core::fmt;

/// Implements errors that give a value back. They print without it, so a value that cannot be
/// printed can be sent as well.
macro_rules! without_its_value {
    ($Name:ident { $($pattern:pat => $name:literal, $words:expr),+ $(,)? }) => {
        impl<T> ::core::fmt::Debug for $Name<T> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(match self { $($pattern => concat!($name, "(..)"),)+ })
            }
        }

        impl<T> ::core::fmt::Display for $Name<T> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(match self { $($pattern => $words,)+ })
            }
        }

        impl<T> ::std::error::Error for $Name<T> {}
    };
}

pub(crate) use without_its_value;

/// A ring cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The capacity is not a power of two, or too large.
    Capacity {
        /// Requested capacity.
        asked: usize,
    },
    /// The number of bytes is not a power of two, too small or too large.
    Bytes {
        /// Requested bytes.
        asked: usize,
    },
    /// The memory cannot be allocated.
    NoMemory {
        /// Requested bytes.
        asked: usize,
    },
    /// The ring has no producer.
    NoProducer,
    /// The ring has no consumer, so no slot would ever be released.
    NoConsumer,
    /// A consumer would follow a consumer of another ring.
    ForeignConsumer,
    /// An exclusive consumer or a group of workers must follow all other consumers, or be the
    /// only one.
    NotExclusive,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity { asked } => write!(
                f,
                "a ring cannot hold {asked} values: take a power of two, such as {}",
                asked.clamp(&1, &(1 << 20)).next_power_of_two()
            ),
            Self::Bytes { asked } => {
                write!(f, "a ring cannot have {asked} bytes: take a power of two from 64 on")
            }
            Self::NoMemory { asked } => {
                write!(f, "there is no memory for {asked} bytes: take a smaller ring")
            }
            Self::NoProducer => f.write_str("a ring has at least one producer: ask for one"),
            Self::NoConsumer => f.write_str("no consumer: add a consumer before the producer"),
            Self::ForeignConsumer => {
                f.write_str("a consumer can only follow consumers of the same ring")
            }
            Self::NotExclusive => f.write_str(
                "an exclusive consumer or worker changes values, so no other one may read beside \
                 it: let it follow all others, and let further ones follow an exclusive consumer",
            ),
        }
    }
}

impl std::error::Error for BuildError {}

/// A value that cannot be published now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PushError<T> {
    /// The ring is full: the slowest consumer has not released its oldest value.
    Full(T),
    /// All consumers are gone.
    Closed(T),
}

/// A value that cannot be published because all consumers are gone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(pub T);

without_its_value! {
    PushError {
        Self::Full(_) => "Full", "the ring is full: the slowest consumer has all to read",
        Self::Closed(_) => "Closed", "all consumers are gone",
    }
}
without_its_value! {
    Closed { Self(_) => "Closed", "all consumers are gone" }
}
