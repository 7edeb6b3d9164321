//! `lanecast filter explain`.

use super::arguments::FilterArgs;
use super::cost::{Cost, measure};
use super::evaluator::Evaluator;
use super::excerpt::{few, shortened, wrapped};
use crate::content::Lines;
use crate::output::{print, print_json};
use crate::printable::printable;
use crate::table::grouped;
use lanecast_filter::explain::{AccessPlan, Step};
use lanecast_filter::expr::Expr;
use lanecast_filter::fields::FieldSet;
use lanecast_filter::index::{AccessMethod, Index};
use lanecast_filter::ternary::Ternary;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The most bytes of messages to measure with.
const BYTES_MAX: usize = 64 << 20;

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    lanecast filter explain \"/symbol = 'IBM' and /note like 'big'\"\n  \
    lanecast filter explain \"/55 = 'IBM'\" --type fix --message '35=D|55=IBM|'\n\
    Long filters are cut, --json has all of them. The language: docs/protocol/filter.md.\n\
    Exit status: 0 done, 2 no filter, or an error.")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    filter: FilterArgs,

    /// Measure the filter with this message; may be given several times
    #[arg(short, long, value_name = "TEXT")]
    message: Vec<String>,

    /// Measure it with the lines of a file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "message")]
    file: Option<PathBuf>,
}

/// Results of the filter for messages.
struct Evaluation {
    messages: usize,
    matched: usize,
    malformed: usize,
    cost: Cost,
}

pub(super) fn run(arguments: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let filter = arguments.filter.parse()?;
    let kind = arguments.filter.kind.kind;
    let mut evaluator = Evaluator::new(&filter, kind)?;
    let placing = Index::new().insert(0, &filter, &mut FieldSet::new(kind))?;
    let messages = messages(arguments)?;
    let trial = if messages.is_empty() {
        None
    } else {
        let truths: Vec<_> = messages.iter().map(|message| evaluator.truth(message)).collect();
        Some(Evaluation {
            messages: messages.len(),
            matched: truths.iter().filter(|truth| **truth == Ok(Ternary::True)).count(),
            malformed: truths.iter().filter(|truth| truth.is_err()).count(),
            cost: measure(&filter, kind, &messages)?,
        })
    };
    if arguments.filter.json {
        let told = &evaluator.explanation;
        print_json(&json!({
            "filter": filter.to_string(),
            "normal": told.normal.to_string(),
            "tree": tree_json(filter.expr()),
            "fields": evaluator.fields().collect::<Vec<_>>(),
            "steps": steps_json(&told.steps),
            "is_indexed": placing.is_indexed(),
            "index": told.access_plans.iter().map(access_plan_json).collect::<Value>(),
            "trial": trial.as_ref().map(trial_json),
        }))?;
    } else {
        let mut text = titled("filter", &wrapped(&filter.expr().to_string()));
        tree(filter.expr(), 1, &mut text)?;
        describe(&evaluator, &mut text)?;
        match &trial {
            Some(trial) => tell(trial, &mut text)?,
            None => text.push_str("cost     give messages to measure it: --message, --file\n"),
        }
        let lines: String = text.lines().map(|line| printable(line) + "\n").collect();
        print(&lines)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn messages(arguments: &ExplainArgs) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut messages: Vec<Vec<u8>> =
        arguments.message.iter().map(|text| text.clone().into_bytes()).collect();
    if let Some(path) = &arguments.file {
        let mut lines = Lines::open(Some(path))?;
        let mut bytes = 0;
        while let Some(line) = lines.next()? {
            bytes += line.len();
            if bytes > BYTES_MAX {
                break;
            }
            messages.push(line);
        }
        anyhow::ensure!(!messages.is_empty(), "no message in {}", path.display());
    }
    messages.iter_mut().for_each(|message| arguments.filter.kind.meant(message));
    Ok(messages)
}

/// Text of one node of the expression tree.
fn label(expr: &Expr) -> String {
    match expr {
        Expr::Literal(literal) => literal.to_string(),
        Expr::Field(path) => path.to_string(),
        Expr::Pattern(pattern) => format!("pattern {pattern}"),
        Expr::Negate(_) => "-".to_owned(),
        Expr::Arithmetic(operation, _) => operation.to_string(),
        Expr::Call(function, _) => function.to_string(),
        Expr::Compare(comparison, _) => comparison.to_string(),
        Expr::Between(_) => "BETWEEN".to_owned(),
        Expr::In(..) => "IN".to_owned(),
        Expr::BeginsWith(..) => "BEGINS WITH".to_owned(),
        Expr::EndsWith(..) => "ENDS WITH".to_owned(),
        Expr::Like(_, pattern) => format!("LIKE {pattern}"),
        Expr::IsNull(_) => "IS NULL".to_owned(),
        Expr::IsNan(_) => "IS NAN".to_owned(),
        Expr::Not(_) => "NOT".to_owned(),
        Expr::And(_) => "AND".to_owned(),
        Expr::Or(_) => "OR".to_owned(),
    }
}

fn tree(expr: &Expr, depth: usize, text: &mut String) -> std::fmt::Result {
    let title = if depth == 1 { "tree" } else { "" };
    let indent = 2 * (depth - 1);
    writeln!(text, "{title:<9}{:indent$}{}", "", shortened(&label(expr)))?;
    let parts: Vec<_> = expr.parts().collect();
    let (shown, more) = few(&parts);
    shown.iter().try_for_each(|part| tree(part, depth + 1, text))?;
    match more {
        0 => Ok(()),
        more => writeln!(text, "{:9}{:indent$}  ... {} more", "", "", grouped(more as u64)),
    }
}

/// Lines under a title.
fn titled(title: &str, lines: &[String]) -> String {
    let titles = std::iter::once(title).chain(std::iter::repeat(""));
    titles.zip(lines).map(|(title, line)| format!("{title:<9}{line}\n")).collect()
}

fn tree_json(expr: &Expr) -> Value {
    let parts: Vec<Value> = expr.parts().map(tree_json).collect();
    if parts.is_empty() { json!(label(expr)) } else { json!({ label(expr): parts }) }
}

fn describe(evaluator: &Evaluator, text: &mut String) -> std::fmt::Result {
    let told = &evaluator.explanation;
    writeln!(text, "plan     {}", shortened(&told.normal.to_string()))?;
    let (steps, _) = few(&told.steps);
    for (number, step) in (1..).zip(steps) {
        writeln!(text, "         {number}. {} (cost {})", shortened(&step.text), step.cost)?;
    }
    tell_more("        ", &told.steps, text)?;
    if told.access_plans.is_empty() {
        writeln!(text, "index    never holds: no message leads to it")?;
    }
    for plan in &told.access_plans {
        let indexed = shortened(&plan.indexed.join(" AND "));
        match plan.access {
            AccessMethod::Value(_) => writeln!(text, "index    by value: {indexed}")?,
            AccessMethod::Range(_) => writeln!(text, "index    by range: {indexed}")?,
            AccessMethod::Every => writeln!(text, "index    holds for every message")?,
            AccessMethod::Evaluated => writeln!(
                text,
                "index    none, it is evaluated for every message: add a condition that compares\n\
                 \u{20}        a field with a value by =, IN, <, > or BETWEEN"
            )?,
        }
        let (residual, _) = few(&plan.residual);
        for step in residual {
            writeln!(text, "residual {} (cost {})", shortened(&step.text), step.cost)?;
        }
        tell_more("residual", &plan.residual, text)?;
    }
    Ok(())
}

/// Writes the number and the cost of the steps left out of a long list.
fn tell_more(title: &str, steps: &[Step], text: &mut String) -> std::fmt::Result {
    let (shown, more) = few(steps);
    if more > 0 {
        let cost: usize = steps[shown.len()..].iter().map(|step| step.cost).sum();
        writeln!(text, "{title} ... {} more (cost {cost} together)", grouped(more as u64))?;
    }
    Ok(())
}

fn tell(trial: &Evaluation, text: &mut String) -> std::fmt::Result {
    let Evaluation { messages, matched, malformed, cost } = trial;
    writeln!(
        text,
        "cost     p50 {:.1} ns, p99 {:.1} ns for a message to be read and judged",
        cost.p50_ns, cost.p99_ns
    )?;
    writeln!(
        text,
        "         {} samples, each the mean of {} messages; clock {}",
        grouped(cost.samples as u64),
        grouped(cost.messages_per_sample as u64),
        cost.clock
    )?;
    if cfg!(debug_assertions) {
        writeln!(text, "         by a debug build, which is many times slower than others")?;
    }
    let counts = [messages, matched, malformed].map(|count| grouped(*count as u64));
    let [messages, matched, malformed] = counts;
    writeln!(text, "messages {messages}, of which {matched} match and {malformed} are malformed")
}

fn steps_json(steps: &[Step]) -> Value {
    steps.iter().map(|step| json!({ "text": step.text, "cost": step.cost })).collect()
}

fn access_plan_json(plan: &AccessPlan) -> Value {
    let by = match plan.access {
        AccessMethod::Value(_) => "value",
        AccessMethod::Range(_) => "range",
        AccessMethod::Every => "every",
        AccessMethod::Evaluated => "none",
    };
    let residual = steps_json(&plan.residual);
    json!({ "by": by, "indexed": plan.indexed, "residual": residual })
}

fn trial_json(trial: &Evaluation) -> Value {
    json!({
        "messages": trial.messages, "matched": trial.matched, "malformed": trial.malformed,
        "cost": trial.cost, "is_debug_build": cfg!(debug_assertions),
    })
}
