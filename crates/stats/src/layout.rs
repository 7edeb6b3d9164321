//! Layout of a counters file: its counters, and the process or session that they belong to.

use lanecast_wire::stats::{
    COUNTERS_MAX, ERRORS_MAX, LABEL_MAX, LOSSES_MAX, ROLE_MEMBER, ROLE_PROCESS, ROLE_PUBLISHER,
    ROLE_STORE, ROLE_SUBSCRIBER, Shape,
};

/// File name extension of counters files.
pub const EXTENSION: &str = "stats";

/// Distinct errors kept in a process's file.
const ERRORS: u32 = 32;

/// Sums of losses kept in a file with a loss log: one for each session and topic.
const TOTALS: u32 = 64;

/// Layout of a new counters file.
#[derive(Clone, Copy, Debug)]
pub struct CounterLayout<'a> {
    /// Labels of the counters; a counter's index is that of its label.
    pub labels: &'a [&'a str],
    /// Number of distinct errors kept.
    pub errors: u32,
    /// Number of losses kept in the log; their sums are kept if it is not 0.
    pub losses: u32,
    /// Process or session that the counters belong to.
    pub owner: CounterOwner<'a>,
}

impl<'a> CounterLayout<'a> {
    /// The counters of a whole process, with its errors and `losses` entries for losses.
    pub const fn process(labels: &'a [&'a str], losses: u32) -> Self {
        let owner =
            CounterOwner { role: Role::Process, session: 0, transport: "", address: "", group: "" };
        Self { labels, errors: ERRORS, losses, owner }
    }

    /// The counters of one session.
    pub const fn session(labels: &'a [&'a str], owner: CounterOwner<'a>) -> Self {
        Self { labels, errors: 0, losses: 0, owner }
    }

    /// Number of entries of each kind; `None` beyond the format's limits.
    pub(crate) fn shape(&self) -> Option<Shape> {
        let counters = u32::try_from(self.labels.len()).ok()?;
        let fits = self.labels.iter().all(|label| label.len() <= LABEL_MAX)
            && counters <= COUNTERS_MAX
            && self.errors <= ERRORS_MAX
            && self.losses <= LOSSES_MAX;
        let totals = if self.losses > 0 { TOTALS } else { 0 };
        fits.then_some(Shape { counters, errors: self.errors, losses: self.losses, totals })
    }
}

/// Process or session that the counters belong to; texts that are too long are cut.
#[derive(Clone, Copy, Debug)]
pub struct CounterOwner<'a> {
    /// Role of the process in the session.
    pub role: Role,
    /// The session, or 0.
    pub session: u64,
    /// Transport of the session.
    pub transport: &'a str,
    /// The publisher's address, or the name of the member or the store.
    pub address: &'a str,
    /// Destination group of the session, or the group of the member.
    pub group: &'a str,
}

/// Role of the process in the session of a counters file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// No session: the counters are those of the whole process.
    #[default]
    Process,
    /// Publisher of the session.
    Publisher,
    /// Subscriber of the session.
    Subscriber,
    /// Member of a group: the session is the member's id, the address its name.
    Member,
    /// A store: the session is the identity of its data, the address its name.
    Store,
}

impl Role {
    /// The role in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
            Self::Member => "member",
            Self::Store => "store",
        }
    }

    pub(crate) const fn code(self) -> u32 {
        match self {
            Self::Process => ROLE_PROCESS,
            Self::Publisher => ROLE_PUBLISHER,
            Self::Subscriber => ROLE_SUBSCRIBER,
            Self::Member => ROLE_MEMBER,
            Self::Store => ROLE_STORE,
        }
    }

    pub(crate) const fn from_code(code: u32) -> Option<Self> {
        match code {
            ROLE_PROCESS => Some(Self::Process),
            ROLE_PUBLISHER => Some(Self::Publisher),
            ROLE_SUBSCRIBER => Some(Self::Subscriber),
            ROLE_MEMBER => Some(Self::Member),
            ROLE_STORE => Some(Self::Store),
            _ => None,
        }
    }
}
