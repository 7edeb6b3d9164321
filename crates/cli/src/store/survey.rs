//! The same streams at several stores, side by side.

use lanecast::PersistenceSettings;
use lanecast::persistence::{
    GroupRule, ReceiverReport, StoreGroups, StoreInspection, StreamReport,
};
use lanecast_wire::store::Members;
use std::collections::BTreeMap;

/// Streams of several stores, by topic and source.
pub(super) struct Survey<'a> {
    pub(super) streams: Vec<StreamSurvey<'a>>,
}

/// One stream at the stores that answered and know it.
pub(super) struct StreamSurvey<'a> {
    /// Reports by store; never empty.
    pub(super) reports: Vec<(&'a str, &'a StreamReport<'static>)>,
    /// The report with the latest members.
    latest: &'a StreamReport<'static>,
    /// Incarnations of the stores that answered.
    answered: BTreeMap<&'a str, u64>,
    /// The latest members, in the groups in which they decide.
    members: Members,
}

impl<'a> Survey<'a> {
    pub(super) fn new(stores: &'a [StoreInspection], settings: &PersistenceSettings) -> Self {
        let answered: BTreeMap<&str, u64> =
            stores.iter().filter_map(|it| Some((it.store.as_str(), it.incarnation?))).collect();
        let mut streams: BTreeMap<(&str, u64), Vec<_>> = BTreeMap::new();
        for store in stores {
            for report in &store.streams {
                let reports = streams.entry((&report.topic, report.source)).or_default();
                reports.push((store.store.as_str(), report));
            }
        }
        let streams = streams.into_values().filter_map(|reports| {
            // A run begins with all that was decided before.
            let latest = reports.iter().map(|it| it.1);
            let latest = latest.max_by_key(|it| (it.run, it.members.version))?;
            let members = members(latest, settings);
            Some(StreamSurvey { reports, latest, answered: answered.clone(), members })
        });
        Self { streams: streams.collect() }
    }
}

/// The members of a report. Those that an earlier build has recorded without groups have the groups
/// of the configuration if that names the same stores; otherwise they are shown as one group.
fn members(report: &StreamReport<'_>, settings: &PersistenceSettings) -> Members {
    let mut members = report.members.clone();
    let names: Vec<String> = members.stores.iter().map(|(name, _)| name.clone()).collect();
    let configured = StoreGroups::new(settings.stores_of(&report.topic).to_vec(), settings.groups);
    let are_they = |groups: &StoreGroups| {
        groups.names().count() == names.len()
            && groups.names().all(|it| names.iter().any(|n| n == it))
    };
    let one = || StoreGroups::new(vec![names.clone()], GroupRule::Any).ok();
    if let Some(groups) = configured.ok().filter(are_they).or_else(one) {
        groups.complete(&mut members);
    }
    members
}

impl<'a> StreamSurvey<'a> {
    pub(super) fn topic(&self) -> &'a str {
        &self.latest.topic
    }

    pub(super) const fn source(&self) -> u64 {
        self.latest.source
    }

    /// Stores that hold the stream.
    pub(super) fn members(&self) -> usize {
        self.members.stores.len()
    }

    /// Members that have not answered, or have lost their data.
    pub(super) fn missing(&self) -> Vec<&'a str> {
        let members = self.latest.members.stores.iter();
        let missing = members
            .filter(|(name, incarnation)| self.answered.get(name.as_str()) != Some(incarnation));
        missing.map(|(name, _)| name.as_str()).collect()
    }

    /// Sequence after the last message that any store has.
    pub(super) fn furthest(&self) -> u64 {
        self.reports.iter().map(|(_, report)| report.next).max().unwrap_or(0)
    }

    /// Whether the members that answered can make messages stable.
    pub(super) fn has_quorum(&self) -> bool {
        let missing = self.missing();
        self.members.is_write_quorum(|name, _| !missing.contains(&name))
    }

    /// Sequence before which all messages are stable, as far as the stores that answered show;
    /// `None` without a quorum.
    pub(super) fn stable(&self) -> Option<u64> {
        if !self.has_quorum() {
            return None;
        }
        let missing = self.missing();
        // Only logs of the latest run count.
        let next = |name: &str| {
            let mut reports = self.reports.iter().filter(|it| it.1.run == self.latest_run());
            let report = reports.find(|it| it.0 == name && !missing.contains(&name));
            report.map_or(0, |it| it.1.next)
        };
        Some(self.members.reached(|name, _| next(name)))
    }

    fn latest_run(&self) -> lanecast_wire::store::Ballot {
        self.reports.iter().map(|(_, report)| report.run).max().unwrap_or(self.latest.run)
    }

    /// Registered receivers, each with the furthest position that a store knows, in the order of
    /// their ids.
    pub(super) fn receivers(&self) -> impl Iterator<Item = ReceiverReport> {
        let mut receivers: BTreeMap<u64, ReceiverReport> = BTreeMap::new();
        for it in self.reports.iter().flat_map(|(_, report)| &report.receivers) {
            let furthest = receivers.entry(it.receiver).or_insert(*it);
            // One that a store has heard of lately is not away.
            let is_expired = it.is_expired && furthest.is_expired;
            if it.next > furthest.next {
                *furthest = *it;
            }
            furthest.is_expired = is_expired;
        }
        receivers.into_values()
    }

    /// State of the stream at a store.
    pub(super) fn state(&self, store: &str, report: &StreamReport<'_>) -> &'static str {
        let incarnation = self.latest.members.incarnation(store);
        match report {
            StreamReport { is_copying: true, .. } => "copying",
            _ if incarnation.is_none() => "no member",
            _ if incarnation != self.answered.get(store).copied() => "lost its data",
            _ if self.members.is_joining(store) => "joining",
            _ if self.members.is_leaving(store) => "leaving",
            // A run that was opened and has not begun here.
            _ if report.promised > report.run => "registering",
            _ if report.run < self.latest_run() => "behind",
            StreamReport { is_live: true, .. } => "live",
            _ => "idle",
        }
    }
}
