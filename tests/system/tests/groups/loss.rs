//! Packets get lost at random: living members stay together, and messages arrive.

use crate::scene::{Scene, each, has_time};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::Loss;
use std::time::Duration;

/// The time of the loss.
fn span() -> Duration {
    Duration::from_secs(if has_time() { 60 } else { 5 })
}

/// Four members lose this many packets of a thousand, and none counts as gone.
fn stays_together(transport: &str, per_mille: u32) -> Result<()> {
    let scene = Scene::start(transport, 4, "rate=200")?;
    let before = scene.view()?;
    scene.net.lose(&Loss::per_mille(per_mille))?;
    scene.until_load()?;
    // What is shown is that nothing happens: as long as the test may take.
    std::thread::sleep(span());
    scene.until_load()?;
    for (host, seat) in scene.net.hosts().iter().zip(&scene.seats) {
        let (lost, views) = (host.lost()?, seat.views());
        let suspicions = seat.actor.out().matches("suspected=").count();
        println!("{transport} at {per_mille}/1000: {lost} lost, {suspicions} suspicions");
        ensure!(lost > 0, "the network has lost nothing");
        let last = views.last().context("a view")?;
        ensure!(last.epoch == before.epoch, "the view changed: {views:#?}");
    }
    scene.net.lose_nothing()?;
    scene.until_load()?;
    scene.finish()
}

#[test]
fn one_percent_parts_no_members() -> Result<()> {
    each(|transport| stays_together(transport, 10))
}

#[test]
fn five_percent_part_no_members() -> Result<()> {
    each(|transport| stays_together(transport, 50))
}
