//! The lines of a ping and its pong.
//!
//! The lines of the document's tool come last and together, so that the last ten lines of the
//! output match the tool's.

use super::{conditions, distribution, line, linear};
use crate::linear::LinearShape;
use crate::ping::{Ended, PingResult, PongResult, PongSettings, Settings, Traffic};

/// Options that are only printed; their effect is in the settings already.
#[derive(Clone, Copy, Debug, Default)]
pub struct PingOptions<'a> {
    /// The files of `-c`.
    pub config: &'a str,
    /// The file of `-x`.
    pub xml_config: &'a str,
    /// `-R`.
    pub receive_thread: &'a str,
    /// `-s`.
    pub spin_method: &'a str,
    /// `-p`.
    pub persist_mode: &'a str,
    /// Application of Ultra Messaging files.
    pub application: &'a str,
}

/// The ping's options, as it starts: two lines.
pub fn ping_options(settings: &Settings, options: &PingOptions<'_>) -> String {
    let PingOptions { config, xml_config, receive_thread, spin_method, .. } = options;
    let PingOptions { persist_mode, application, .. } = options;
    let Settings { histogram, warmup, warmup_rate, .. } = settings;
    let LinearShape { buckets, width_ns } = histogram;
    format!(
        "o_affinity_src={}, o_affinity_rcv={}, o_config={config}, o_generic_src={}, \
         o_histogram={histogram}, o_linger_ms={}, o_msg_len={}, o_num_msgs={}, \
         o_persist_mode='{persist_mode}', o_rcv_thread='{receive_thread}', o_rate={}, \
         o_spin_method='{spin_method}', o_warmup={warmup},{warmup_rate}, \
         o_xml_config={xml_config}, \n\
         app_name='{application}', hist_num_buckets={buckets}, hist_ns_per_bucket={width_ns}, \
         persist_mode='{persist_mode}', spin_method='{spin_method}', warmup_loops={warmup}, \
         warmup_rate={warmup_rate}, \n",
        settings.sender.printed(),
        settings.receiver.printed(),
        u8::from(settings.generic),
        settings.linger.as_millis(),
        settings.size,
        settings.messages,
        settings.rate,
    )
}

/// The ping's result: our own lines, then the histogram and the document's lines.
pub fn ping_result(result: &PingResult) -> String {
    let mut text = String::new();
    if let Some(latency) = &result.latency {
        text.push_str(&distribution("actual", &latency.actual));
        text.push_str(&distribution("intended", &latency.intended));
    }
    if let Some(lateness) = &result.lateness {
        text.push_str(&distribution("lateness", lateness));
    }
    let traffic = &result.traffic;
    let left = result.pong_left.unwrap_or("no");
    line(
        &mut text,
        format_args!(
            "hot_threads={}, topics='{},{}', source={}, duplicated={}, damaged={}, \
             back_pressured={}, pong_left='{left}', ",
            result.threads.name(),
            result.topics.ping,
            result.topics.pong,
            result.source,
            traffic.duplicated,
            traffic.damaged,
            result.back_pressured,
        ),
    );
    text.push_str(&fallback(result.io_fallback.as_deref()));
    text.push_str(&conditions(&result.conditions));
    if let Some(receiver) = &result.receiver {
        text.push_str(&conditions(receiver));
    }
    text + &linear(&result.linear) + &ping_end(result)
}

/// The document's last two lines.
pub fn ping_end(result: &PingResult) -> String {
    format!(
        "actual_sends={}, duration_ns={}, result_rate={:.6}, global_max_tight_sends={}, \
         max_flight_size={}, \nRcv: {}\n",
        result.sent,
        result.duration_ns,
        result.rate,
        result.largest_burst,
        result.most_in_flight,
        counts(&result.traffic),
    )
}

/// The pong's options, as it starts.
pub fn pong_options(settings: &PongSettings, options: &PingOptions<'_>) -> String {
    let PingOptions { config, xml_config, receive_thread, spin_method, .. } = options;
    let PingOptions { persist_mode, application, .. } = options;
    format!(
        "o_affinity_rcv={}, o_config={config}, o_exit_on_eos={}, o_generic_src={}, \
         o_persist_mode='{persist_mode}', o_rcv_thread='{receive_thread}', \
         o_spin_method='{spin_method}', o_xml_config={xml_config}, \napp_name='{application}', \
         persist_mode='{persist_mode}', spin_method='{spin_method}', \n",
        settings.place.printed(),
        u8::from(settings.once),
        u8::from(settings.generic),
    )
}

/// A stream ended, and the reason.
pub fn stream_left(ended: &Ended<'_>) -> String {
    let Ended { stream, why, traffic, most_at_once } = ended;
    let most = most_at_once.map_or_else(String::new, |most| format!("max_flight_size={most}, "));
    format!(
        "rcv event EOS, '{}', {}, {}{most}ended='{why}', \n",
        stream.topic,
        stream.source,
        counts(traffic),
    )
}

/// The pong's result, once it has closed.
pub fn pong_end(result: &PongResult) -> String {
    let mut text = String::new();
    line(
        &mut text,
        format_args!(
            "answered={}, {}back_pressured={}, ",
            result.answered,
            counts(&result.traffic),
            result.back_pressured
        ),
    );
    text + &fallback(result.io_fallback.as_deref()) + &conditions(&result.conditions)
}

/// A line that says why datagrams went by sockets, if they were to pass the kernel's stack by.
fn fallback(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!("io_fallback='{reason}', \n"))
}

/// As the document counts; a transport that does not count retransmissions has none to count.
fn counts(traffic: &Traffic) -> String {
    format!(
        "num_rcv_msgs={}, num_rx_msgs={}, num_unrec_loss={}, ",
        traffic.received,
        traffic.recovered.unwrap_or(0),
        traffic.reported_lost
    )
}
