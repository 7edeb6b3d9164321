//! Measures the time to read a message and to evaluate a filter on this machine.

use lanecast_base::clock::Clock;
use lanecast_filter::fields::FieldSet;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Message, Plan};
use serde::Serialize;
use std::hint::black_box;

/// A sample takes so long at least, so that reading the clock hardly counts.
const SAMPLE_NS: u64 = 20_000;
/// Before samples count.
const WARM_UP_NS: u64 = 20_000_000;
/// All of them together.
const RUN_NS: u64 = 200_000_000;
/// More samples tell nothing new.
const SAMPLES_MAX: usize = 5_000;

/// Times for one message, of samples that are means over several.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Cost {
    pub(super) p50_ns: f64,
    pub(super) p99_ns: f64,
    pub(super) samples: usize,
    pub(super) messages_per_sample: usize,
    pub(super) clock: &'static str,
}

/// Measures with `messages` in turn, of which there is one at least.
pub(super) fn measure(
    filter: &Filter,
    kind: MessageType,
    messages: &[Vec<u8>],
) -> anyhow::Result<Cost> {
    let mut fields = FieldSet::new(kind);
    let plan = Plan::new(filter, &mut fields)?;
    let (mut reader, mut row) = (Reader::new(&fields), Row::new());
    let environment = Environment::default();
    let mut messages = messages.iter().cycle();
    let mut evaluate = |count: usize| {
        for bytes in messages.by_ref().take(count) {
            if reader.read(black_box(bytes), &mut row).is_ok() {
                let message = Message { row: &row, bytes, environment: &environment };
                black_box(plan.matches(&message));
            }
        }
    };
    let clock = Clock::host();
    let mut sample = |count: usize| {
        let start = clock.ticks_ordered();
        evaluate(count);
        clock.ns(clock.ticks_ordered().wrapping_sub(start))
    };
    let (mut count, mut spent) = (1, 0);
    while spent < WARM_UP_NS {
        let took = sample(count);
        spent += took.max(1);
        if took < SAMPLE_NS {
            count *= 2;
        }
    }
    let (mut times, mut spent) = (Vec::new(), 0);
    while spent < RUN_NS && times.len() < SAMPLES_MAX {
        let took = sample(count);
        spent += took.max(1);
        times.push(took as f64 / count as f64);
    }
    times.sort_unstable_by(f64::total_cmp);
    let percentile = |percent: usize| times[(times.len() - 1) * percent / 100];
    Ok(Cost {
        p50_ns: percentile(50),
        p99_ns: percentile(99),
        samples: times.len(),
        messages_per_sample: count,
        clock: clock.name(),
    })
}
