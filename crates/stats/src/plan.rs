//! What a counters file is about.

use lanecast_wire::stats::{
    COUNTERS_MAX, ERRORS_MAX, LABEL_MAX, LOSSES_MAX, ROLE_PROCESS, ROLE_PUBLISHER, ROLE_SUBSCRIBER,
    Shape,
};

/// How many distinct errors a process's file keeps.
const ERRORS: u32 = 32;

/// A file that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// What the counters count, in words.
    pub labels: &'a [&'a str],
    /// How many distinct errors are kept.
    pub errors: u32,
    /// How many losses are kept.
    pub losses: u32,
    /// What it is about.
    pub subject: Subject<'a>,
}

impl<'a> Plan<'a> {
    /// The counters of a whole process, with its errors and `losses` entries for losses.
    pub const fn process(labels: &'a [&'a str], losses: u32) -> Self {
        let subject =
            Subject { role: Role::Process, session: 0, transport: "", address: "", group: "" };
        Self { labels, errors: ERRORS, losses, subject }
    }

    /// The counters of one session.
    pub const fn session(labels: &'a [&'a str], subject: Subject<'a>) -> Self {
        Self { labels, errors: 0, losses: 0, subject }
    }

    /// The file's shape, if such a file may be.
    pub(crate) fn shape(&self) -> Option<Shape> {
        let counters = u32::try_from(self.labels.len()).ok()?;
        let fits = self.labels.iter().all(|label| label.len() <= LABEL_MAX)
            && counters <= COUNTERS_MAX
            && self.errors <= ERRORS_MAX
            && self.losses <= LOSSES_MAX;
        fits.then_some(Shape { counters, errors: self.errors, losses: self.losses })
    }
}

/// What a file is about; texts that are too long are cut.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The process, or a session of it.
    pub role: Role,
    /// The session, or 0.
    pub session: u64,
    /// What carries it.
    pub transport: &'a str,
    /// The publisher's address.
    pub address: &'a str,
    /// The group that it is sent to.
    pub group: &'a str,
}

/// A process's part in what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The process as a whole.
    #[default]
    Process,
    /// It publishes the session.
    Publisher,
    /// It subscribes to the session.
    Subscriber,
}

impl Role {
    /// The role in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
        }
    }

    pub(crate) const fn code(self) -> u32 {
        match self {
            Self::Process => ROLE_PROCESS,
            Self::Publisher => ROLE_PUBLISHER,
            Self::Subscriber => ROLE_SUBSCRIBER,
        }
    }

    pub(crate) const fn from_code(code: u32) -> Option<Self> {
        match code {
            ROLE_PROCESS => Some(Self::Process),
            ROLE_PUBLISHER => Some(Self::Publisher),
            ROLE_SUBSCRIBER => Some(Self::Subscriber),
            _ => None,
        }
    }
}
