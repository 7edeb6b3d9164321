//! `lanecast report`: measurement lines, made readable.

use crate::output::print;
use crate::table::width_or;
use anyhow::{Context, bail};
use lanecast_os::rewrite_file;
use lanecast_report::{Report, Since, Source};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Width of a report that no terminal shows, unless COLUMNS says another.
const WIDTH: usize = 100;

const EXAMPLES: &str = "\
Examples:
  lanecast perf sub --json > run.jsonl                 measure (and publish in another terminal)
  lanecast report run.jsonl                            tables and histograms, here
  lanecast report run.jsonl -o run.html                a page to keep and to show
  lanecast report before.jsonl after.jsonl -o x.html   two runs beside one another
  lanecast report run.jsonl --line 2 -o run.hgrm       one line's times, for HdrHistogram's plotter
  lanecast report run.jsonl other.hlog -o run.hlog     all times, as HdrHistogram's interval log

Times in .hgrm and .hlog are nanoseconds. The lines are described in docs/protocol/measurements.md.
Exit status: 0 done, 1 a file cannot be read or written, 2 wrong arguments.";

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Files of measurement lines, or HdrHistogram logs (.hlog); - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write a file instead of text: .html, .hgrm, .hlog or .txt; can be repeated
    #[arg(short = 'o', long = "output", value_name = "OUT", value_parser = output)]
    outputs: Vec<Output>,

    /// Only this line: FILE:LINE, or its number among all lines
    #[arg(long, value_name = "LINE")]
    line: Option<String>,

    /// Start of the latencies in a .hgrm: intended or actual time of sending
    #[arg(long, value_enum, default_value = "intended")]
    since: SinceName,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum SinceName {
    /// When the schedule wanted the message sent
    Intended,
    /// When it was sent
    Actual,
}

impl SinceName {
    const fn since(self) -> Since {
        match self {
            Self::Intended => Since::Intended,
            Self::Actual => Since::Actual,
        }
    }
}

/// A file to write, and what its name says to write into it.
#[derive(Clone, Debug)]
struct Output {
    path: PathBuf,
    form: Form,
}

/// Output format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Page,
    Text,
    Percentiles,
    IntervalLog,
}

impl Form {
    /// The form that the extension of `path` names.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "html" | "htm" => Some(Self::Page),
            "txt" => Some(Self::Text),
            "hgrm" => Some(Self::Percentiles),
            "hlog" => Some(Self::IntervalLog),
            _ => None,
        }
    }

    /// `report` in this form.
    pub(crate) fn render(self, report: &Report, since: Since) -> anyhow::Result<String> {
        Ok(match self {
            Self::Page => report.to_html(),
            Self::Text => report.to_text(width_or(WIDTH)),
            Self::Percentiles => report.to_hgrm(since)?,
            Self::IntervalLog => report.to_hlog()?,
        })
    }
}

fn output(text: &str) -> Result<Output, String> {
    let path = PathBuf::from(text);
    let form = Form::of(&path).ok_or("its name must end in .html, .hgrm, .hlog or .txt")?;
    Ok(Output { path, form })
}

/// Prints the report on `lines` that this run has made.
pub(crate) fn print_text(name: &str, lines: &str) -> anyhow::Result<()> {
    let report = Report::read(&[Source::lines(name, lines)])?;
    Ok(print(&report.to_text(width_or(WIDTH)))?)
}

/// Reads the files, and writes what is asked for.
pub(crate) fn run(arguments: &ReportArgs) -> anyhow::Result<ExitCode> {
    let open = |path: &PathBuf| {
        Source::open(path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let sources: Vec<Source> = arguments.files.iter().map(open).collect::<Result<_, _>>()?;
    let mut report = Report::read(&sources)?;
    if let Some(line) = &arguments.line {
        let Some(only) = report.only(line) else {
            bail!("there is no line {line}: give FILE:LINE, or 1 to {}", report.line_count());
        };
        report = only;
    }
    if report.line_count() == 0 {
        bail!("there are no measurements in what was read (perf ... --json writes them)");
    }
    if arguments.outputs.is_empty() {
        print(&report.to_text(width_or(WIDTH)))?;
    }
    for output in &arguments.outputs {
        let name = output.path.display();
        let text = output.form.render(&report, arguments.since.since());
        let text = text.with_context(|| format!("nothing to write into {name}"))?;
        rewrite_file(&output.path, text.as_bytes())
            .with_context(|| format!("{name} cannot be written"))?;
    }
    Ok(ExitCode::SUCCESS)
}
