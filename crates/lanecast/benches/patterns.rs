//! The topics of a pattern: time from opening the subscriber until all have joined, while another
//! subscriber of the same context goes on, and from then on until a message of each has come.
//!
//! `cargo bench -p lanecast --bench patterns -- TRANSPORTS PUBLISHERS TOPICS`, such as `ru 10
//! 10000`: that many publishers in a process of their own, that many topics in all.

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

struct Load {
    transports: String,
    publishers: usize,
    topics: usize,
}

impl Load {
    fn of(arguments: &[String]) -> Result<Self, Failure> {
        let number = |at: usize, usual| arguments.get(at).map_or(Ok(usual), |text| text.parse());
        let transports = arguments.first().cloned().unwrap_or_else(|| "ru".to_owned());
        Ok(Self { transports, publishers: number(1, 10)?, topics: number(2, 10_000)? })
    }

    fn context(&self) -> Result<Context, Failure> {
        // All topics may be those of one publisher, and shared memory reserves room for them.
        let each = self.topics.div_ceil(self.publishers).max(1);
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
        _ => measure(&Load::of(&arguments)?),
    }
}

/// The publishers: says when all are there, and sends one message on each topic when told to.
fn publish(load: &Load) -> Result<(), Failure> {
    let context = load.context()?;
    let mut beat = context.publisher("beat")?;
    let mut publishers = Vec::new();
    for index in 0..load.publishers {
        let mut publisher = context.publisher(&format!("prices.{index}"))?;
        for topic in 1..load.topics.div_ceil(load.publishers) {
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
                    for topic in 0..load.topics.div_ceil(load.publishers) {
                        publisher.send_on(TopicId(topic as u32), b"price")?;
                    }
                }
            }
        }
    }
}

/// Times of one run.
#[derive(Default)]
struct Times {
    joined: usize,
    messages: usize,
    lost: u64,
    all_joined: Option<Duration>,
    all_received: Option<Duration>,
}

fn measure(load: &Load) -> Result<(), Failure> {
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
    // The first advertisements are over: only Queries find topics from here on.
    std::thread::sleep(Duration::from_secs(2));

    let context = load.context()?;
    let mut beats = context.subscriber("beat")?;
    let (mut last, mut longest) = (None, Duration::ZERO);
    let mut listen = |beats: &mut Subscriber| {
        beats.poll(64, |event| {
            if let Event::Message(_) = event {
                let now = Instant::now();
                longest = longest.max(last.replace(now).map_or(Duration::ZERO, |at| now - at));
            }
        });
    };
    let before = Instant::now();
    while before.elapsed() < Duration::from_millis(300) {
        listen(&mut beats);
    }

    let start = Instant::now();
    let mut feed = context.pattern("prices.*").subscriber()?;
    let total = load.topics.div_ceil(load.publishers) * load.publishers;
    let mut times = Times::default();
    while times.all_received.is_none() && start.elapsed() < PATIENCE {
        listen(&mut beats);
        let work = feed.poll(256, |event| match event {
            Event::Joined(_) => times.joined += 1,
            Event::Message(_) => times.messages += 1,
            Event::Lost(gap) => times.lost += gap.count,
            _ => {}
        });
        if times.joined == total && times.all_joined.is_none() {
            times.all_joined = Some(start.elapsed());
            writeln!(input, "send")?;
        }
        if times.messages + times.lost as usize == total {
            times.all_received = times.all_joined.map(|joined| start.elapsed() - joined);
        }
        feed.wait(work);
    }
    drop(input);
    child.wait()?;
    let ms = |time: Option<Duration>| {
        time.map_or_else(|| "never".to_owned(), |it| format!("{:.1} ms", it.as_secs_f64() * 1e3))
    };
    println!(
        "{}: {} publishers, {total} topics: all joined after {} ({} joined), a message of each \
         after another {} ({} received, {} lost); longest silence of a topic with a message each \
         millisecond, meanwhile: {}",
        load.transports,
        load.publishers,
        ms(times.all_joined),
        times.joined,
        ms(times.all_received),
        times.messages,
        times.lost,
        ms(Some(longest)),
    );
    if times.all_received.is_some() { Ok(()) } else { Err("not all came".into()) }
}
