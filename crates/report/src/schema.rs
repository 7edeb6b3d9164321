//! Names and shapes of all members of measurement lines, as `docs/protocol/measurements.md` lists
//! them. The reader checks each line against this table; sections then read members by path.

use serde_json::{Map, Value};

/// The highest schema number this version reads, and the one it writes.
pub(crate) const SCHEMA: u64 = 1;

/// The JSON types that a member may have. `null` always fits: it means "not known".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A whole number, 0 or more.
    Whole,
    Number,
    Text,
    Flag,
    Object,
    List,
    Any,
}

/// Member names by shape. A name that means different things in different kinds of lines stands in
/// several rows and may have any of their shapes.
const MEMBERS: [(Shape, &str); 7] = [
    (
        Shape::Whole,
        "schema started_unix_ns cpus threads_per_core numa_nodes l2_bytes l3_bytes memory_bytes \
         size sent warmup duration_ns rate_asked burst largest_burst back_pressured \
         subscribers_at_start subscribers_at_end received lost reported_lost duplicated damaged \
         unchecked first_number spin recovered buckets width_ns overflows loops ts_min_ns \
         ts_max_ns long_gaps repetition repetitions most_in_flight answered most_at_once \
         datagram_bytes count expected excess publishers subscribers messages node published \
         delivered cpu p50_ns p90_ns p99_ns p99_9_ns p99_99_ns p99_999_ns samples disordered \
         batch signals capacity ran_on pinned online elapsed_ns involuntary_switches \
         voluntary_switches waited_ns stolen_ns longest_gap_ns producers pair pairs receivers \
         rest_cpu members senders mtu value ns cpu_ns free_bytes total_bytes resident_bytes id \
         left_in_flight drained_ns stores_lost stores topics syncs store_cpu",
    ),
    (
        Shape::Number,
        "rate min_ns mean_ns max_ns clock_cost_ns recording_cost_ns monotonic_cost_ns lost_share \
         load_average line_ns loop_ns density_ns lmax_rate seconds published_per_second \
         delivered_per_second stolen_share noise_p99_9_ns interrupts_per_second \
         bytes_per_second cluster_rate cluster_bytes_per_second received_per_cpu_second \
         document_rate of_ceiling of_spp asked_of_ceiling asked_of_spp p50_of_none \
         p99_of_none asked_p50_of_none asked_p99_of_none",
    ),
    (
        Shape::Text,
        "kind version command cpu architecture kernel hypervisor governor clock_source topic \
         session source ended transport wait window touch clock choice raise gap_watched \
         pong_left threads experiment way wanted through numa why seats row placement role peer \
         peer_version api name id title state found effect mend verdict interrupts_mostly ping \
         pong mode stores case io io_fallback keep_warm",
    ),
    (
        Shape::Flag,
        "interrupted drained fast generic cross_numa one_cpu is_sender complete namespaces \
         past_cache",
    ),
    (
        Shape::Object,
        "host lateness calls cpus interference latency actual intended linear gaps topics \
         receiver case baseline publisher reference proposal numa_placement server command_latency \
         turn_latency blocked persistence",
    ),
    (
        Shape::List,
        "streams counts percentiles threads findings gaps subscribers reference doubts cpus \
         publisher_cpus subscriber_cpus buckets results by_sender missing disagreements intervals \
         stats",
    ),
    (Shape::Any, "raised publisher_cpu subscriber_cpu"),
];

impl Shape {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Whole => value.is_u64(),
            Self::Number => value.is_number(),
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
            Self::Any => true,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Whole => "a whole number",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::Flag => "true or false",
            Self::Object => "an object",
            Self::List => "a list",
            Self::Any => "anything",
        }
    }
}

/// The shapes of the member `name`; empty for a name that this version does not know.
fn shapes(name: &str) -> Vec<Shape> {
    let has = |names: &str| names.split(' ').any(|known| known == name);
    MEMBERS.iter().filter(|(_, names)| has(names)).map(|(shape, _)| *shape).collect()
}

/// Former and present names: of a member, or of a kind.
const RENAMED: [(&str, &str); 3] =
    [("told_lost", "reported_lost"), ("owed", "expected"), ("seating", "numa_placement")];
const RENAMED_KIND: (&str, &str) = ("floor", "baseline");

/// Gives the members of a line from an earlier version their present names.
pub(crate) fn rename_former(members: &mut Map<String, Value>) {
    for (former, present) in RENAMED {
        if let Some(value) = members.remove(former) {
            members.insert(present.to_owned(), value);
        }
    }
    if let Some(kind) = members.get_mut("kind")
        && *kind == RENAMED_KIND.0
    {
        *kind = RENAMED_KIND.1.into();
    }
}

/// Checks the shapes of all known members in `value`. Unknown members are skipped, so that lines of
/// later versions remain readable.
pub(crate) fn check(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let shapes = shapes(name);
                if value.is_null() || shapes.is_empty() {
                    continue;
                }
                if !shapes.iter().any(|shape| shape.fits(value)) {
                    return Err(wrong_type(name, value, shapes[0]));
                }
                check(value)?;
            }
            Ok(())
        }
        // Lists of numbers can be long and hold no members.
        Value::Array(items) if items.first().is_some_and(Value::is_object) => {
            items.iter().try_for_each(check)
        }
        _ => Ok(()),
    }
}

fn wrong_type(name: &str, value: &Value, shape: Shape) -> String {
    let found = match value {
        Value::String(text) => format!("string {text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => scalar.to_string(),
    };
    format!("invalid type: {found}, member \"{name}\" is {}", shape.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn checkout(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(path)).expect("the checkout is complete")
    }

    /// Lines of every kind, which together have every member.
    fn examples() -> String {
        let recorded = |name| checkout(&format!("crates/report/tests/recorded/{name}.jsonl"));
        recorded("every-member") + &recorded("fanout") + &recorded("group")
    }

    /// Words in backticks on the page that are no members.
    const OTHERS: [&str; 7] = ["cat", "count", "null", "ns", "_ns", "_bytes", "_unix_ns"];

    /// The words in backticks of the page: members, and some values of members.
    fn words(page: &str) -> Vec<&str> {
        let quoted = page.split('`').skip(1).step_by(2);
        let words = quoted.filter(|word| !OTHERS.contains(word));
        words.filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).collect()
    }

    #[test]
    fn every_member_of_the_page_is_in_an_example() {
        let pages = ["measurements", "fanout", "group-test"];
        let pages = pages.map(|name| checkout(&format!("docs/protocol/{name}.md")));
        let (page, examples) = (pages.concat(), examples());
        let words = words(&page);
        assert!(words.len() > 100 && words.contains(&"p99_999_ns"));
        for word in words {
            let (member, value) = (format!("\"{word}\":"), format!("\"{word}\""));
            assert!(
                examples.contains(&member) || examples.contains(&value),
                "`{word}` is in docs/protocol/measurements.md, fanout.md or group-test.md, \
                 but in no line of every-member, fanout or group.jsonl of \
                 crates/report/tests/recorded"
            );
        }
    }

    #[test]
    fn every_member_of_the_examples_is_known_to_the_reader() {
        fn assert_known(value: &Value) {
            for (name, value) in value.as_object().into_iter().flatten() {
                assert!(!shapes(name).is_empty(), "{name} is missing in MEMBERS");
                assert_known(value);
            }
            value.as_array().into_iter().flatten().for_each(assert_known);
        }
        for line in examples().lines() {
            let value: Value = serde_json::from_str(line).expect("valid JSON");
            assert_eq!(check(&value), Ok(()), "{line}");
            assert_known(&value);
        }
    }
}
