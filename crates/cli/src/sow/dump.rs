//! `lanecast sow dump`.

use crate::content::{Form, FormArgs, Item, KindArgs, Orders, Sorter, parse_orders};
use crate::filter::{Evaluator, parse};
use crate::output::{print_error, standard_output, warn};
use crate::printable::printable;
use crate::table::{counted, grouped, utc};
use lanecast_filter::message_type::SOH;
use lanecast_filter::ternary::Ternary;
use lanecast_journal::Directory;
use lanecast_sow::durable::{Dump, DumpedRecord};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `dump`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "lanecast sow dump <DIRECTORY> [TOPIC] [OPTIONS]",
    after_help = "A line has: topic, key, number of the topic's change, when it expires, \
    the key that its publisher supplied, message. The byte 1 of fix and nvfix is shown as |.\n\
    With --format, --columns or --json, records are printed as by lanecast query.\n\
    Nothing is changed, and a server may be at work there. Of a topic that an \
    earlier version wrote, and no checkpoint has named, only the number is known.\n\
    Examples:\n  \
    lanecast sow dump /var/lib/lanecast\n  \
    lanecast sow dump /var/lib/lanecast orders --json\n  \
    lanecast sow dump /var/lib/lanecast orders -f \"/qty > 100\" --order-by \"/qty DESC\"\n  \
    lanecast sow dump /var/lib/lanecast orders --columns /id,/qty\n\
    Exit status: 0 done, 1 damaged, or an error."
)]
pub(crate) struct DumpArgs {
    /// The directory of the records and their journal
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,

    /// Only records of this topic
    #[arg(value_name = "TOPIC")]
    topic: Option<String>,

    /// The topic, as the previous version took it
    #[arg(short = 't', long = "topic", value_name = "TOPIC", hide = true)]
    #[arg(conflicts_with = "topic")]
    old_topic: Option<String>,

    /// Only records whose messages match, such as "/symbol = 'IBM' and /qty >= 5000"
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,

    #[command(flatten)]
    kind: KindArgs,

    /// Sort by fields, such as "/price DESC, /id" [default: by topic and change]
    #[arg(long, value_name = "FIELDS", value_parser = parse_orders)]
    order_by: Option<Orders>,

    #[command(flatten)]
    form: FormArgs,
}

pub(super) fn run(arguments: &DumpArgs) -> anyhow::Result<ExitCode> {
    let mut dump = Dump::read(&Directory::new(&arguments.directory))?;
    if arguments.old_topic.is_some() {
        warn("-t TOPIC is now the argument behind the directory; -t goes with the next version");
    }
    if let Some(topic) = arguments.topic.as_ref().or(arguments.old_topic.as_ref()) {
        choose(&mut dump, topic);
    }
    if let Some(filter) = &arguments.filter {
        let mut evaluator = Evaluator::new(&parse(filter)?, arguments.kind.kind)?;
        // As for a subscriber, a message that cannot be read matches no filter.
        dump.records.retain(|record| evaluator.truth(&record.message) == Ok(Ternary::True));
    }
    if let Some(orders) = &arguments.order_by {
        let mut sorter = Sorter::new(arguments.kind, orders.orders.clone())?;
        let keyed = dump.records.into_iter().map(|it| (sorter.keys(&it.message), it));
        let mut keyed: Vec<_> = keyed.collect();
        keyed.sort_by(|(a, _), (b, _)| sorter.compare(a, b));
        dump.records = keyed.into_iter().map(|(_, record)| record).collect();
    }
    if arguments.form.is_chosen() {
        let mut printer = arguments.form.printer(arguments.kind, Form::Raw);
        for record in &dump.records {
            printer.print(item(&dump, record))?;
        }
        printer.flush()?;
    } else {
        let mut output = BufWriter::new(standard_output());
        for record in &dump.records {
            writeln!(output, "{}", line(&dump, record))?;
        }
        output.flush()?;
    }
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

/// The record as `lanecast query` prints it, with what only the directory knows.
fn item(dump: &Dump, record: &DumpedRecord) -> Item {
    let mut details = vec![
        ("topic_number", Value::from(record.topic)),
        ("sequence", record.sequence.into()),
        ("expires_unix_ns", record.expires_ns.into()),
        ("supplied_key", record.name.as_str().into()),
    ];
    if str::from_utf8(&record.message).is_err() {
        let digits = record.message.iter().map(|byte| format!("{byte:02x}"));
        details.push(("body_hex", digits.collect::<String>().into()));
    }
    let named = dump.names.get(&record.topic).cloned();
    let topic = named.unwrap_or_else(|| name(dump, record.topic));
    let key = Some(record.key.0);
    Item { key, details, ..Item::new("sow", topic, record.message.clone()) }
}
