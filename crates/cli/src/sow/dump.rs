//! `lanecast sow dump`.

use crate::content::KindArgs;
use crate::filter::{Evaluator, parse};
use crate::output::{print_error, standard_output, warn};
use crate::printable::{printable, printable_json};
use crate::table::{counted, grouped, utc};
use lanecast_filter::message_type::SOH;
use lanecast_filter::ternary::Ternary;
use lanecast_journal::Directory;
use lanecast_sow::durable::{Dump, DumpedRecord};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `dump`.
#[derive(Debug, clap::Args)]
#[command(after_help = "A line has: topic, key, number of the topic's change, when it expires, \
    the key that its publisher supplied, message. The byte 1 of fix and nvfix is shown as |.\n\
    Nothing is changed, and a server may be at work there. Of a topic that an \
    earlier version wrote, and no checkpoint has named, only the number is known.\n\
    Examples:\n  \
    lanecast sow dump /var/lib/lanecast\n  \
    lanecast sow dump --topic orders --json /var/lib/lanecast\n  \
    lanecast sow dump -f \"/qty > 100\" /var/lib/lanecast\n\
    Exit status: 0 done, 1 damaged, or an error.")]
pub(crate) struct DumpArgs {
    /// The directory of the records and their journal
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,

    /// Only records of this topic
    #[arg(short, long, value_name = "NAME")]
    topic: Option<String>,

    /// Only records whose messages match, such as "/symbol = 'IBM' and /qty >= 5000"
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,

    #[command(flatten)]
    kind: KindArgs,

    /// Print one JSON object on each line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &DumpArgs) -> anyhow::Result<ExitCode> {
    let mut dump = Dump::read(&Directory::new(&arguments.directory))?;
    if let Some(topic) = &arguments.topic {
        choose(&mut dump, topic);
    }
    if let Some(filter) = &arguments.filter {
        let mut evaluator = Evaluator::new(&parse(filter)?, arguments.kind.kind)?;
        // As for a subscriber, a message that cannot be read matches no filter.
        dump.records.retain(|record| evaluator.truth(&record.message) == Ok(Ternary::True));
    }
    let mut output = BufWriter::new(standard_output());
    for record in &dump.records {
        let line = if arguments.json { json_line(&dump, record) } else { line(&dump, record) };
        writeln!(output, "{line}")?;
    }
    output.flush()?;
    print_error(&format!(
        "{}; the journal was read up to its record {}, and a checkpoint has those up to {}",
        counted(dump.records.len() as u64, "record"),
        grouped(dump.last),
        grouped(dump.covered)
    ));
    for damage in &dump.damage {
        warn(&format!("not all could be read: {}", printable(&damage.to_string())));
    }
    Ok(if dump.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Leaves the records of one topic. If there is none, says which topics there are: the name may be
/// misspelt.
fn choose(dump: &mut Dump, topic: &str) {
    let number = Dump::number_of(topic);
    let mut numbers: BTreeSet<u32> = dump.names.keys().copied().collect();
    numbers.extend(dump.records.iter().map(|record| record.topic));
    if !numbers.contains(&number) {
        let names: Vec<_> = numbers.into_iter().map(|number| name(dump, number)).collect();
        let there = if names.is_empty() { "no others".to_owned() } else { names.join(", ") };
        print_error(&format!(
            "nothing is known of a topic {}; there are {there}",
            printable(topic)
        ));
    }
    dump.names.insert(number, topic.to_owned());
    dump.records.retain(|record| record.topic == number);
}

/// The topic of that number, as it is shown.
fn name(dump: &Dump, number: u32) -> String {
    dump.names.get(&number).map_or_else(|| format!("#{number}"), |name| printable(name))
}

fn line(dump: &Dump, record: &DumpedRecord) -> String {
    let topic = name(dump, record.topic);
    let expires = record.expires_ns.map_or_else(|| "-".to_owned(), utc);
    let supplied = if record.name.is_empty() { "-".to_owned() } else { printable(&record.name) };
    let message = String::from_utf8_lossy(&record.message).replace(char::from(SOH), "|");
    let (key, sequence) = (record.key, record.sequence);
    format!("{topic}  {key:>20}  {sequence:>8}  {expires}  {supplied}  {}", printable(&message))
}

fn json_line(dump: &Dump, record: &DumpedRecord) -> String {
    let mut object = json!({
        "topic": dump.names.get(&record.topic), "topic_number": record.topic,
        "sow_key": record.key.to_string(), "sequence": record.sequence,
        "expires_unix_ns": record.expires_ns, "supplied_key": record.name,
    });
    match str::from_utf8(&record.message) {
        Ok(text) => object["body"] = text.into(),
        Err(_) => {
            let digits = record.message.iter().map(|byte| format!("{byte:02x}"));
            object["body_hex"] = digits.collect::<String>().into();
        }
    }
    printable_json(object.to_string())
}
