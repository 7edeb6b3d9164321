//! One measurement line: its place, its kind, and its members, read by path.
//!
//! A path names a member as `docs/protocol/measurements.md` does, such as `latency.actual.p50_ns`
//! or `subscribers[0].lost`. The report shows the same path beside each figure, so a figure cannot
//! claim to come from another member than the one it was read from.

use crate::distribution::Distribution;
use crate::document::{Figure, Words, cell};
use crate::number::{self, Quantity};
use serde::Deserialize;
use serde_json::Value;

/// A line that was read and checked.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Position among all lines of the report, from 1: the anchor on the page.
    pub(crate) id: usize,
    pub(crate) file: String,
    /// Line number in the file, from 1.
    pub(crate) number: usize,
    /// The line as written.
    pub(crate) json: String,
    pub(crate) kind: Kind,
    members: Value,
    /// Distributions with buckets, by path. Their buckets are stored here only, as pairs: far
    /// smaller than JSON values.
    times: Vec<(String, Distribution)>,
}

/// The kind of a line: its member `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Publisher,
    Subscriber,
    Jitter,
    Run,
    Skipped,
    Rival,
    Doctor,
    Pipes,
    Rings,
    Ping,
    Pong,
    Baseline,
    Fanout,
    Group,
    Persist,
    /// An interval of a HdrHistogram log: no measurement line, but shown like one.
    Log,
}

impl Kind {
    const NAMES: [(&str, Self); 15] = [
        ("publisher", Self::Publisher),
        ("subscriber", Self::Subscriber),
        ("jitter", Self::Jitter),
        ("run", Self::Run),
        ("skipped", Self::Skipped),
        ("rival", Self::Rival),
        ("doctor", Self::Doctor),
        ("pipes", Self::Pipes),
        ("rings", Self::Rings),
        ("ping", Self::Ping),
        ("pong", Self::Pong),
        ("baseline", Self::Baseline),
        ("fanout", Self::Fanout),
        ("group", Self::Group),
        ("persist", Self::Persist),
    ];

    /// The kind called `name`; none for a kind that this version does not know.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}

impl Line {
    /// A line of `kind` with these members. The reader adds its place.
    ///
    /// # Errors
    ///
    /// If buckets of a distribution are no pairs of whole numbers.
    pub(crate) fn new(kind: Kind, text: &str, mut members: Value) -> serde_json::Result<Self> {
        let mut times = Vec::new();
        take_buckets(String::new(), &mut members, &mut times)?;
        let (file, json) = (String::new(), text.to_owned());
        Ok(Self { id: 0, file, number: 0, json, kind, members, times })
    }

    /// The line at its place in the report and in its file.
    pub(crate) fn placed(self, id: usize, file: String, number: usize) -> Self {
        Self { id, file, number, ..self }
    }

    /// `file:number`.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.file, self.number)
    }

    /// The member at `path`; none if it is missing or null.
    pub(crate) fn at(&self, path: &str) -> Option<&Value> {
        let mut found = &self.members;
        for part in path.split('.') {
            let (name, index) = part.split_once('[').unwrap_or((part, ""));
            found = found.get(name)?;
            if let Some(index) = index.strip_suffix(']') {
                found = found.get(index.parse::<usize>().ok()?)?;
            }
        }
        Some(found).filter(|value| !value.is_null())
    }

    pub(crate) fn whole(&self, path: &str) -> Option<u64> {
        self.at(path)?.as_u64()
    }

    pub(crate) fn real(&self, path: &str) -> Option<f64> {
        self.at(path)?.as_f64()
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// Whether the member at `path` is the text `value`.
    pub(crate) fn is(&self, path: &str, value: &str) -> bool {
        self.text(path) == Some(value)
    }

    /// The list at `path`; empty if it is missing.
    pub(crate) fn list(&self, path: &str) -> &[Value] {
        self.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The distribution at `path`, if it has buckets.
    pub(crate) fn times(&self, path: &str) -> Option<&Distribution> {
        self.times.iter().find(|(known, _)| known == path).map(|(_, times)| times)
    }

    /// All members as `T`; members that are missing or do not fit leave the default.
    pub(crate) fn members<'a, T: Deserialize<'a> + Default>(&'a self) -> T {
        T::deserialize(&self.members).unwrap_or_default()
    }

    /// The number at `path`, to be shown by `show`.
    pub(crate) fn figure(&self, path: &str, show: fn(f64) -> Quantity) -> Option<Figure> {
        let value = self.real(path)?;
        Some(Figure::new(value, show(value), self.id, path))
    }

    /// A table cell with the number at `path`; empty if it is not known.
    pub(crate) fn cell(&self, path: &str, show: fn(f64) -> Quantity) -> Words {
        cell(self.figure(path, show))
    }

    pub(crate) fn count(&self, path: &str) -> Words {
        self.cell(path, number::whole)
    }

    /// A table cell with the text at `path`; empty if it is not known.
    pub(crate) fn word(&self, path: &str) -> Words {
        self.text(path).filter(|text| !text.is_empty()).map(Words::from).unwrap_or_default()
    }

    /// A table cell with a size, such as `64 B`.
    pub(crate) fn size(&self, path: &str) -> Words {
        self.whole(path).map(|size| Words::from(format!("{size} B"))).unwrap_or_default()
    }

    /// A table cell with the rate that was asked for.
    pub(crate) fn asked(&self) -> Words {
        self.whole("rate_asked").map(|rate| Words::from(number::asked(rate))).unwrap_or_default()
    }

    /// A table cell that leads to this line.
    pub(crate) fn link(&self) -> Words {
        Words::new().line(self.id, self.place())
    }

    /// The measured threads of the line: whose each is, and the path before its conditions.
    pub(crate) fn parties(&self) -> Vec<(String, String)> {
        let own = || vec![(String::new(), String::new())];
        match self.kind {
            Kind::Publisher | Kind::Subscriber | Kind::Pong | Kind::Jitter => own(),
            Kind::Run => {
                let publisher = self.at("publisher").map(|_| "publisher's ".to_owned());
                let subscribers = (0..self.list("subscribers").len()).map(|at| {
                    let number = if at == 0 { String::new() } else { format!(" {}", at + 1) };
                    (format!("subscriber{number}'s "), format!("subscribers[{at}]."))
                });
                let publisher = publisher.map(|whose| (whose, "publisher.".to_owned()));
                publisher.into_iter().chain(subscribers).collect()
            }
            // Rates have no conditions.
            Kind::Persist if self.at("receiver").is_none() => Vec::new(),
            Kind::Ping | Kind::Baseline | Kind::Persist => {
                let receiver = self.at("receiver");
                let receiver = receiver.map(|_| ("receiver's ".to_owned(), "receiver.".to_owned()));
                own().into_iter().chain(receiver).collect()
            }
            Kind::Pipes | Kind::Rings => {
                let threads = 0..self.list("threads").len();
                threads.map(|at| (String::new(), format!("threads[{at}]."))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Reasons for doubt that the line gives, of all its threads.
    pub(crate) fn doubts(&self) -> Vec<&str> {
        let parties = self.parties();
        let lists =
            parties.iter().map(|(_, path)| self.list(&format!("{path}interference.doubts")));
        lists.flatten().filter_map(Value::as_str).collect()
    }

    /// Messages that were lost, repeated or damaged.
    pub(crate) fn wrong(&self) -> u64 {
        match self.kind {
            Kind::Subscriber | Kind::Persist => self.wrong_of_subscriber(""),
            Kind::Run => (0..self.list("subscribers").len())
                .map(|at| self.wrong_of_subscriber(&format!("subscribers[{at}].")))
                .fold(0, u64::saturating_add),
            Kind::Rival if self.is("peer", "lanecast") => self.sum(&["lost", "damaged"]),
            Kind::Ping => {
                // Missing messages count as lost, whether or not the transport reported them.
                let sent = self.sum(&["sent", "warmup"]);
                let missing = sent.saturating_sub(self.whole("received").unwrap_or(sent));
                let unreported = missing.saturating_sub(self.sum(&["reported_lost"]));
                self.sum(&["reported_lost", "duplicated", "damaged"]).saturating_add(unreported)
            }
            Kind::Pong => self.sum(&["reported_lost", "duplicated", "damaged"]),
            Kind::Baseline => self.sum(&["lost"]),
            Kind::Fanout => self.sum(&["lost", "excess"]),
            Kind::Pipes | Kind::Rings | Kind::Group => {
                self.sum(&["lost", "duplicated", "disordered", "damaged"])
            }
            _ => 0,
        }
    }

    /// A subscriber may see a loss itself or be told of it by the transport: the larger one counts.
    fn wrong_of_subscriber(&self, path: &str) -> u64 {
        let of = |name: &str| self.whole(&format!("{path}{name}")).unwrap_or(0);
        let lost = of("lost").max(of("reported_lost"));
        lost.saturating_add(of("duplicated")).saturating_add(of("damaged"))
    }

    fn sum(&self, paths: &[&str]) -> u64 {
        paths.iter().filter_map(|path| self.whole(path)).fold(0, u64::saturating_add)
    }

    /// Whether the sender was interrupted before it had sent everything.
    pub(crate) fn was_interrupted(&self) -> bool {
        let path = match self.kind {
            Kind::Publisher | Kind::Ping | Kind::Persist => "interrupted",
            Kind::Run => "publisher.interrupted",
            _ => return false,
        };
        self.at(path).and_then(Value::as_bool) == Some(true)
    }
}

/// Moves the buckets of all distributions in `value` to `times`.
fn take_buckets(
    path: String,
    value: &mut Value,
    times: &mut Vec<(String, Distribution)>,
) -> serde_json::Result<()> {
    match value {
        Value::Object(members) => {
            // In a histogram of even buckets, the member of that name is a number.
            if members.get("buckets").is_some_and(Value::is_array) {
                times.push((path, Distribution::deserialize(&*members)?));
                members.remove("buckets");
                return Ok(());
            }
            for (name, value) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                take_buckets(path, value, times)?;
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate().filter(|(_, item)| item.is_object()) {
                take_buckets(format!("{path}[{at}]"), item, times)?;
            }
        }
        _ => {}
    }
    Ok(())
}
