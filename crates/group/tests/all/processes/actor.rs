//! A member that sends all the time, and tells its views and what it delivered in each.
//!
//! Started in a process of its own; does nothing otherwise.

use lanecast_group::{Event, Group, GroupOptions, MemberId, Order};
use lanecast_net::{NetSettings, NetTransport, Network, TransportKind};
use lanecast_shm::{Domain, DomainSettings, SlowConsumerPolicy};
use lanecast_transport::Transport;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The environment variable that tells the actor its part.
pub(crate) const PART: &str = "TEST_MEMBER";
/// Messages between two lines that tell of load.
const LOAD: u64 = 500;
const LENGTH: usize = 1_000;

/// A view, as a member tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewLine {
    pub(crate) epoch: u64,
    /// Microseconds since 1970.
    pub(crate) at: u64,
    pub(crate) members: Vec<String>,
    /// Names, each with the reason.
    pub(crate) left: Vec<String>,
}

impl ViewLine {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("view=")?.split(' ');
        let mut word = || words.next();
        let list = |text: &str| {
            let names = text.split(',').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        Some(Self {
            epoch: word()?.parse().ok()?,
            at: word()?.parse().ok()?,
            members: list(word()?),
            left: list(word()?.strip_suffix('.')?),
        })
    }

    pub(crate) fn sorted_members(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.members.iter().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

#[test]
#[ignore = "a part in other tests"]
fn acts() {
    let Ok(part) = std::env::var(PART) else { return };
    // The harness has left its line open.
    println!();
    let words: Vec<&str> = part.split(' ').collect();
    let [way, name, run, directory] = words[..] else { panic!("four words: {part}") };
    let run = run.parse::<u32>().expect("a number") as u16;
    match way {
        "shm" => act(name, &shm(directory), None),
        "tcp" => act(name, &net(run, TransportKind::Tcp), Some(Ipv4Addr::LOCALHOST)),
        "rm" => act(name, &net(run, TransportKind::Rm), Some(Ipv4Addr::LOCALHOST)),
        other => panic!("no way is called {other}"),
    }
}

fn shm(directory: &str) -> Domain {
    let settings = DomainSettings {
        directory: directory.into(),
        liveness: Duration::from_millis(20),
        slow_consumer: SlowConsumerPolicy::EvictAfter(Duration::from_millis(500)),
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

fn net(run: u16, kind: TransportKind) -> NetTransport {
    let [low, high] = run.to_le_bytes();
    let address = [239, 195, high, low];
    let settings = NetSettings {
        group: SocketAddr::from((address, 21_000)),
        resolver_group: Some(SocketAddr::from((address, 21_001))),
        ..NetSettings::default()
    };
    NetTransport::new(Network::open(settings).expect("a network"), kind)
}

/// Messages of one sender: their number and a hash over all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    count: u64,
    hash: u64,
}

#[derive(Debug, Default)]
struct Account {
    epoch: u64,
    /// Messages of the present view, by sender.
    heard: BTreeMap<MemberId, Heard>,
    /// The next count of each sender, over all views that it stays in.
    next: BTreeMap<MemberId, u64>,
    delivered: u64,
}

impl Account {
    fn note(&mut self, event: Event<'_>) {
        match event {
            Event::View(view, change) => {
                let all = self.heard.iter();
                let all = all.map(|(id, it)| format!("{id}:{}:{:x}", it.count, it.hash));
                println!("ended={} {}", self.epoch, all.collect::<Vec<_>>().join(","));
                let names = view.members.iter().map(|it| it.name.as_str()).collect::<Vec<_>>();
                let left = change.left.iter().map(|(it, why)| format!("{}/{why:?}", it.name));
                let (names, left) = (names.join(","), left.collect::<Vec<_>>().join(","));
                println!("view={} {} {names} {left}.", view.id.epoch, super::micros());
                println!("merged={}", change.merged);
                self.epoch = view.id.epoch;
                self.heard.clear();
                // Those that come back went on counting meanwhile.
                let joined = |id: &MemberId| change.joined.iter().any(|it| it.id == *id);
                self.next.retain(|id, _| view.contains(*id) && !joined(id) && !change.merged);
            }
            Event::Message { from, bytes, .. } => {
                let (count, _) = bytes.split_first_chunk().expect("a count");
                let count = u64::from_le_bytes(*count);
                let next = self.next.entry(from).or_insert(count);
                if count != *next {
                    println!("broken={count} of {from} came, not {next}");
                }
                *next = count + 1;
                let heard = self.heard.entry(from).or_default();
                heard.count += 1;
                heard.hash = heard.hash.wrapping_mul(0x100_0000_01b3) ^ count;
                self.delivered += 1;
                if self.delivered.is_multiple_of(LOAD) {
                    println!("loaded={}", self.delivered);
                }
            }
            _ => {}
        }
    }
}

fn act<T: Transport + Clone>(name: &str, transport: &T, watch: Option<Ipv4Addr>) {
    let mut options = GroupOptions::named(name);
    options.watch = watch.map(Into::into);
    let mut group = Group::join(transport.clone(), "g", options).expect("a member");
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        raised.store(true, Ordering::Relaxed);
    });
    let (mut account, mut count, mut message) = (Account::default(), 0_u64, [7; LENGTH]);
    while !stop.load(Ordering::Relaxed) {
        message[..8].copy_from_slice(&count.to_le_bytes());
        let is_sent =
            group.view().members.len() > 1 && group.try_send(&message, Order::Sender).is_ok();
        count += u64::from(is_sent);
        let work = group.poll(64, |event| account.note(event));
        group.wait(work + usize::from(is_sent));
    }
    let is_known = group.leave_with(Duration::from_secs(20), |event| account.note(event));
    println!("left={is_known}");
}
