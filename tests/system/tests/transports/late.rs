//! Subscribers that come late, and sequences that run through their wrap.

use crate::play::{ALL, PATIENT, check_whole, publisher, subscriber};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Left, Loss, Network, possible};

/// Messages before the subscriber comes, and after it.
const BEFORE: u64 = 3_000;
const AFTER: u64 = 1_000;

/// A subscriber comes when the first messages are sent; its account of all.
fn come_late(net: &Network, transport: &str, words: &str) -> Result<Left> {
    let words = format!("{PATIENT} {words}");
    let mut source = publisher(net.host(0), transport, &format!("{words} count={BEFORE}"))?;
    source.tells("reached")?;
    let mut reader = subscriber(net.host(1), &words)?;
    reader.tells("joined")?;
    source.say(&format!("send {AFTER}"))?;
    source.tells("reached")?;
    source.end()?;
    let left = reader.parts()?;
    ensure!(left.why == "closed" && left.lost == 0, "{left:?}");
    ensure!(left.next == BEFORE + AFTER, "{left:?}");
    reader.finish()?;
    source.finish()?;
    Ok(left)
}

fn each(per_mille: u32, scene: impl Fn(&Network, &str) -> Result<()>) -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    net.lose(&Loss::per_mille(per_mille))?;
    ALL.iter().try_for_each(|transport| scene(&net, transport).context(*transport))
}

#[test]
fn a_late_one_begins_with_the_oldest_that_is_kept() -> Result<()> {
    each(20, |net, transport| {
        let left = come_late(net, transport, "late_join=true")?;
        ensure!(left.first == 0, "{left:?}");
        let left = come_late(net, transport, "late_join=true window=65536")?;
        // A window of this size holds some of the messages, and not all.
        ensure!(left.first > 1_000 && left.first < BEFORE, "{left:?}");
        Ok(())
    })
}

#[test]
fn a_late_one_begins_with_the_next_message_unless_it_is_told_otherwise() -> Result<()> {
    each(20, |net, transport| {
        let left = come_late(net, transport, "")?;
        ensure!(left.first == BEFORE, "{left:?}");
        Ok(())
    })
}

#[test]
fn sequences_may_wrap() -> Result<()> {
    each(50, |net, transport| {
        for first in [u64::from(u32::MAX) - 60, u64::MAX - 60] {
            for late in [false, true] {
                let words = format!("{PATIENT} first_sequence={first} late_join={late}");
                let wait = if late { "rate=10000" } else { "rate=10000 subscribers=1" };
                let words_of_source = format!("{words} {wait} count=200 longest=1400");
                let mut source = publisher(net.host(0), transport, &words_of_source)?;
                if late {
                    source.tells("reached")?;
                }
                let mut reader = subscriber(net.host(1), &format!("{words} longest=1400"))?;
                reader.tells("joined")?;
                if !late {
                    source.tells("reached")?;
                }
                source.end()?;
                let left = reader.parts()?;
                check_whole(&left, 200).with_context(|| format!("{first}, late: {late}"))?;
                ensure!(left.first == 0, "{left:?}");
                reader.finish()?;
                source.finish()?;
            }
        }
        Ok(())
    })
}
