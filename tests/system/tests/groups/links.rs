//! A cable is cut: each side goes on by itself, and they merge once it is healed.

use crate::scene::{Scene, each};
use anyhow::{Result, ensure};

fn parts_and_merges(transport: &str) -> Result<()> {
    let scene = Scene::start(transport, 4, "rate=100")?;
    let before = scene.view()?.epoch;
    let last = scene.seats.len() - 1;
    scene.net.cut(scene.seats[last].host)?;
    scene.until_these_are_together("the view of the others", &[0, 1, 2])?;
    scene.until_these_are_together("the view of the one apart", &[last])?;
    scene.check_same(before)?;
    scene.net.heal(scene.seats[last].host)?;
    let views = scene.until_together("one view again")?;
    ensure!(views.iter().all(|view| view.is_merged), "{views:#?}");
    scene.until_load()?;
    scene.finish()
}

#[test]
fn a_cut_parts_the_group_and_its_end_merges_it() -> Result<()> {
    each(parts_and_merges)
}
