//! Results as lines of `key=value, `: first those of the source documents, then our own.
//!
//! Each value ends with a comma and a space, the last one too, so that a script can split a line
//! at `, ` and a pair at `=`.

use crate::conditions::Conditions;
use crate::distribution::Distribution;
use crate::interference::{Interference, Watched};
use crate::linear::LinearResult;
use crate::outcome::{Figures, JitterResult, PublisherResult, StreamResult, SubscriberResult};
use crate::persistent::FlightResult;
use crate::pinning::Cpus;
use crate::{jitter, publisher, subscriber};
use lanecast_transport::{Gap, Stream};
use std::fmt::Write;

mod round_trip;

pub use round_trip::{
    PingOptions, ping_end, ping_options, ping_result, pong_end, pong_options, stream_left,
};

/// The publisher's options, as it starts.
pub fn publisher_options(
    settings: &publisher::Settings,
    config: &str,
    jitter_loops: u64,
) -> String {
    format!(
        "o_affinity_cpu={}, o_config={config}, o_flags=0x{:02x}, o_jitter_loops={jitter_loops}, \
         o_linger_ms={}, o_msg_len={}, o_num_msgs={}, o_rate={}, o_topic='{}', \
         o_warmup_loops={}, ",
        settings.place.printed(),
        settings.flags.bits(),
        settings.linger.as_millis(),
        settings.size,
        settings.messages,
        settings.rate,
        settings.topics.join(","),
        settings.warmup,
    )
}

/// The subscriber's options, as it starts.
pub fn subscriber_options(settings: &subscriber::Settings, config: &str) -> String {
    format!(
        "o_affinity_cpu={}, o_config={config}, o_fast={}, o_spin_cnt={}, o_topic='{}', ",
        settings.place.printed(),
        u8::from(settings.fast),
        settings.spin,
        settings.topics.join(","),
    )
}

/// The jitter test's options, as it starts.
pub fn jitter_options(settings: &jitter::Settings) -> String {
    format!("o_affinity_cpu={}, o_jitter_loops={}, ", settings.place.printed(), settings.loops)
}

/// The publisher's result: the documents' two lines, then our own.
pub fn publisher_result(result: &PublisherResult) -> String {
    let mut text = format!(
        "actual_sends={}, duration_ns={}, result_rate={:.6}, \n{},{},{:.6}\n",
        result.sent,
        result.duration_ns,
        result.rate,
        result.size,
        result.sent + result.warmup,
        result.rate,
    );
    line(
        &mut text,
        format_args!(
            "burst={}, largest_burst={}, global_max_tight_sends={}, max_flight_size={}, \
             back_pressured={}, subscribers_at_start={}, subscribers_at_end={}, source={}, ",
            result.burst,
            result.largest_burst,
            result.largest_burst,
            known(result.persistence.as_ref().map(|flight| flight.most_in_flight)),
            known(result.back_pressured),
            result.subscribers_at_start,
            result.subscribers_at_end,
            result.source,
        ),
    );
    if let Some(lateness) = &result.lateness {
        text.push_str(&distribution("lateness", lateness));
    }
    let calls = result.calls.as_ref().map(linear).unwrap_or_default();
    calls + &text + &conditions(&result.conditions)
}

/// Counts of all streams together, in the format of the UM tools.
pub fn subscriber_end(result: &SubscriberResult) -> String {
    format!(
        "Rcv: num_rcv_msgs={}, num_rx_msgs={}, num_unrec_loss={}, \n",
        result.figures.received,
        known(result.recovered),
        result.figures.reported_lost,
    )
}

/// Whether all subscribers had read everything when the publisher closed.
pub fn publisher_end(result: &PublisherResult) -> String {
    let drained = result.drained.map_or_else(|| "unknown".to_owned(), |all| all.to_string());
    let mut text = format!("drained={drained}, \n");
    if let Some(flight) = &result.persistence {
        let FlightResult { mode, id, stores, most_in_flight, left_in_flight, .. } = flight;
        let FlightResult { drained_ns, stores_lost, .. } = flight;
        line(
            &mut text,
            format_args!(
                "persist_mode='{mode}', session_id=0x{id:x}, stores='{stores}', \
                 max_flight_size={most_in_flight}, left_in_flight={left_in_flight}, \
                 drained_ns={drained_ns}, stores_lost={stores_lost}, "
            ),
        );
    }
    text
}

/// A publisher has joined.
pub fn joined(stream: &Stream) -> String {
    format!("rcv event BOS, topic_name='{}', source={}, \n", stream.topic, stream.source)
}

/// The transport lost messages.
pub fn lost(gap: &Gap<'_>) -> String {
    format!(
        "rcv event LOST, topic_name='{}', source={}, first={}, count={}, why='{}', \n",
        gap.stream.topic,
        gap.stream.source,
        gap.first,
        gap.count,
        gap.why.describe(),
    )
}

/// A stream ended (`EOS`), or this side ended before it did (`stopped`), with its counts.
pub fn stream_result(result: &StreamResult) -> String {
    let event = if result.ended.is_some() { "rcv event EOS" } else { "rcv stopped" };
    let figures = &result.figures;
    let mut text = format!(
        "{event}, '{}', {}, num_rcv_msgs={}, ",
        result.topic, result.source, figures.received
    );
    if let Some(latency) = &figures.latency {
        let actual = &latency.actual;
        let _ = write!(
            text,
            "min_latency={}, max_latency={}, average latency={:.0}, ",
            actual.min_ns, actual.max_ns, actual.mean_ns
        );
    }
    text.push('\n');
    let ended = result.ended.unwrap_or("still there");
    line(&mut text, format_args!("{}ended='{ended}', ", counts(figures)));
    if let Some(latency) = &figures.latency {
        text.push_str(&distribution("actual", &latency.actual));
        text.push_str(&distribution("intended", &latency.intended));
    }
    text
}

fn counts(figures: &Figures) -> String {
    let first = figures.first_number.map_or_else(|| "none".to_owned(), |number| number.to_string());
    format!(
        "lost={}, reported_lost={}, duplicated={}, damaged={}, unchecked={}, warmup={}, \
         first_number={first}, duration_ns={}, result_rate={:.6}, ",
        figures.lost,
        figures.reported_lost,
        figures.duplicated,
        figures.damaged,
        figures.unchecked,
        figures.warmup,
        figures.duration_ns,
        figures.rate,
    )
}

/// The histogram that the documents' latency tools print: a count per line, then their lines.
pub fn linear(result: &LinearResult) -> String {
    let mut text = String::new();
    for count in &result.counts {
        line(&mut text, format_args!("{count}"));
    }
    line(
        &mut text,
        format_args!(
            "o_histogram={},{}, hist_overflows={}, hist_min_sample={}, hist_max_sample={},\n\
             hist_num_samples={}, average_sample={:.0},",
            result.buckets,
            result.width_ns,
            result.overflows,
            result.min_ns,
            result.max_ns,
            result.samples,
            result.mean_ns,
        ),
    );
    let percentiles: Vec<_> =
        result.percentiles.iter().map(|(per_cent, ns)| format!("{per_cent}={ns}")).collect();
    line(&mut text, format_args!("Percentiles: {}", percentiles.join(", ")));
    text
}

/// The jitter test's result: the documents' line, then our own.
pub fn jitter_result(result: &JitterResult) -> String {
    let mut text = format!("ts_min_ns={}, ts_max_ns={}, \n", result.ts_min_ns, result.ts_max_ns);
    text.push_str(&distribution("gap", &result.gaps));
    line(
        &mut text,
        format_args!(
            "long_gaps={}, lost_share={:.6}, duration_ns={}, clock={}, clock_cost_ns={:.1}, \
             monotonic_cost_ns={:.1}, {}raise={}, ",
            result.long_gaps,
            result.lost_share,
            result.duration_ns,
            result.clock,
            result.clock_cost_ns,
            result.monotonic_cost_ns,
            cpus(&result.cpus),
            result.raise,
        ),
    );
    text + &interference(&result.interference)
}

/// The conditions of a run, and what disturbed it.
pub fn conditions(conditions: &Conditions) -> String {
    let mut text = String::new();
    line(
        &mut text,
        format_args!(
            "transport={}, {}wait={}, window={}, touch={}, clock={}, clock_cost_ns={:.1}, \
             recording_cost_ns={:.1}, {}raise={}, ",
            conditions.transport,
            conditions.io.map_or_else(String::new, |io| format!("io='{io}', ")),
            conditions.wait,
            conditions.window,
            conditions.touch,
            conditions.clock,
            conditions.clock_cost_ns,
            conditions.recording_cost_ns,
            cpus(&conditions.cpus),
            conditions.raise,
        ),
    );
    text + &interference(&conditions.interference)
}

fn cpus(cpus: &Cpus) -> String {
    let pinned = cpus.pinned.map_or_else(|| "none".to_owned(), |cpu| cpu.to_string());
    format!(
        "pinned_cpu={pinned}, cpu_choice={}, ran_on_cpu={}, online_cpus={}, ",
        cpus.choice, cpus.ran_on, cpus.online
    )
}

fn known(value: Option<u64>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

fn interference(found: &Interference) -> String {
    format!(
        "involuntary_switches={}, voluntary_switches={}, waited_ns={}, stolen_ns={}, \
         longest_gap_ns={}, gap_watched={}, watched_ns={}, verdict='{}', \n",
        known(found.involuntary_switches),
        known(found.voluntary_switches),
        known(found.waited_ns),
        known(found.stolen_ns),
        known(found.longest_gap_ns),
        found.gap_watched.map_or("unknown", Watched::name),
        found.elapsed_ns,
        found.verdict(),
    )
}

fn distribution(of: &str, found: &Distribution) -> String {
    format!(
        "{of}_min_ns={}, {of}_p50_ns={}, {of}_p90_ns={}, {of}_p99_ns={}, {of}_p99_9_ns={}, \
         {of}_p99_99_ns={}, {of}_p99_999_ns={}, {of}_max_ns={}, {of}_mean_ns={:.1}, \
         {of}_samples={}, \n",
        found.min_ns,
        found.p50_ns,
        found.p90_ns,
        found.p99_ns,
        found.p99_9_ns,
        found.p99_99_ns,
        found.p99_999_ns,
        found.max_ns,
        found.mean_ns,
        found.samples,
    )
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests;
