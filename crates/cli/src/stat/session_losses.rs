//! The losses of one session in one process: sums, the latest ones, and the session's counters.

use lanecast_stats::{
    LossCause, LossCount, LossOutcome, LossReport, LossTotals, Role, StatsReport, StatsSnapshot,
};

/// The losses of one session in one process.
pub(super) struct SessionLosses<'a> {
    /// The process that lost something.
    pub(super) report: &'a StatsReport,
    pub(super) session: u64,
    /// Sums for each topic, and for datagrams of no one topic.
    totals: Vec<&'a LossTotals>,
    /// Counters of the session, unless it has ended.
    counters: Option<&'a StatsReport>,
}

impl<'a> SessionLosses<'a> {
    /// Sessions with losses, that with the latest loss last.
    pub(super) fn of(look: &'a StatsSnapshot) -> Vec<Self> {
        let mut sessions: Vec<Self> = Vec::new();
        for report in &look.reports {
            let others = sessions.len();
            for total in &report.loss_totals {
                let mut own = sessions[others..].iter_mut();
                if let Some(known) = own.find(|known| known.session == total.session) {
                    known.totals.push(total);
                    continue;
                }
                let (session, totals) = (total.session, vec![total]);
                let counters = look.reports.iter().find(|other| {
                    other.role == Role::Subscriber
                        && (other.process, other.session) == (report.process, session)
                });
                sessions.push(Self { report, session, totals, counters });
            }
        }
        sessions.sort_by_key(Self::latest_ns);
        sessions
    }

    fn latest_ns(&self) -> u64 {
        let datagrams = self.outcomes().map(|(_, sum)| sum.last_unix_ns);
        let messages = self.lost_messages().map(|(_, sum)| sum.last_unix_ns);
        datagrams.chain(messages).max().unwrap_or(0)
    }

    /// Whether the process, the source or a topic has `text` in its name, or the process this
    /// number.
    pub(super) fn is_wanted(&self, text: &str) -> bool {
        [self.report.name.as_str(), self.source()].iter().any(|name| name.contains(text))
            || self.report.process.pid.to_string() == text
            || self.topics().any(|topic| topic.contains(text))
    }

    /// Source of the session: transport, address, session.
    pub(super) fn source(&self) -> &'a str {
        self.totals.first().map_or("", |total| &total.source)
    }

    /// Transport of the session.
    pub(super) fn transport(&self) -> &'a str {
        self.source().split(':').next().unwrap_or_default()
    }

    /// Topics of the session, or of its losses if it has ended.
    pub(super) fn topics(&self) -> impl Iterator<Item = &'a str> {
        let live = self.counters.map(|counters| &*counters.topics).unwrap_or_default();
        let ended = self.totals.iter().map(|total| &*total.topic);
        let ended = ended.filter(move |topic| live.is_empty() && !topic.is_empty());
        live.iter().map(String::as_str).chain(ended)
    }

    /// Datagrams of the session so far, lost and missing ones included, and those that are missing
    /// now; `None` if it has ended.
    pub(super) fn datagrams(&self) -> Option<(u64, u64)> {
        let counters = self.counters?;
        let value = |label| counters.value(label).unwrap_or(0);
        let missing = value("datagrams missing");
        // Another program's numbers: any.
        let all = value("datagrams").saturating_add(missing);
        Some((all.saturating_add(value("datagrams lost")), missing))
    }

    /// Datagrams that were missing for a time or for good.
    pub(super) fn missed(&self) -> u64 {
        self.outcomes().fold(0, |all, (_, sum)| all.saturating_add(sum.count))
    }

    /// Sums of missed datagrams by outcome, without outcomes that have not occurred.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (LossOutcome, LossCount)> {
        let sum = |of: fn(&LossTotals) -> &LossCount| {
            let mut sum = LossCount::default();
            self.totals.iter().for_each(|total| sum.add(of(total)));
            sum
        };
        // The sums of all reasons are one; the reasons stand in the log.
        let given_up = LossOutcome::GivenUp(LossCause::GaveUp);
        let sums = [
            (LossOutcome::Late, sum(|total| &total.late)),
            (LossOutcome::Repaired, sum(|total| &total.repaired)),
            (LossOutcome::Rebuilt, sum(|total| &total.rebuilt)),
            (given_up, sum(|total| &total.given_up)),
        ];
        sums.into_iter().filter(|(_, sum)| sum.is_some())
    }

    /// Lost messages by topic.
    pub(super) fn lost_messages(&self) -> impl Iterator<Item = (&'a str, &'a LossCount)> {
        let of = |total: &&'a LossTotals| (total.topic.as_str(), &total.reported);
        self.totals.iter().map(of).filter(|(_, sum)| sum.is_some())
    }

    /// The latest `count` losses that the process's log still has, oldest first.
    pub(super) fn latest(&self, count: usize) -> impl Iterator<Item = &'a LossReport> {
        let session = self.session;
        let own = move |loss: &&LossReport| loss.session == session;
        let all = self.report.losses.iter().filter(own).count();
        self.report.losses.iter().filter(own).skip(all.saturating_sub(count))
    }
}
