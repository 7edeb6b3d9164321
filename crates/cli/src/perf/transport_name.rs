//! The names of the transports.

/// The transports' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TransportName {
    /// Between threads of a process
    Thread,
    /// Between processes of a host, through shared memory
    Shm,
    /// Between hosts, by reliable multicast
    Rm,
    /// Between hosts, by reliable unicast
    Ru,
    /// Between hosts, by TCP
    Tcp,
}

impl TransportName {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Shm => "shm",
            Self::Rm => "rm",
            Self::Ru => "ru",
            Self::Tcp => "tcp",
        }
    }
}
