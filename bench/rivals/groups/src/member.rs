//! One member of a group of lanecast, through its public interface: waits for all members, warms
//! up, waits for a line of its input, sends to all, counts what comes. Prints lines of words, as
//! the members of the other sides do, and stays until it is killed, so that others can fetch from
//! it.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use lanecast::group::{Event, MemberId, Order};
use lanecast::{Context, Group};
use nix::sys::resource::{UsageWho, getrusage};

use crate::clock::monotonic;
use crate::message::{Content, HEADER_BYTES, Header, Kind};
use crate::reception::Reception;
use crate::times::Times;

const SEND_AT_ONCE: usize = 64;
const POLL_LIMIT: usize = 256;
const START_INTERVAL_NS: u64 = 500_000_000;
/// Longest wait while messages are still to be sent.
const NAP: Duration = Duration::from_millis(1);

/// Order of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ordering {
    /// That of each sender
    Fifo,
    /// One for all senders
    Total,
}

/// Options of a member.
#[derive(Args, Clone, Debug)]
pub struct MemberArgs {
    /// rm, ru or tcp
    #[arg(long, default_value = "rm")]
    transport: String,
    /// Order of delivery
    #[arg(long, value_enum, default_value = "fifo")]
    order: Ordering,
    /// Number of this member, from 0
    #[arg(long)]
    index: u32,
    /// Members that all wait for
    #[arg(long, default_value_t = 2)]
    members: usize,
    /// Bytes of a message
    #[arg(long, default_value_t = 1000)]
    size: usize,
    /// Messages to send; as many as fit into the time if 0
    #[arg(long, default_value_t = 0)]
    messages: u64,
    /// Time to send in, if there is no number of messages
    #[arg(long, default_value_t = 1000)]
    send_ms: u64,
    /// Time of the warm-up, in which members send flat out
    #[arg(long, default_value_t = 0)]
    warm_ms: u64,
    /// Messages a second; 0: flat out
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// 1: write and check the whole content of every message; 0: its last word
    #[arg(long, default_value_t = 0)]
    whole: u8,
    /// Round trips between the first two members, in place of messages to all
    #[arg(long, default_value_t = 0)]
    rounds: u64,
    /// Round trips before these
    #[arg(long, default_value_t = 0)]
    warm_rounds: u64,
    /// The longest run
    #[arg(long, default_value_t = 30_000)]
    limit_ms: u64,
    /// spin, or as lanecast's strategies are called
    #[arg(long)]
    wait: Option<String>,
    /// Interface
    #[arg(long)]
    interface: Option<String>,
    /// The domain's directory
    #[arg(long)]
    directory: PathBuf,
}

#[derive(Debug)]
struct Member {
    group: Group,
    options: MemberArgs,
    reception: Reception,
    message: Vec<u8>,
    content: Content,
    /// The other member of round trips, and its last answer.
    peer: Option<MemberId>,
    answered: Option<u64>,
    pings: Vec<(MemberId, u64)>,
}

impl MemberArgs {
    /// Runs the member; does not return without an error.
    ///
    /// # Errors
    ///
    /// When the group cannot be joined.
    pub fn run(self) -> Result<()> {
        let mut builder = Context::builder()
            .set("transports", &self.transport)?
            .set("shm.directory", self.directory.display())?;
        if let Some(interface) = &self.interface {
            builder = builder.set("net.interface", interface)?;
        }
        if let Some(wait) = &self.wait {
            builder = builder.set("net.subscriber_wait", wait)?;
        }
        let context = builder.build()?;
        let group = context.group("rivals").name(format!("m{}", self.index)).join()?;
        let content = if self.whole == 1 { Content::Whole } else { Content::Last };
        let mut member = Member {
            group,
            reception: Reception::new(self.members, self.index, content, self.rate > 0),
            content,
            message: vec![0; self.size.max(HEADER_BYTES)],
            peer: None,
            answered: None,
            pings: Vec::new(),
            options: self,
        };
        let go = input();
        member.wait_for_all();
        let (rounds, is_first) = (member.options.rounds, member.options.index == 0);
        match rounds {
            0 => member.warm_up(),
            _ if is_first => drop(member.go_round(member.options.warm_rounds)?),
            _ => {}
        }
        member.wait_for(&go);
        match rounds {
            0 => member.measure()?,
            _ if is_first => {
                let times = member.go_round(rounds)?;
                println!("times from=due counts={}", times.printed());
                println!("rounds count={}", times.count());
            }
            _ => {}
        }
        loop {
            let work = member.poll();
            member.group.wait(work);
        }
    }
}

impl Member {
    fn poll(&mut self) -> usize {
        let Self { group, reception, peer, answered, pings, options, .. } = self;
        let work = group.poll(POLL_LIMIT, |event| match event {
            Event::Message { bytes, .. } => {
                let Some(header) = Header::read(bytes) else { return };
                match header.kind {
                    Kind::Start => reception.start(header.sender),
                    Kind::Data => reception.take(header, bytes),
                    Kind::End => reception.end(header.sender, header.stamp),
                    Kind::Ready => reception.warm(header.sender),
                    Kind::Warm | Kind::Ping | Kind::Pong => {}
                }
            }
            Event::Direct { from, bytes } => match Header::read(bytes) {
                Some(header) if header.kind == Kind::Ping => pings.push((from, header.sequence)),
                Some(header) if header.kind == Kind::Pong => *answered = Some(header.sequence),
                _ => {}
            },
            Event::View(view, _) => {
                println!("view at={} members={}", monotonic(), view.members.len());
                let own = format!("m{}", options.index);
                *peer = view.members.iter().find(|it| it.name != own).map(|it| it.id);
                reception.set_present(|number| {
                    view.members.iter().any(|it| it.name == format!("m{number}"))
                });
            }
            Event::Suspected(member, why) => {
                println!("suspected at={} member={} why={why:?}", monotonic(), member.name);
            }
            _ => {}
        });
        while let Some((to, sequence)) = self.pings.pop() {
            self.header(Kind::Pong, sequence, 0);
            if self.group.try_send_to(to, &self.message).is_err() {
                self.pings.push((to, sequence));
                break;
            }
        }
        work
    }

    fn header(&mut self, kind: Kind, sequence: u64, stamp: u64) {
        let sender = self.options.index;
        Header { kind, sender, sequence, stamp }.write(&mut self.message);
    }

    fn try_send(&mut self, kind: Kind, sequence: u64, stamp: u64) -> bool {
        self.header(kind, sequence, stamp);
        let is_long = matches!(kind, Kind::Data | Kind::Warm);
        let length = if is_long { self.message.len() } else { HEADER_BYTES };
        if is_long {
            self.content.write(self.options.index, sequence, &mut self.message);
            if self.options.rate > 0
                && let Some(sent_at) = self.message[HEADER_BYTES..].first_chunk_mut()
            {
                *sent_at = monotonic().to_le_bytes();
            }
        }
        let order = match self.options.order {
            Ordering::Fifo => Order::Sender,
            Ordering::Total => Order::Total,
        };
        self.group.try_send(&self.message[..length], order).is_ok()
    }

    /// Says that it is there until all have said it.
    fn wait_for_all(&mut self) {
        let mut due = 0;
        while !self.reception.have_started() {
            let work = self.poll();
            let is_full = self.group.view().members.len() >= self.options.members;
            if is_full && monotonic() >= due && self.try_send(Kind::Start, 0, 0) {
                due = monotonic() + START_INTERVAL_NS;
            }
            self.group.wait_at_most(work, NAP);
        }
    }

    /// Sends flat out for the time of the warm-up, until all others have done so, too.
    fn warm_up(&mut self) {
        let over = monotonic() + self.options.warm_ms * 1_000_000;
        let (mut sent, mut is_ready) = (0, false);
        while !is_ready || !self.reception.are_warm() {
            let mut work = 0;
            while work < SEND_AT_ONCE && monotonic() < over && self.try_send(Kind::Warm, sent, 0) {
                sent += 1;
                work += 1;
            }
            is_ready = is_ready || (monotonic() >= over && self.try_send(Kind::Ready, 0, 0));
            work += self.poll();
            self.group.wait_at_most(work, NAP);
        }
    }

    /// Says that it is ready, and waits for the line that starts the clock.
    fn wait_for(&mut self, go: &Receiver<()>) {
        println!("warm at={}", monotonic());
        while go.try_recv() == Err(TryRecvError::Empty) {
            let work = self.poll();
            self.group.wait_at_most(work, NAP);
        }
        println!("started at={}", monotonic());
    }

    fn measure(&mut self) -> Result<()> {
        let MemberArgs { messages, send_ms, rate, limit_ms, .. } = self.options;
        let (begun, cpu) = (monotonic(), cpu_ns()?);
        let (mut sent, mut has_ended) = (0, false);
        loop {
            let now = monotonic();
            let elapsed = now - begun;
            if (has_ended && self.reception.is_whole()) || elapsed >= limit_ms * 1_000_000 {
                break;
            }
            let mut work = 0;
            let is_over = match messages {
                0 => elapsed >= send_ms * 1_000_000,
                messages => sent >= messages,
            };
            if is_over {
                has_ended = has_ended || self.try_send(Kind::End, 0, sent);
            } else {
                let due = match rate {
                    0 => u64::MAX,
                    rate => (u128::from(elapsed) * u128::from(rate) / 1_000_000_000) as u64,
                };
                let room = if messages == 0 { u64::MAX } else { messages };
                while work < SEND_AT_ONCE && sent < due.min(room) {
                    // The time at which it is due, however late it goes: a sender that is held up
                    // must not hide that.
                    let stamp = if rate == 0 { now } else { begun + due_ns(sent, rate) };
                    if !self.try_send(Kind::Data, sent, stamp) {
                        break;
                    }
                    sent += 1;
                    work += 1;
                }
            }
            work += self.poll();
            // One that sends at a rate sleeps until the next message.
            let nap = match rate {
                0 => NAP,
                rate => {
                    let elapsed = monotonic() - begun;
                    Duration::from_nanos(due_ns(sent, rate).saturating_sub(elapsed)).min(NAP)
                }
            };
            self.group.wait_at_most(work, nap);
        }
        let cpu = cpu_ns()? - cpu;
        let words = self.reception.words();
        let counters = self.group.counters();
        self.reception.times().iter().for_each(|line| println!("{line}"));
        println!(
            "result sent={sent} cpu={cpu} repairs={} wants={} {words}",
            counters.repairs_sent, counters.wants
        );
        Ok(())
    }

    /// Sends to the other member and waits for the answer, again and again; the times.
    fn go_round(&mut self, rounds: u64) -> Result<Times> {
        let peer = self.peer.context("a round trip needs another member")?;
        let mut times = Times::default();
        for round in 0..rounds {
            let begun = monotonic();
            self.answered = None;
            self.header(Kind::Ping, round, 0);
            while self.group.try_send_to(peer, &self.message).is_err() {
                self.poll();
            }
            while self.answered != Some(round) {
                let work = self.poll();
                self.group.wait(work);
            }
            times.add(monotonic() - begun);
        }
        Ok(times)
    }
}

/// Nanoseconds from the start to the time at which message `sequence` is due.
fn due_ns(sequence: u64, rate: u64) -> u64 {
    (u128::from(sequence + 1) * 1_000_000_000 / u128::from(rate)) as u64
}

/// Something comes with the first line of the input, or with its end.
fn input() -> Receiver<()> {
    let (teller, told) = channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        // The member may have ended.
        let _ = teller.send(());
    });
    told
}

/// CPU time of this process.
fn cpu_ns() -> Result<u64> {
    let used = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    Ok((micros(used.user_time()) + micros(used.system_time())) as u64 * 1000)
}
