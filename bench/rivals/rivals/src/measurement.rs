//! Result of one repetition on one side.

use anyhow::{Context, Result, ensure};

use rivals_kit::Line;

/// Percentiles of one kind of latency.
#[derive(Clone, Copy, Debug)]
pub struct Percentiles {
    /// Shortest, ns.
    pub min_ns: f64,
    /// Median, ns.
    pub p50_ns: f64,
    /// Nine of ten are not longer, ns.
    pub p90_ns: f64,
    /// 99 of 100 are not longer, ns.
    pub p99_ns: f64,
    /// 999 of 1000 are not longer, ns; where the side tells.
    pub p99_9_ns: Option<f64>,
    /// Longest, ns.
    pub max_ns: f64,
    /// Number of timed messages.
    pub samples: u64,
}

/// Latency from the real and from the intended send time.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// Latency from the stamp of the real send.
    pub actual: Percentiles,
    /// Latency from the scheduled time of the send.
    pub intended: Percentiles,
}

/// Figures of one repetition. With several subscribers: the slowest's rate, all losses.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Messages per second.
    pub rate: f64,
    /// Messages that each subscriber got.
    pub received: u64,
    /// Messages missing, over all subscribers.
    pub lost: u64,
    /// Messages whose body was not what had been sent.
    pub damaged: u64,
    /// Messages missing in the warm-up.
    pub lost_in_warmup: u64,
    /// Only where messages were stamped.
    pub latency: Option<Latency>,
    /// Clock of the stamps.
    pub clock: String,
    /// Cost of reading it, ns.
    pub clock_cost_ns: f64,
    /// In which way the library was used, in a few words; empty where there is only one.
    pub way: String,
}

impl Measurement {
    /// Reads the result line of one subscriber.
    ///
    /// # Errors
    ///
    /// When a figure is missing.
    pub fn from_line(text: &str) -> Result<Self> {
        let line = Line::parse(text);
        let number =
            |key: &str| line.number(key).with_context(|| format!("no {key} in \"{text}\""));
        let latency = match line.get("p50_ns") {
            None => None,
            Some(_) => {
                Some(Latency { actual: spread(&line, "")?, intended: spread(&line, "_intended")? })
            }
        };
        Ok(Self {
            rate: number("rate")?,
            received: number("received")? as u64,
            lost: number("lost")? as u64,
            damaged: number("damaged")? as u64,
            lost_in_warmup: number("warmup_lost")? as u64,
            latency,
            clock: line.get("clock").unwrap_or_default().to_owned(),
            clock_cost_ns: number("clock_cost_ns")?,
            way: line.get("way").unwrap_or_default().to_owned(),
        })
    }

    /// The sustained rate. Messages after a large loss may be a short burst out of a full buffer,
    /// and their rate says little. Where nothing was counted, as in a copy, it is the plain rate.
    pub fn lasting_rate(&self) -> f64 {
        match self.received + self.lost {
            0 => self.rate,
            all => self.rate * self.received as f64 / all as f64,
        }
    }

    /// Joins the figures of all subscribers of one publisher.
    ///
    /// # Errors
    ///
    /// When there are none.
    pub fn joined(all: Vec<Self>) -> Result<Self> {
        let mut all = all.into_iter();
        let mut joined = all.next().context("no subscriber reported")?;
        for other in all {
            joined.rate = joined.rate.min(other.rate);
            joined.received = joined.received.min(other.received);
            joined.lost += other.lost;
            joined.damaged += other.damaged;
            joined.lost_in_warmup += other.lost_in_warmup;
        }
        ensure!(joined.rate > 0.0, "nothing was received");
        Ok(joined)
    }
}

/// Reads the percentiles of one kind; the intended ones have an infix.
pub fn spread(line: &Line, infix: &str) -> Result<Percentiles> {
    let number = |name: &str| {
        let key = format!("{name}{infix}_ns");
        line.number(&key).with_context(|| format!("no {key}"))
    };
    Ok(Percentiles {
        min_ns: number("min")?,
        p50_ns: number("p50")?,
        p90_ns: number("p90")?,
        p99_ns: number("p99")?,
        p99_9_ns: line.number(&format!("p99_9{infix}_ns")),
        max_ns: number("max")?,
        // Who does not say so has timed each message that was received.
        samples: line.number("samples").or(line.number("received")).unwrap_or_default() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "received=10, lost=2, duration_ns=5, rate=100, p50_ns=1, p90_ns=2, \
        p99_ns=3, min_ns=0, max_ns=9, p50_intended_ns=11, p90_intended_ns=12, \
        p99_intended_ns=13, p99_9_intended_ns=14, \
        min_intended_ns=10, max_intended_ns=19, damaged=0, warmup_lost=1, \
        clock=tsc, clock_cost_ns=15.5, ";

    #[test]
    fn the_slowest_subscriber_decides() {
        let fast = Measurement::from_line(LINE).expect("complete line");
        let slow = Measurement { rate: 40.0, ..fast.clone() };
        let joined = Measurement::joined(vec![fast, slow]).expect("two");
        assert_eq!((joined.rate, joined.lost, joined.lost_in_warmup), (40.0, 4, 2));
        assert_eq!(Measurement { lost: 30, ..joined.clone() }.lasting_rate(), 10.0);
        let uncounted = Measurement { received: 0, lost: 0, ..joined.clone() };
        assert_eq!(uncounted.lasting_rate(), 40.0);
        assert_eq!(joined.latency.expect("stamped").intended.p99_ns, 13.0);
        assert_eq!(joined.latency.expect("stamped").intended.p99_9_ns, Some(14.0));
    }

    #[test]
    fn a_missing_figure_is_an_error() {
        assert!(Measurement::from_line("received=10, lost=0, ").is_err());
    }
}
