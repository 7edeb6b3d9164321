//! Members are killed, and stand still.

use crate::scene::{ALL, Scene, each, has_time};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::possible;
use rustix::process::Signal;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_micros()).expect("before 586512")
}

/// Kills members one after the other, each of another rank, and starts another one in its place.
/// The survivors agree each time, and have delivered the same messages before.
fn kill_in_a_row(transport: &str, kills: usize) -> Result<()> {
    let mut scene = Scene::start(transport, 4, "rate=300")?;
    let (mut times, mut whole) = (Vec::new(), 0);
    for kill in 0..kills {
        let before = scene.view()?;
        let victim = scene.seats.remove(scene.at_rank(kill % 4)?);
        let killed = micros();
        victim.actor.kill()?;
        let views = scene.until_together("the view of the survivors")?;
        whole += usize::from(scene.check_same(before.epoch)? == 3);
        let slowest = views.iter().map(|view| view.at.saturating_sub(killed)).max();
        let took = Duration::from_micros(slowest.unwrap_or(0));
        times.push(took);
        let told = scene.first_suspicion(killed).map(Duration::from_micros);
        println!("{transport}: kill {kill} of rank {}: {took:?}, noticed {told:?}", kill % 4);
        scene.add(victim.host)?;
        scene.until_together("the view with the new member")?;
        scene.until_load()?;
    }
    times.sort_unstable();
    let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{transport}: {kills} kills, new view at all survivors after {median:?} (median), \
         {most:?} (most); {whole} times all three survivors went on together"
    );
    ensure!(whole > 0, "the survivors never stayed together");
    scene.finish()
}

#[test]
fn survivors_of_kills_in_a_row_agree() -> Result<()> {
    let kills = if has_time() { 50 } else { 3 };
    each(|transport| kill_in_a_row(transport, kills))
}

/// A member that stands still is left out, and comes back when it goes on.
fn stands_still(transport: &str) -> Result<()> {
    let scene = Scene::start(transport, 4, "rate=100")?;
    let before = scene.view()?.epoch;
    let stopped = scene.at_rank(1)?;
    scene.seats[stopped].actor.signal(Signal::STOP)?;
    let others: Vec<usize> = (0..4).filter(|at| *at != stopped).collect();
    let views = scene.until_these_are_together("the view without it", &others)?;
    ensure!(views.iter().all(|view| view.epoch > before), "{views:#?}");
    scene.seats[stopped].actor.signal(Signal::CONT)?;
    scene.until_together("the view of all again")?;
    scene.check_same(before)?;
    scene.until_load()?;
    scene.finish()
}

#[test]
fn a_member_that_stands_still_is_left_out_and_comes_back() -> Result<()> {
    each(stands_still)
}

/// Ten members, each on a host of its own, of which one is killed.
fn ten(transport: &str) -> Result<()> {
    let mut scene = Scene::start(transport, 10, "rate=20")?;
    let before = scene.view()?.epoch;
    let victim = scene.seats.remove(scene.at_rank(0)?);
    victim.actor.kill()?;
    scene.until_together("the view of the nine")?;
    let together = scene.check_same(before)?;
    println!("{transport}: {together} of nine went on together");
    scene.until_load()?;
    scene.finish()
}

#[test]
fn ten_members_lose_their_coordinator() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let transports = if has_time() { &ALL[..] } else { &["tcp"] };
    transports.iter().try_for_each(|transport| ten(transport).context(*transport))
}
