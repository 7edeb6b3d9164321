//! The table of a group test, as all members print it.

use crate::table::{grouped, rate, render, time};
use lanecast_report::TextTable;
use serde_json::Value;

/// The table of a measurement line, and what is wrong in it.
pub(super) fn shown(line: &Value) -> String {
    let number = |value: &Value| grouped(value.as_u64().unwrap_or(0));
    let mut table = TextTable::new(&[
        "member",
        "role",
        ">received",
        ">rate",
        ">throughput",
        ">time",
        ">lost",
        ">duplicated",
        ">out of order",
        ">damaged",
    ]);
    for member in list(&line["results"]) {
        let role = if member["is_sender"] == true { "sender" } else { "receiver" };
        table.row([
            text(&member["name"]),
            role.to_owned(),
            number(&member["received"]),
            rate(real(&member["rate"])),
            megabytes(&member["bytes_per_second"]),
            time(member["elapsed_ns"].as_u64().unwrap_or(0)),
            number(&member["lost"]),
            number(&member["duplicated"]),
            number(&member["disordered"]),
            number(&member["damaged"]),
        ]);
    }
    let mut shown = format!(
        "{}: {} members, {} senders, {} messages of {} bytes each\n\n{}",
        text(&line["transport"]),
        line["members"],
        line["senders"],
        number(&line["messages"]),
        line["size"],
        render(&table)
    );
    shown += &format!(
        "\ncombined: {} averaged over all receivers (throughput={})\ncluster:  {} ({})\n",
        rate(real(&line["rate"])),
        megabytes(&line["bytes_per_second"]),
        rate(real(&line["cluster_rate"])),
        megabytes(&line["cluster_bytes_per_second"]),
    );
    if let Some(per_second) = line["received_per_cpu_second"].as_f64() {
        shown += &format!("received for each second of CPU time: {}\n", grouped(per_second as u64));
    }
    for member in list(&line["missing"]) {
        shown += &format!("no result: {}\n", text(member));
    }
    for member in list(&line["results"]) {
        if let Some(why) = member["ended"].as_str() {
            shown += &format!("{} ended early: {why}\n", text(&member["name"]));
        }
    }
    for disagreement in list(&line["disagreements"]) {
        shown += &format!("members disagree on {}\n", text(disagreement));
    }
    shown + &stats(line)
}

/// Counters of `-dump_stats`.
fn stats(line: &Value) -> String {
    let Some(stats) = line["stats"].as_array() else { return String::new() };
    let mut table = TextTable::new(&["counter", ">value"]);
    for counter in stats {
        table.row([text(&counter["name"]), grouped(counter["value"].as_u64().unwrap_or(0))]);
    }
    format!("\nStatistics of {}\n{}", text(&line["name"]), render(&table))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    crate::printable::printable(value.as_str().unwrap_or(""))
}

fn real(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn megabytes(value: &Value) -> String {
    format!("{:.2} MB/s", real(value) / 1e6)
}
