//! HdrHistogram's interval log, version 2: written for other tools, and read from them.

use crate::distribution::Distribution;
use crate::line::{Kind, Line};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use serde_json::{Value, json};
use std::io::Read;
use std::time::Duration;

/// Significant digits: enough to tell all buckets of a line apart.
const DIGITS: u8 = 4;
/// Longer times count as an hour: the counters reach no further without growing.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Upper bound of the counters of the widest and finest histogram, in bytes.
const LONGEST_PAYLOAD: u32 = 64 << 20;
/// First bytes of a compressed histogram of version 2.
const COMPRESSED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];

/// One interval of a log.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) tag: String,
    pub(crate) started_unix_ns: u64,
    pub(crate) duration_ns: u64,
    pub(crate) times: &'a Distribution,
}

/// `times` as the library's histogram; minimum and maximum keep their exact values.
pub(crate) fn histogram(times: &Distribution) -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
        .expect("the bounds are ascending and the digits at most five");
    let (least, most) = (times.least().unwrap_or(0), times.most().unwrap_or(0));
    // The format counts up to 2^63 samples.
    let mut room = i64::MAX as u64;
    for &(ns, count) in times.buckets.iter().filter(|(_, count)| *count > 0) {
        let count = count.min(room);
        room -= count;
        histogram.saturating_record_n(ns.max(least).min(most.max(least)), count);
    }
    histogram
}

/// A log with an interval for each of `entries`.
pub(crate) fn write(entries: &[Entry<'_>]) -> String {
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Logged with lanecast; times in nanoseconds, Interval_Max in them too]");
    let written = builder.begin_log_with(&mut log, &mut serializer).and_then(|mut writer| {
        for entry in entries {
            let tag: String = entry.tag.chars().map(|c| if is_tag(c) { c } else { '_' }).collect();
            let (start, length) = (entry.started_unix_ns, entry.duration_ns);
            let (start, length) = (Duration::from_nanos(start), Duration::from_nanos(length));
            writer
                .write_histogram(&histogram(entry.times), start, length, Tag::new(&tag))
                .map_err(|error| std::io::Error::other(error.to_string()))?;
        }
        Ok(())
    });
    written.expect("memory takes every byte, and the bounds fit the format");
    String::from_utf8(log).expect("the log is text")
}

/// Whether `c` may stand in a tag.
fn is_tag(c: char) -> bool {
    c != ',' && !c.is_whitespace() && !c.is_control()
}

/// The interval on a line of a log; none for comments and the column names.
pub(crate) fn parse(text: &str) -> Result<Option<Line>, String> {
    if text.starts_with(['#', '"']) {
        return Ok(None);
    }
    let line = format!("{text}\n");
    let interval = match IntervalLogIterator::new(line.as_bytes()).next() {
        None | Some(Ok(LogEntry::StartTime(_) | LogEntry::BaseTime(_))) => return Ok(None),
        Some(Ok(LogEntry::Interval(interval))) => interval,
        Some(Err(_)) => return Err("no line of a HdrHistogram interval log".to_owned()),
    };
    let bytes = STANDARD
        .decode(interval.encoded_histogram())
        .map_err(|error| format!("the histogram is damaged: {error}"))?;
    if payload_length(&bytes).is_some_and(|length| length > LONGEST_PAYLOAD) {
        return Err("the histogram is damaged: it claims to be longer than any can be".to_owned());
    }
    let histogram: Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("the histogram is damaged, or not of version 2: {error}"))?;
    let tag = interval.tag().map(|tag| tag.as_str());
    let line = Line::new(Kind::Log, text, members(tag, &histogram));
    line.map(Some).map_err(|error| error.to_string())
}

/// The length of the counters that a histogram claims to have, in bytes. The library allocates that
/// much before it reads them.
#[expect(clippy::big_endian_bytes, reason = "the format's order")]
fn payload_length(bytes: &[u8]) -> Option<u32> {
    let mut start = [0; 8];
    match bytes.split_first_chunk::<8>() {
        Some((outer, packed)) if outer.starts_with(&COMPRESSED) => {
            ZlibDecoder::new(packed).read_exact(&mut start).ok()?;
        }
        Some((outer, _)) => start = *outer,
        None => return None,
    }
    let (_, length) = start.split_first_chunk::<4>()?;
    Some(u32::from_be_bytes(*length.first_chunk()?))
}

/// The interval's tag and distribution, as members of a line.
fn members(tag: Option<&str>, histogram: &Histogram<u64>) -> Value {
    if histogram.is_empty() {
        return json!({ "tag": tag });
    }
    let buckets = histogram.iter_recorded();
    let buckets = buckets.map(|step| json!([step.value_iterated_to(), step.count_at_value()]));
    let at = |share| histogram.value_at_quantile(share);
    json!({
        "tag": tag,
        "min_ns": histogram.min(),
        "p50_ns": at(0.5),
        "p90_ns": at(0.9),
        "p99_ns": at(0.99),
        "p99_9_ns": at(0.999),
        "p99_99_ns": at(0.9999),
        "p99_999_ns": at(0.99999),
        "max_ns": histogram.max(),
        "mean_ns": histogram.mean(),
        "samples": histogram.len(),
        "buckets": buckets.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    fn sample() -> Distribution {
        Distribution {
            min_ns: Some(97),
            max_ns: Some(5_000_000),
            samples: Some(107),
            buckets: vec![(97, 50), (98, 50), (4097, 6), (5_001_215, 1)],
            ..Distribution::default()
        }
    }

    #[test]
    fn a_written_histogram_log_can_be_read() {
        let times = sample();
        let entry = Entry {
            tag: "a.jsonl:3, actual".to_owned(),
            started_unix_ns: 1_500_000_000_250_000_000,
            duration_ns: 2_000_000_000,
            times: &times,
        };
        let log = write(&[entry.clone(), entry]);
        let found: Vec<_> = log.lines().filter_map(|line| parse(line).unwrap()).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].text("tag"), Some("a.jsonl:3__actual"));
        assert!(log.contains(",1500000000.250,2.000,"), "{log}");
        let read = found[1].times("").unwrap();
        assert_eq!((read.counted(), read.samples), (107, Some(107)));
        assert_eq!(read.buckets[..3], [(97, 50), (98, 50), (4097, 6)]);
        assert_eq!([found[1].whole("p50_ns"), found[1].whole("p99_ns")], [Some(98), Some(4097)]);
        assert!(read.most().unwrap().abs_diff(5_000_000) < 500);
    }

    #[test]
    fn damage_is_an_error() {
        let log = write(&[Entry {
            tag: String::new(),
            started_unix_ns: 0,
            duration_ns: 0,
            times: &sample(),
        }]);
        let line = log.lines().last().unwrap();
        assert!(parse(line).unwrap().is_some());
        let cut = line.len() - 20;
        assert!(parse(&line[..cut]).unwrap_err().contains("damaged"));
        assert!(parse("1,2").unwrap_err().contains("no line"));
    }
    #[test]
    fn a_length_that_cannot_be_is_refused_before_memory_is_taken_for_it() {
        let plain = [&COMPRESSED[..3], &[0x13], &[0xff; 4], &[0; 32]].concat();
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&plain).unwrap();
        let packed = [&COMPRESSED[..], &[0; 4], &packed.finish().unwrap()].concat();
        for bytes in [plain, packed] {
            let line = format!("0.0,0.0,0.0,{}", STANDARD.encode(bytes));
            assert!(parse(&line).unwrap_err().contains("longer than any"), "{line}");
        }
    }
}
