//! One message against many filters, in one thread: lanecast's index beside `a-tree`, which shares
//! what filters have in common, and `wirefilter-engine`, which evaluates one after the other.
//!
//! All get the same orders and the same subscriptions, read each message for themselves, and have
//! to name the same subscribers. The sides take turns, so that the machine treats them alike.

mod orders;
mod sides;
mod wishes;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use orders::orders;
use sides::{Atree, Lanecast, Side, Wirefilter};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wishes::{Wish, wishes};

/// Matches orders against many filters, with lanecast and with others
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Numbers of subscriptions
    #[arg(long, value_delimiter = ',', default_values_t = [1, 50, 1_000])]
    subscriptions: Vec<u32>,
    /// Repetitions, in which the sides take turns
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Measured time of one repetition of one side
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Different messages, which come again and again
    #[arg(long, default_value_t = 4_096)]
    messages: usize,
    /// CPU that all run on
    #[arg(long, default_value_t = 0)]
    cpu: usize,
}

fn main() -> ExitCode {
    rivals_kit::ending(run(Options::parse()).map(|()| ExitCode::SUCCESS))
}

fn run(options: Options) -> Result<()> {
    ensure!(options.pairs > 0 && options.messages > 0, "--pairs and --messages start at 1");
    let time = Duration::try_from_secs_f64(options.seconds).context("--seconds is too much")?;
    if let Err(error) = rivals_kit::placement::raise() {
        eprintln!("not raised above other programs ({error}): figures depend on what else runs");
    }
    rivals_kit::placement::pin(options.cpu)?;
    let messages = orders(options.messages);
    let Options { cpu, .. } = options;
    println!("orders of ten fields, read and matched, on CPU {cpu}; ns for each message");
    println!("median of {} repetitions (least - most), sides in turn", options.pairs);
    for count in &options.subscriptions {
        let wishes = wishes(*count);
        let scheme = Wirefilter::scheme();
        let mut sides: [Box<dyn Side + '_>; 3] = [
            Box::new(Lanecast::new(&wishes)?),
            Box::new(Atree::new(&wishes)?),
            Box::new(Wirefilter::new(&wishes, &scheme)?),
        ];
        compare(&mut sides, &messages).with_context(|| format!("{count} subscriptions"))?;
        report(*count, &mut sides, &messages, options.pairs, time);
    }
    Ok(())
}

/// Whether all sides say the same of each message.
fn compare<'a>(sides: &mut [Box<dyn Side<'a> + 'a>], messages: &'a [Vec<u8>]) -> Result<()> {
    let mut found = vec![Vec::new(); sides.len()];
    for message in messages {
        for (side, ids) in sides.iter_mut().zip(&mut found) {
            side.matches(message, ids);
            ids.sort_unstable();
        }
        let odd = found.iter().position(|ids| *ids != found[0]);
        if let Some(odd) = odd {
            let text = String::from_utf8_lossy(message).replace('\u{1}', "|");
            bail!("{} finds others than {} in {text}", sides[odd].name(), sides[0].name());
        }
    }
    Ok(())
}

fn report<'a>(
    count: u32,
    sides: &mut [Box<dyn Side<'a> + 'a>],
    messages: &'a [Vec<u8>],
    pairs: usize,
    time: Duration,
) {
    let mut figures = vec![Vec::new(); sides.len()];
    for _ in 0..pairs {
        for (side, figures) in sides.iter_mut().zip(&mut figures) {
            figures.push(measure(side.as_mut(), messages, time));
        }
    }
    for (side, own) in sides.iter().zip(&figures) {
        let ratios: Vec<f64> =
            own.iter().zip(&figures[0]).map(|(own, first)| own / first).collect();
        let ([least, median, most], [_, ratio, _]) = (spread(own), spread(&ratios));
        println!(
            "{count:>7} subscriptions  {:<24} {median:>9.1} ({least:.1} - {most:.1}) {ratio:.1} x",
            side.name(),
        );
    }
}

/// Nanoseconds for each message.
fn measure<'a>(side: &mut (dyn Side<'a> + 'a), messages: &'a [Vec<u8>], time: Duration) -> f64 {
    let (mut ids, mut count, start) = (Vec::new(), 0_u32, Instant::now());
    let mut messages = messages.iter().cycle();
    loop {
        for message in messages.by_ref().take(64) {
            side.matches(black_box(message), &mut ids);
            black_box(&ids);
            count += 1;
        }
        let elapsed = start.elapsed();
        if elapsed >= time {
            return elapsed.as_nanos() as f64 / f64::from(count);
        }
    }
}

/// The least, the one in the middle, and the greatest.
fn spread(figures: &[f64]) -> [f64; 3] {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    [sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]]
}
