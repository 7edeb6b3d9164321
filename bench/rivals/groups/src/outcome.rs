//! The result of one repetition, from what the members printed.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use crate::times::Times;

/// Figures of one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Messages that members received from first to last per second: the mean of the members.
    pub rate: f64,
    /// The same in the second half of the time.
    pub steady: f64,
    /// Messages received by all members.
    pub received: u64,
    /// Messages of other members among them: own messages do not cross the network.
    pub of_others: u64,
    /// Messages that members with a result sent and others did not receive.
    pub lost: u64,
    /// Messages received again, or after later ones.
    pub duplicated: u64,
    /// Messages before which one of the same sender was missing.
    pub disordered: u64,
    /// Messages whose content is not as sent.
    pub damaged: u64,
    /// CPU time of all members, in nanoseconds.
    pub cpu_ns: u64,
    /// Members whose run ended before they had everything.
    pub incomplete: u64,
    /// Whether all members delivered in one order; null where only one sender's order counts.
    pub one_order: Option<bool>,
    /// Times of all members together, from when a message was due, or from a request.
    pub from_due: Percentiles,
    /// The same deliveries from just before the message was sent, which hides a late sender.
    pub from_sent: Percentiles,
    /// Time in which the members started, found each other and warmed up.
    pub ready_ns: u64,
    /// Longest time without a delivery, at the member where it was longest.
    pub pause_ns: u64,
    /// Time from the signal to the view without the member, at the slowest survivor.
    pub view_ns: Option<u64>,
    /// Whether all survivors delivered the same messages of the lost member, by sequence, content
    /// and order; null if fewer than two have a result, or one has none.
    pub agree: Option<bool>,
}

/// Percentiles in nanoseconds; 0 without times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Number of times.
    pub count: u64,
    /// Half took no longer.
    pub p50_ns: u64,
    /// Nine in ten took no longer.
    pub p90_ns: u64,
    /// 99 in a hundred took no longer.
    pub p99_ns: u64,
}

impl Percentiles {
    fn of(times: &Times) -> Self {
        let [p50_ns, p90_ns, p99_ns] = [50.0, 90.0, 99.0].map(|it| times.percentile(it));
        Self { count: times.count(), p50_ns, p90_ns, p99_ns }
    }
}

/// Output of a member: lines of a name and `key=value` words.
#[derive(Debug)]
pub struct Lines<'a>(pub &'a str);

impl<'a> Lines<'a> {
    /// The words of each line of this name.
    pub fn named(&self, name: &str) -> impl Iterator<Item = HashMap<&'a str, &'a str>> + use<'a> {
        let name = format!("{name} ");
        // The last line may not be whole yet.
        let whole = self.0.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let rests = whole.filter_map(move |line| line.strip_prefix(&name[..]));
        rests.map(|rest| rest.split(' ').filter_map(|word| word.split_once('=')).collect())
    }

    /// Whether it has printed a result, or its round trips.
    pub fn has_ended(&self, is_round: bool) -> bool {
        self.named(if is_round { "rounds" } else { "result" }).next().is_some()
    }
}

/// The times of all members together.
fn times(printed: &[String], from: &str) -> Percentiles {
    let mut times = Times::default();
    for text in printed {
        let lines = Lines(text).named("times").filter(|words| words.get("from") == Some(&from));
        lines.for_each(|words| times.add_printed(words.get("counts").copied().unwrap_or_default()));
    }
    Percentiles::of(&times)
}

/// Whether all values are there and the same; null without any.
fn are_equal<T: PartialEq>(mut values: impl Iterator<Item = Option<T>>) -> Option<bool> {
    let first = values.next()?;
    Some(first.is_some() && values.all(|value| value == first))
}

/// One of the values of a word, which commas part.
fn part<'a>(words: &HashMap<&str, &'a str>, key: &str, index: usize) -> Option<&'a str> {
    words.get(key)?.split(',').nth(index)
}

fn number(words: &HashMap<&str, &str>, key: &str) -> u64 {
    words.get(key).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A signal to a member, and its time.
#[derive(Clone, Copy, Debug)]
pub struct Struck {
    /// The member.
    pub victim: usize,
    /// On the monotonic clock, in nanoseconds.
    pub at: u64,
}

impl Outcome {
    /// The outcome of what all members printed; `struck` has no result.
    pub fn of(printed: &[String], is_total: bool, struck: Option<Struck>) -> Self {
        let is_lost = |index: usize| struck.is_some_and(|it| it.victim == index);
        let survivors = || printed.iter().enumerate().filter(|(index, _)| !is_lost(*index));
        let results: Vec<(usize, HashMap<&str, &str>)> = survivors()
            .filter_map(|(index, text)| Some((index, Lines(text).named("result").next()?)))
            .collect();
        let incomplete = (survivors().count() - results.len()) as u64;
        let mut outcome = Self { incomplete, ..Self::default() };
        for (member, words) in &results {
            outcome.add(words);
            let own = part(words, "by", *member).and_then(|own| own.parse().ok()).unwrap_or(0);
            outcome.of_others += number(words, "received").saturating_sub(own);
        }
        let count = results.len().max(1) as f64;
        outcome.rate /= count;
        outcome.steady /= count;
        for (sender, words) in &results {
            let sent = number(words, "sent");
            let got = results.iter().map(|(_, other)| part(other, "by", *sender));
            let got = got.map(|got| got.and_then(|got| got.parse().ok()).unwrap_or(0));
            outcome.lost += got.map(|got: u64| sent.saturating_sub(got)).sum::<u64>();
        }
        let is_whole = results.len() > 1 && results.len() == survivors().count();
        if is_total && is_whole {
            outcome.one_order = are_equal(results.iter().map(|(_, words)| words.get("hash")));
        }
        if let Some(Struck { victim, at }) = struck {
            if is_whole {
                let taken = |key| results.iter().map(move |(_, words)| part(words, key, victim));
                outcome.agree =
                    are_equal(taken("digests").zip(taken("by")).map(|it| it.0.zip(it.1)));
            }
            let views = survivors().map(|(_, text)| {
                let views = Lines(text).named("view");
                let later = views.filter(|words| number(words, "at") > at);
                let mut without =
                    later.filter(|words| number(words, "members") < printed.len() as u64);
                without.next().map(|words| number(&words, "at") - at)
            });
            outcome.view_ns = views.collect::<Option<Vec<_>>>().and_then(|it| it.into_iter().max());
        }
        outcome.from_due = times(printed, "due");
        outcome.from_sent = times(printed, "sent");
        if printed.iter().any(|text| Lines(text).has_ended(true)) {
            outcome.received = outcome.from_due.count;
            outcome.incomplete = 0;
        }
        outcome
    }

    /// Adds the result of one member; rates are sums until all are there.
    fn add(&mut self, words: &HashMap<&str, &str>) {
        let (received, elapsed) = (number(words, "received"), number(words, "elapsed"));
        self.rate += received as f64 * 1e9 / elapsed.max(1) as f64;
        self.steady += number(words, "steady") as f64;
        self.received += received;
        self.duplicated += number(words, "duplicated");
        self.disordered += number(words, "disordered");
        self.damaged += number(words, "damaged");
        self.cpu_ns += number(words, "cpu");
        self.incomplete += u64::from(number(words, "complete") == 0);
        self.pause_ns = self.pause_ns.max(number(words, "pause"));
    }

    /// The promises that were not kept, in words; nothing that was received is the first of them.
    pub fn faults(&self) -> Vec<String> {
        let counts = [
            (self.lost, "lost"),
            (self.duplicated, "twice or late"),
            (self.disordered, "behind a gap"),
            (self.damaged, "damaged"),
            (self.incomplete, "members without everything"),
        ];
        let mut faults: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, fault)| format!("{count} {fault}"))
            .collect();
        if self.received == 0 {
            faults.push("nothing was received".into());
        }
        if self.one_order == Some(false) {
            faults.push("not one order".into());
        }
        if self.agree == Some(false) {
            faults.push("survivors disagree".into());
        }
        faults
    }

    /// The outcome of the measurement line of `lanecast perf group`.
    pub fn of_tool(line: &Value) -> Self {
        let whole = |value: &Value| value.as_u64().unwrap_or(0);
        let results = line["results"].as_array().map(Vec::as_slice).unwrap_or_default();
        let sum = |key: &str| results.iter().map(|member| whole(&member[key])).sum();
        let intervals = line["intervals"].as_array().map(Vec::as_slice).unwrap_or_default();
        let sample = |value: &Value| (whole(&value["elapsed_ns"]), whole(&value["count"]));
        let steady = match (intervals.get(intervals.len() / 2), intervals.last()) {
            (Some(middle), Some(last)) => {
                let ((from, before), (to, count)) = (sample(middle), sample(last));
                (count - before) as f64 * 1e9 / (to - from).max(1) as f64
            }
            _ => 0.0,
        };
        Self {
            rate: line["rate"].as_f64().unwrap_or(0.0),
            steady,
            received: sum("received"),
            lost: sum("lost"),
            duplicated: sum("duplicated"),
            disordered: sum("disordered"),
            damaged: sum("damaged"),
            cpu_ns: sum("cpu_ns"),
            incomplete: u64::from(line["complete"] != true),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(by: &str, digests: &str, complete: u8) -> String {
        format!(
            "view at=5 members=3\nstarted at=6\nview at=120 members=2\n\
             times from=due counts=10:50,20:1\n\
             result sent=100 cpu=7 complete={complete} received=150 elapsed=1000000000 steady=160 \
             duplicated=0 disordered=0 damaged=0 pause=9 hash=ab by={by} digests={digests}\n"
        )
    }

    #[test]
    fn survivors_that_disagree_are_seen() {
        let struck = Some(Struck { victim: 2, at: 100 });
        let printed = [
            member("100,100,50", "a,b,c", 1),
            member("100,99,50", "a,b,c", 0),
            "started at=6\n".into(),
        ];
        let outcome = Outcome::of(&printed, true, struck);
        assert_eq!((outcome.rate, outcome.steady, outcome.received), (150.0, 160.0, 300));
        assert_eq!((outcome.lost, outcome.incomplete, outcome.cpu_ns), (1, 1, 14));
        assert_eq!((outcome.view_ns, outcome.agree), (Some(20), Some(true)));
        assert_eq!(outcome.of_others, 50 + 51);
        assert_eq!((outcome.one_order, outcome.pause_ns), (Some(true), 9));
        assert_eq!((outcome.from_due.count, outcome.from_due.p50_ns), (102, 10));
        assert_eq!(outcome.faults(), ["1 lost", "1 members without everything"]);
        let agree = |by: &str, digests: &str| {
            let printed = [member("1,1,50", "a,b,c", 1), member(by, digests, 1), String::new()];
            Outcome::of(&printed, false, struck).agree
        };
        assert_eq!(agree("1,1,50", "x,y,c"), Some(true));
        assert_eq!(agree("1,1,49", "a,b,c"), Some(false), "fewer messages");
        assert_eq!(agree("1,1,50", "a,b,d"), Some(false), "as many, but others");
        assert_eq!(agree("1,1", "a,b"), Some(false), "one said nothing of it");
    }

    #[test]
    fn nothing_agrees_with_nothing() {
        let struck = Some(Struck { victim: 2, at: 100 });
        let one = member("1,1,1", "a,b,c", 1);
        let outcome = Outcome::of(&[one, String::new(), String::new()], true, struck);
        assert_eq!((outcome.incomplete, outcome.view_ns), (1, None), "one printed nothing");
        assert_eq!((outcome.agree, outcome.one_order), (None, None));
        let faults = Outcome::of(&[String::new(), String::new()], false, None).faults();
        assert_eq!(faults, ["2 members without everything", "nothing was received"]);
        assert_eq!(Outcome::default().faults(), ["nothing was received"]);
    }

    #[test]
    fn half_a_line_is_none() {
        assert!(!Lines("result sent=1").has_ended(false));
        assert!(Lines("view at=1\nresult sent=1\n").has_ended(false));
        assert!(!Lines("result sent=1\n").has_ended(true));
    }
}
