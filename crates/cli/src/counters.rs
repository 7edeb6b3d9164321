//! Processes' counters with their rates between two looks, as `stat` and `top` show them.

use lanecast_stats::{Role, StatsReport, StatsSnapshot};

/// Counters of a process or of one of its sessions, with their rates; a new one has no rates.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) report: StatsReport,
    pub(crate) rates: Option<Vec<f64>>,
}

/// The processes of `now`, with their rates since `before`.
pub(crate) fn since(before: Option<&StatsSnapshot>, now: &StatsSnapshot) -> Vec<Process> {
    let with_rates = |report: &StatsReport| Process {
        rates: before.and_then(|before| before.rates_until(report, now.at)),
        report: report.clone(),
    };
    now.reports.iter().map(with_rates).collect()
}

/// Why counters files could not be read, in words.
pub(crate) fn errors(look: &StatsSnapshot) -> Vec<String> {
    let unreadable = look.unreadable.iter();
    unreadable.map(|(path, error)| format!("{}: {error}", path.display())).collect()
}

impl Process {
    /// Keeps what belongs to a process, a session, a counter or an error whose name contains
    /// `text`.
    pub(crate) fn retain(&mut self, text: &str) {
        let is_wanted = self.subject().is_some_and(|subject| subject.contains(text))
            || self.report.topics.iter().any(|topic| topic.contains(text));
        let report = &mut self.report;
        if is_wanted || report.name.contains(text) || report.process.pid.to_string() == text {
            return;
        }
        let wanted: Vec<bool> = report.counters.iter().map(|c| c.label.contains(text)).collect();
        let mut kept = wanted.iter();
        report.counters.retain(|_| kept.next() == Some(&true));
        if let Some(rates) = &mut self.rates {
            let mut kept = wanted.iter();
            rates.retain(|_| kept.next() == Some(&true));
        }
        report.errors.retain(|error| error.text.contains(text));
    }

    /// The session or membership that it is about, if it is about one.
    pub(crate) fn subject(&self) -> Option<String> {
        let report = &self.report;
        let to = if report.group.is_empty() { "" } else { " to " };
        let (role, session, transport) = (report.role.name(), report.session, &report.transport);
        match report.role {
            Role::Process => None,
            Role::Publisher | Role::Subscriber => {
                let way = format!("{}{to}{}", report.address, report.group);
                Some(format!("{role} {session:016x} {transport} {way}"))
            }
            Role::Member => {
                Some(format!("{role} {session:016x} {} of group {}", report.address, report.group))
            }
            Role::Store => Some(format!("{role} {}", report.address)),
        }
    }

    /// Name of counter `index` in a table of all processes.
    #[cfg_attr(not(feature = "top"), allow(dead_code, reason = "top shows it"))]
    pub(crate) fn label(&self, index: usize) -> String {
        let report = &self.report;
        let label = report.counters.get(index).map_or("", |counter| &counter.label);
        match report.role {
            Role::Process => label.to_owned(),
            Role::Member => format!("{} of group {}: {label}", report.address, report.group),
            Role::Store => format!("store {}: {label}", report.address),
            role => {
                let (transport, role) = (&report.transport, role.name());
                format!("{transport} {role} {:016x}: {label}", report.session)
            }
        }
    }

    /// Whether nothing is left to show.
    pub(crate) const fn is_empty(&self) -> bool {
        self.report.counters.is_empty() && self.report.errors.is_empty()
    }

    /// Increase per second of counter `index`, if known.
    pub(crate) fn rate(&self, index: usize) -> Option<f64> {
        self.rates.as_ref()?.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::process::Identity;
    use lanecast_stats::{CounterReport, ErrorReport};

    fn process() -> Process {
        let counter = |label: &str| CounterReport { label: label.to_owned(), value: 7 };
        let text = "the disk is full".to_owned();
        let report = StatsReport {
            path: "x.stats".into(),
            process: Identity { pid: 12, ..Identity::default() },
            name: "ticker".to_owned(),
            is_alive: true,
            counters: vec![counter("sessions joined"), counter("errors")],
            errors: vec![ErrorReport { text, count: 1, first_unix_ns: 1, last_unix_ns: 2 }],
            ..StatsReport::default()
        };
        Process { report, rates: Some(vec![1.0, 2.0]) }
    }

    #[test]
    fn a_session_is_kept_by_its_name_or_topic() {
        let mut process = process();
        assert_eq!((process.subject(), process.label(1)), (None, "errors".to_owned()));
        let report = &mut process.report;
        (report.role, report.session) = (Role::Publisher, 0xfeed);
        (report.transport, report.address) = ("rm".into(), "10.0.0.7:4000".into());
        report.group = "239.192.71.2:14400".into();
        report.topics = vec!["prices".into()];
        let subject = "publisher 000000000000feed rm 10.0.0.7:4000 to 239.192.71.2:14400";
        assert_eq!(process.subject().as_deref(), Some(subject));
        assert_eq!(process.label(1), "rm publisher 000000000000feed: errors");
        for (text, counters) in [("feed", 2), ("price", 2), ("239.192", 2), ("10.0.0.8", 0)] {
            let mut process = process.clone();
            process.retain(text);
            assert_eq!(process.report.counters.len(), counters, "{text}");
        }
    }

    #[test]
    fn a_filter_keeps_a_process_or_parts_of_it() {
        for (text, counters, errors) in
            [("tick", 2, 1), ("12", 2, 1), ("errors", 1, 0), ("disk", 0, 1), ("other", 0, 0)]
        {
            let mut process = process();
            process.retain(text);
            let report = &process.report;
            assert_eq!((report.counters.len(), report.errors.len()), (counters, errors), "{text}");
            assert_eq!(process.is_empty(), counters + errors == 0, "{text}");
            assert_eq!(process.rates.as_ref().map(Vec::len), Some(counters), "{text}");
            if text == "errors" {
                assert_eq!(process.rate(0), Some(2.0), "the rate stays with its counter");
            }
        }
    }
}
