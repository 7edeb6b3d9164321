//! The result of one repetition, from what the members printed.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

/// Figures of one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Messages that members received from first to last per second: the mean of the members.
    pub rate: f64,
    /// The same in the second half of the time.
    pub steady: f64,
    /// Messages received by all members.
    pub received: u64,
    /// Messages that members with a result sent and others did not receive.
    pub lost: u64,
    /// Messages received again.
    pub duplicated: u64,
    /// Messages before which one of the same sender was missing.
    pub disordered: u64,
    /// CPU time of all members, in nanoseconds.
    pub cpu_ns: u64,
    /// Members whose run ended before they had everything.
    pub incomplete: u64,
    /// Whether all members delivered in one order; null where only one sender's order counts.
    pub one_order: Option<bool>,
    /// Half of the round trips, or of the deliveries, took no longer, in nanoseconds.
    pub p50_ns: u64,
    /// The same of nine in ten.
    pub p90_ns: u64,
    /// The same of 99 in a hundred.
    pub p99_ns: u64,
    /// Longest time without a delivery, at the member where it was longest.
    pub pause_ns: u64,
    /// Time from the signal to the view without the member, at the slowest survivor.
    pub view_ns: Option<u64>,
    /// Whether survivors received the same messages of the lost member.
    pub agree: Option<bool>,
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
        let mut outcome = Self::default();
        let results: Vec<(usize, HashMap<&str, &str>)> = survivors()
            .filter_map(|(index, text)| Some((index, Lines(text).named("result").next()?)))
            .collect();
        outcome.incomplete = (survivors().count() - results.len()) as u64;
        let mut by: Vec<Vec<u64>> = Vec::new();
        for (_, words) in &results {
            let (received, elapsed) = (number(words, "received"), number(words, "elapsed"));
            outcome.rate += received as f64 * 1e9 / elapsed.max(1) as f64;
            outcome.steady += number(words, "steady") as f64;
            outcome.received += received;
            outcome.duplicated += number(words, "duplicated");
            outcome.disordered += number(words, "disordered");
            outcome.cpu_ns += number(words, "cpu");
            outcome.incomplete += u64::from(number(words, "complete") == 0);
            outcome.pause_ns = outcome.pause_ns.max(number(words, "pause"));
            outcome.p50_ns = outcome.p50_ns.max(number(words, "p50"));
            outcome.p90_ns = outcome.p90_ns.max(number(words, "p90"));
            outcome.p99_ns = outcome.p99_ns.max(number(words, "p99"));
            let counts = words.get("by").copied().unwrap_or_default().split(',');
            by.push(counts.map(|count| count.parse().unwrap_or(0)).collect());
        }
        let count = results.len().max(1) as f64;
        outcome.rate /= count;
        outcome.steady /= count;
        for (sender, words) in &results {
            let sent = number(words, "sent");
            let got = by.iter().map(|counts| counts.get(*sender).copied().unwrap_or(0));
            outcome.lost += got.map(|got| sent.saturating_sub(got)).sum::<u64>();
        }
        if is_total {
            let mut orders = results.iter().map(|(_, words)| words.get("hash"));
            let first = orders.next();
            outcome.one_order = Some(orders.all(|order| Some(order) == first));
        }
        if let Some(Struck { victim, at }) = struck {
            let counts: Vec<_> = by.iter().map(|counts| counts.get(victim)).collect();
            outcome.agree = Some(counts.windows(2).all(|pair| pair[0] == pair[1]));
            let views = survivors().map(|(_, text)| {
                let views = Lines(text).named("view");
                let later = views.filter(|words| number(words, "at") > at);
                let mut without =
                    later.filter(|words| number(words, "members") < printed.len() as u64);
                without.next().map(|words| number(&words, "at") - at)
            });
            outcome.view_ns = views.collect::<Option<Vec<_>>>().and_then(|it| it.into_iter().max());
        }
        if let Some(words) = printed.iter().find_map(|text| Lines(text).named("rounds").next()) {
            outcome.p50_ns = number(&words, "p50");
            outcome.p90_ns = number(&words, "p90");
            outcome.p99_ns = number(&words, "p99");
            outcome.received = number(&words, "count");
            outcome.incomplete = 0;
        }
        outcome
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
            cpu_ns: sum("cpu_ns"),
            incomplete: u64::from(line["complete"] != true),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(by: &str, complete: u8) -> String {
        format!(
            "view at=5 members=3\nstarted at=6\nview at=120 members=2\n\
             result sent=100 cpu=7 complete={complete} received=150 elapsed=1000000000 steady=160 \
             duplicated=0 disordered=0 pause=9 hash=ab by={by}\n"
        )
    }

    #[test]
    fn survivors_that_disagree_are_seen() {
        let struck = Some(Struck { victim: 2, at: 100 });
        let printed = [member("100,100,50", 1), member("100,99,50", 0), "started at=6\n".into()];
        let outcome = Outcome::of(&printed, true, struck);
        assert_eq!((outcome.rate, outcome.steady, outcome.received), (150.0, 160.0, 300));
        assert_eq!((outcome.lost, outcome.incomplete, outcome.cpu_ns), (1, 1, 14));
        assert_eq!((outcome.view_ns, outcome.agree), (Some(20), Some(true)));
        assert_eq!((outcome.one_order, outcome.pause_ns), (Some(true), 9));
        let printed = [member("100,100,50", 1), member("100,100,49", 1), String::new()];
        assert_eq!(Outcome::of(&printed, false, struck).agree, Some(false));
        let outcome = Outcome::of(&[member("1,1,1", 1), String::new()], false, struck);
        assert_eq!((outcome.incomplete, outcome.view_ns), (1, None), "one printed nothing");
    }

    #[test]
    fn half_a_line_is_none() {
        assert!(!Lines("result sent=1").has_ended(false));
        assert!(Lines("view at=1\nresult sent=1\n").has_ended(false));
        assert!(!Lines("result sent=1\n").has_ended(true));
    }
}
