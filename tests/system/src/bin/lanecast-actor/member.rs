//! A member of a group, which sends all the time and tells of its views.

use crate::message::now;
use crate::orders::{Order, Orders};
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lanecast_group::{self as group, Event, Group, GroupOptions, MemberId, View, ViewChange};
use lanecast_net::{NetTransport, Network};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Length of a message, in bytes.
const LENGTH: usize = 600;
/// Messages between two lines that tell of progress.
const TELL_EVERY: u64 = 100;
/// The longest time for leaving.
const PATIENCE: Duration = Duration::from_secs(30);

/// Is a member until it is told to end; then leaves.
///
/// Words: `transport`, `name`, `address` (of this host), `rate` (messages a second).
pub(crate) fn act(words: &Words) -> Result<()> {
    let network = Network::open(words.settings()?)?;
    let transport = NetTransport::new(network, words.kind()?);
    let name = words.text("name").context("name= is missing")?;
    let mut options = GroupOptions::named(name);
    options.watch = words.get::<IpAddr>("address")?;
    let mut group = Group::join(transport, "g", options)?;
    let orders = Orders::listen()?;
    println!("joining={name}");
    let mut account = Account::default();
    let pause = Duration::from_secs(1) / words.number("rate", 200)?.max(1) as u32;
    let (mut due, mut count, mut message) = (Instant::now(), 0_u64, [7; LENGTH]);
    while orders.next()? != Some(Order::End) {
        let work = group.poll(64, |event| account.note(&event));
        if let Some(broken) = account.broken.take() {
            return Err(broken);
        }
        // Late ones are sent at once, but not without end after a pause.
        if Instant::now() >= due && group.view().members.len() > 1 {
            message[..8].copy_from_slice(&count.to_le_bytes());
            if group.try_send(&message, group::Order::Sender).is_ok() {
                count += 1;
                due = (due + pause).max(Instant::now().checked_sub(10 * pause).unwrap_or(due));
            }
        }
        group.wait_at_most(work, due.saturating_duration_since(Instant::now()).min(pause));
    }
    println!("sent={count}");
    let has_left = group.leave_with(PATIENCE, |event| account.note(&event));
    println!("has_left={has_left}");
    account.broken.map_or(Ok(()), Err)
}

/// Messages of one sender in one view: their number, and a hash over all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    count: u64,
    hash: u64,
}

/// All that the member was given, checked on arrival.
#[derive(Debug, Default)]
struct Account {
    epoch: u64,
    /// Messages of the present view.
    heard: BTreeMap<MemberId, Heard>,
    /// The next count of each sender, over all views that it stays in.
    next: BTreeMap<MemberId, u64>,
    delivered: u64,
    broken: Option<anyhow::Error>,
}

impl Account {
    fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::View(view, change) => self.change(view, change),
            Event::Message { from, bytes, .. } => {
                if let Err(error) = self.receive(*from, bytes) {
                    self.broken.get_or_insert(error);
                }
            }
            Event::Suspected(member, why) => {
                println!("suspected={} {why:?} {}", member.name, now() / 1_000);
            }
            _ => {}
        }
    }

    fn change(&mut self, view: &View, change: &ViewChange) {
        let heard = self.heard.iter();
        let heard = heard.map(|(id, it)| format!("{id}:{}:{:x}", it.count, it.hash));
        println!("ended={} {}", self.epoch, heard.collect::<Vec<_>>().join(","));
        let names = view.members.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(",");
        let left = change.left.iter().map(|(it, why)| format!("{}/{why:?}", it.name));
        let left = left.collect::<Vec<_>>().join(",");
        self.epoch = view.id.epoch;
        println!("view={} {} {} {names} {left}", self.epoch, now() / 1_000, change.merged);
        self.heard.clear();
        // Those that come back have gone on counting meanwhile.
        let is_new = |id: &MemberId| change.joined.iter().any(|it| it.id == *id);
        self.next.retain(|id, _| view.contains(*id) && !is_new(id) && !change.merged);
    }

    fn receive(&mut self, from: MemberId, bytes: &[u8]) -> Result<()> {
        let count = bytes.first_chunk().context("a message without a count")?;
        let count = u64::from_le_bytes(*count);
        ensure!(bytes.len() == LENGTH && bytes[8..] == [7; LENGTH][8..], "a garbled message");
        let next = self.next.entry(from).or_insert(count);
        ensure!(count == *next, "message {count} of {from} came, not {next}");
        *next += 1;
        let heard = self.heard.entry(from).or_default();
        heard.count += 1;
        heard.hash = heard.hash.wrapping_mul(0x100_0000_01b3) ^ count;
        self.delivered += 1;
        if self.delivered.is_multiple_of(TELL_EVERY) {
            println!("at={}", self.delivered);
        }
        Ok(())
    }
}
