//! Runs of seeds, each in a world of its own.

use super::World;
use crate::ensure;
use crate::persistence::collected::{FIRST_SESSION, TOPIC};
use crate::persistence::outcome::StoreOutcome;
use crate::persistence::scenario::StoreScenario;
use crate::persistence::tamper::StoreTamper;
use crate::violation::{Verdict, Violation};
use lanecast_protocol::SECOND;
use lanecast_wire::store::{Ballot, StoreAddress, StoreFrame};

/// A publisher beside the one of the run.
const NEIGHBOUR: u64 = 8;

/// Runs a seed.
///
/// # Errors
/// If a promise is broken.
pub fn run(seed: u64) -> Result<StoreOutcome, Violation> {
    World::new(StoreScenario::draw(seed), StoreTamper::Nothing).run()
}

/// The same where publishers and receivers name other stores in each life.
///
/// # Errors
/// If a promise is broken.
pub fn run_lists(seed: u64) -> Result<StoreOutcome, Violation> {
    World::new(StoreScenario::draw_lists(seed), StoreTamper::Nothing).run()
}

/// The same up to the end of the faults, where all disks are full.
///
/// # Errors
/// If a promise is broken.
pub fn run_full_disks(seed: u64) -> Result<StoreOutcome, Violation> {
    let mut world = World::new(StoreScenario::draw(seed), StoreTamper::Nothing);
    world.run_to_end()?;
    if world.outcome.wipes == 0 {
        fill_disks(&mut world)?;
    }
    Ok(world.outcome)
}

/// No disk takes anything more, and each store has promised a run of a stream that is new.
/// Receivers that start get all that is stable of the other stream.
fn fill_disks(world: &mut World) -> Verdict {
    world.run_until(world.time.now + SECOND)?;
    for index in 0..world.actors.stores.len() {
        let process = &mut world.actors.stores[index];
        process.log.synchronize_all();
        process.log.fill();
        let address = StoreAddress { client: FIRST_SESSION, source: NEIGHBOUR, topic: TOPIC };
        let open = StoreFrame::Open { ballot: Ballot { epoch: 1, session: FIRST_SESSION } };
        let life = process.life;
        world.with_store(index, life, |it, log, now, out| {
            it.on_frame(address, &open, now, log, out);
        });
    }
    for receiver in 0..world.actors.receivers.len() {
        if world.actors.receivers[receiver].is_staying() {
            world.actors.receivers[receiver].crash();
            world.start_receiver(receiver);
        }
    }
    world.run_until(world.time.now + 5 * SECOND)?;
    for receiver in world.actors.receivers.iter().filter(|it| it.is_staying()) {
        ensure!(receiver.is_complete(&world.oracle), "a full disk holds up {receiver:?}");
        world.outcome.full_disks += 1;
    }
    Ok(())
}
