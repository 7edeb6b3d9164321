//! The topics of a pattern: time from opening the subscriber until all have joined, while another
//! subscriber of the same context goes on, and from then on until a message of each has come.
//!
//! `cargo bench -p lanecast --bench patterns -- TRANSPORTS PUBLISHERS TOPICS RUNS`, such as `ru 10
//! 10000 5`: that many publishers in a process of their own, that many topics in all, that often.
//! It fails if the median of the joins takes longer than [`LIMIT`], or if a topic is deaf.

use lanecast::prelude::*;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Failure = Box<dyn Error>;

/// First argument of the process with the publishers.
const CHILD: &str = "publishers";
/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time in which all topics have joined.
const LIMIT: Duration = Duration::from_millis(1500);
/// Time for the publishers' first advertisements, after which only Queries find topics.
const QUIET: Duration = Duration::from_secs(2);

struct Load {
    transports: String,
    publishers: usize,
    topics: usize,
    runs: usize,
}

impl Load {
    fn of(arguments: &[String]) -> Result<Self, Failure> {
        let number = |at: usize, usual| arguments.get(at).map_or(Ok(usual), |text| text.parse());
        let transports = arguments.first().cloned().unwrap_or_else(|| "ru".to_owned());
        let (publishers, topics) = (number(1, 10)?.max(1), number(2, 10_000)?.max(1));
        Ok(Self { transports, publishers, topics, runs: number(3, 5)?.max(1) })
    }

    /// Topics of each publisher.
    fn each(&self) -> usize {
        self.topics.div_ceil(self.publishers)
    }

    /// Topics of all publishers, each of which has as many as the others.
    fn total(&self) -> usize {
        self.each() * self.publishers
    }

    fn context(&self) -> Result<Context, Failure> {
        // All topics may be those of one publisher, and shared memory reserves room for them.
        let each = self.each();
        let builder = Context::builder()
            .set("transports", &self.transports)?
            .set("shm.topics_max", each.max(64))?
            .set("net.topics_max", each.max(64))?;
        Ok(builder.build()?)
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    match arguments.split_first() {
        Some((first, rest)) if first == CHILD => publish(&Load::of(rest)?),
        _ => measure_all(&Load::of(&arguments)?),
    }
}

/// The publishers: says when all are there, and sends one message on each topic when told to.
fn publish(load: &Load) -> Result<(), Failure> {
    let context = load.context()?;
    let mut beat = context.publisher("beat")?;
    let mut publishers = Vec::new();
    for index in 0..load.publishers {
        let mut publisher = context.publisher(&format!("prices.{index}"))?;
        for topic in 1..load.each() {
            publisher.add_topic(&format!("prices.{index}-{topic}"))?;
        }
        publishers.push(publisher);
    }
    println!("ready");
    let (told, tell) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if told.send(line.is_ok()).is_err() {
                return;
            }
        }
    });
    loop {
        let _ = beat.try_send(b"beat");
        match tell.recv_timeout(Duration::from_millis(1)) {
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(_) => return Ok(()),
            Ok(_) => {
                for publisher in &mut publishers {
                    for topic in 0..load.each() {
                        publisher.send_on(TopicId(topic as u32), b"price")?;
                    }
                }
            }
        }
    }
}

/// Outcome of one run.
#[derive(Default)]
struct Run {
    joined: usize,
    messages: usize,
    lost: u64,
    /// Time from opening the subscriber.
    all_joined: Option<Duration>,
    /// Time from then on.
    all_received: Option<Duration>,
    /// Longest time without a message on a topic with one each millisecond, meanwhile.
    silence: Duration,
}

impl Run {
    /// Whether a message of each topic came.
    fn hears(&self, total: usize) -> bool {
        self.messages == total
    }
}

/// Messages of the topic that goes on, and the longest time between two of them.
struct Beats {
    subscriber: Subscriber,
    last: Option<Instant>,
    longest: Duration,
}

impl Beats {
    fn poll(&mut self) {
        let Self { subscriber, last, longest } = self;
        subscriber.poll(64, |event| {
            if let Event::Message(_) = event {
                let now = Instant::now();
                let since = last.replace(now).map_or(Duration::ZERO, |at| now - at);
                *longest = since.max(*longest);
            }
        });
    }
}

fn measure_all(load: &Load) -> Result<(), Failure> {
    let (total, mut runs) = (load.total(), Vec::new());
    for number in 1..=load.runs {
        let run = measure(load)?;
        println!(
            "run {number} of {}: {} topics of {} publishers over {}: all joined after {} ({}), a \
             message of each after another {} ({} received, {} lost); longest silence meanwhile {}",
            load.runs,
            total,
            load.publishers,
            load.transports,
            ms(run.all_joined),
            run.joined,
            ms(run.all_received),
            run.messages,
            run.lost,
            ms(Some(run.silence)),
        );
        runs.push(run);
    }
    let deaf = runs.iter().filter(|run| !run.hears(total)).count();
    let mut times: Vec<_> = runs.iter().map(|run| run.all_joined.unwrap_or(PATIENCE)).collect();
    times.sort_unstable();
    let median = times[times.len() / 2];
    let reached = median <= LIMIT;
    println!(
        "start to all {total} joined: median {} ({}..{}) of {} runs, limit {}: {}; runs with a \
         deaf topic: {deaf}",
        ms(Some(median)),
        ms(times.first().copied()),
        ms(times.last().copied()),
        load.runs,
        ms(Some(LIMIT)),
        if reached { "reached" } else { "missed" },
    );
    match (reached, deaf) {
        (true, 0) => Ok(()),
        (false, _) => Err("all topics joined later than the limit".into()),
        _ => Err("topics were deaf after they had joined".into()),
    }
}

fn ms(time: Option<Duration>) -> String {
    time.map_or_else(|| "never".to_owned(), |it| format!("{:.1} ms", it.as_secs_f64() * 1e3))
}

/// One run, with publishers of its own.
fn measure(load: &Load) -> Result<Run, Failure> {
    let words = [CHILD, &load.transports, &load.publishers.to_string(), &load.topics.to_string()];
    let mut child = Command::new(std::env::current_exe()?)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let mut input = input.ok_or("no input")?;
    let mut line = String::new();
    BufReader::new(output.ok_or("no output")?).read_line(&mut line)?;
    std::thread::sleep(QUIET);

    let context = load.context()?;
    let subscriber = context.subscriber("beat")?;
    let mut beats = Beats { subscriber, last: None, longest: Duration::ZERO };
    let before = Instant::now();
    while before.elapsed() < Duration::from_millis(300) {
        beats.poll();
    }
    let run = join(load, &context, &mut beats, &mut input)?;
    drop(input);
    child.wait()?;
    Ok(run)
}

/// Opens the subscriber of the pattern and polls it until a message of each topic has come.
fn join(
    load: &Load,
    context: &Context,
    beats: &mut Beats,
    publishers: &mut impl Write,
) -> Result<Run, Failure> {
    let (total, mut run) = (load.total(), Run::default());
    let start = Instant::now();
    let mut feed = context.pattern("prices.*").subscriber()?;
    while run.all_received.is_none() && start.elapsed() < PATIENCE {
        beats.poll();
        let work = feed.poll(256, |event| match event {
            Event::Joined(_) => run.joined += 1,
            Event::Message(_) => run.messages += 1,
            Event::Lost(gap) => run.lost += gap.count,
            _ => {}
        });
        if run.joined == total && run.all_joined.is_none() {
            run.all_joined = Some(start.elapsed());
            writeln!(publishers, "send")?;
        }
        if run.messages + run.lost as usize == total {
            run.all_received = run.all_joined.map(|joined| start.elapsed() - joined);
        }
        feed.wait(work);
    }
    run.silence = beats.longest;
    Ok(run)
}
