//! The conductor's sending part: serves publishers' sessions while their owners are elsewhere.
//!
//! Closed publishers stay here until their receivers have everything.

use crate::conductor::{CommandQueue, SubAgent, WaitSet, lock_session};
use crate::counters::PublisherStatus;
use crate::lingering::Lingering;
use crate::poller::Descriptor;
use crate::send_session::SendSession;
use crate::stand_in_pacing::StandInPacing;
use lanecast_base::sync::Ordering;
use lanecast_os::biased::Visitor;
use lanecast_protocol::Nanos;
use std::ops::Range;
use std::sync::Arc;

/// Commands from publishers.
#[derive(Debug)]
pub(crate) enum SenderCommand {
    Add(PublisherEntry),
    Retire { session: u64 },
}

/// A publisher's session, as the conductor keeps it.
#[derive(Debug)]
pub(crate) struct PublisherEntry {
    pub(crate) session: u64,
    pub(crate) visitor: Visitor<SendSession>,
    pub(crate) status: Arc<PublisherStatus>,
    /// The owner's count of lock_count at the last duty cycle.
    pub(crate) seen: u64,
    /// Time of the close.
    pub(crate) retired: Option<Nanos>,
    /// The conductor's last service, while nothing has come since.
    pub(crate) served: Option<Served>,
    pub(crate) pacing: StandInPacing,
}

/// A session as the conductor has left it: until its deadline, a frame of a receiver or its owner,
/// there is nothing to do, and driving it would only cost system calls.
#[derive(Debug)]
pub(crate) struct Served {
    deadline: Nanos,
    descriptors: Vec<(Descriptor, bool)>,
    /// The places of the descriptors in the wait set.
    places: Range<usize>,
    /// The last cycle found out nothing about the descriptors.
    is_unknown: bool,
}

impl Served {
    /// Whether the session rests in this duty cycle, too: then its descriptors are waited for, but
    /// not before `due`.
    fn rests(&mut self, now: Nanos, due: Nanos, wait_set: &mut WaitSet) -> bool {
        if self.deadline <= now {
            return false;
        }
        if now < due {
            // The cycle after the pause waits for the descriptors, and the one after that reads.
            self.places = 0..0;
            wait_set.deadline = wait_set.deadline.min(self.deadline).min(due);
            return true;
        }
        // A cycle without a sleep tells nothing. The next sleep does, unless such cycles go on:
        // discovery has much to read.
        let is_ready = wait_set.is_ready(self.places.clone());
        let was_unknown = core::mem::replace(&mut self.is_unknown, is_ready.is_none());
        if is_ready.unwrap_or(was_unknown) {
            return false;
        }
        self.wait(wait_set);
        true
    }

    fn wait(&mut self, wait_set: &mut WaitSet) {
        let first = wait_set.descriptors.len();
        wait_set.descriptors.extend_from_slice(&self.descriptors);
        self.places = first..wait_set.descriptors.len();
        wait_set.deadline = wait_set.deadline.min(self.deadline);
    }
}

/// Serves all publishers of a network.
#[derive(Debug)]
pub(crate) struct SenderAgent {
    commands: Arc<CommandQueue<SenderCommand>>,
    lingering: Arc<Lingering>,
    /// The longest time that a closed publisher lingers.
    linger: Nanos,
    publishers: Vec<PublisherEntry>,
    /// Owners never send themselves.
    only_driver: bool,
}

impl SenderAgent {
    pub(crate) const fn new(
        commands: Arc<CommandQueue<SenderCommand>>,
        lingering: Arc<Lingering>,
        linger: Nanos,
        only_driver: bool,
    ) -> Self {
        Self { commands, lingering, linger, publishers: Vec::new(), only_driver }
    }

    fn run_commands(&mut self, now: Nanos) -> usize {
        let commands = self.commands.drain();
        let count = commands.len();
        for command in commands {
            match command {
                SenderCommand::Add(publisher) => self.publishers.push(publisher),
                SenderCommand::Retire { session } => {
                    let mut publishers = self.publishers.iter_mut();
                    if let Some(publisher) = publishers.find(|it| it.session == session) {
                        publisher.retired = Some(now);
                    }
                }
            }
        }
        count
    }
}

impl SubAgent for SenderAgent {
    fn do_work(&mut self, now: Nanos, wait_set: &mut WaitSet) -> usize {
        let commands = self.run_commands(now);
        let (only_driver, linger, lingering) = (self.only_driver, self.linger, &self.lingering);
        self.publishers.retain_mut(|publisher| {
            // The count read now is compared in the next cycle, and by `was_locked` before a sleep.
            let lock_count = publisher.visitor.lock_count();
            // An owner that has entered since the last cycle serves the session itself.
            let has_entered = lock_count != publisher.seen;
            let owner_active = !only_driver && publisher.retired.is_none() && has_entered;
            publisher.seen = lock_count;
            if has_entered || publisher.retired.is_some() {
                publisher.served = None;
                publisher.pacing.owner_entered();
            }
            let is_unpaced = only_driver || publisher.status.is_waited_for();
            let due = if is_unpaced { now } else { publisher.pacing.due() };
            if publisher.served.as_mut().is_some_and(|served| served.rests(now, due, wait_set)) {
                return true;
            }
            if publisher.served.take().is_none() && !owner_active && now < due {
                wait_set.deadline = wait_set.deadline.min(due);
                return true;
            }
            let locked =
                if owner_active { None } else { lock_session(&publisher.visitor, only_driver) };
            let Some(mut session) = locked else {
                // No deadline is known without the lock: a short pause stands in for it.
                wait_set.owners_active = true;
                return true;
            };
            publisher.pacing.on_service(now);
            let mut served = Served {
                deadline: session.drive_for_owner(),
                descriptors: Vec::new(),
                places: 0..0,
                is_unknown: false,
            };
            session.descriptors(&mut served.descriptors);
            served.wait(wait_set);
            publisher.served = Some(served);
            // A retired session repairs until its last receiver has left, or the linger is over.
            let Some(since) = publisher.retired else { return true };
            let is_over = session.is_finished() || now.wrapping_sub(since) > linger;
            // Exactly once for each `Lingering::add`: the network's drop waits for the count.
            if is_over {
                lingering.remove();
            }
            !is_over
        });
        commands
    }

    fn was_locked(&self) -> bool {
        self.publishers.iter().any(|publisher| publisher.visitor.lock_count() != publisher.seen)
    }

    fn is_batching(&self) -> bool {
        self.publishers.iter().any(|it| it.retired.is_none() && it.status.is_streaming())
    }

    fn is_packing(&self) -> bool {
        self.publishers.iter().any(|publisher| publisher.status.is_packing.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_served_session_rests_until_its_deadline_or_a_frame() {
        let listener: Descriptor = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
        let descriptors = vec![(listener, false)];
        let mut served = Served { deadline: 100, descriptors, places: 0..0, is_unknown: false };
        let mut wait_set = WaitSet::new();
        served.wait(&mut wait_set);
        assert_eq!((wait_set.descriptors.len(), wait_set.deadline), (1, 100));
        for (ready, now, rests) in [
            (vec![false], 99, true),
            (vec![true], 99, false),
            (vec![false], 100, false),
            // Without a sleep in between nothing is known; the second time it is read unasked.
            (vec![], 98, true),
            (vec![], 99, false),
        ] {
            wait_set.clear();
            wait_set.ready = ready.clone();
            assert_eq!(served.rests(now, now, &mut wait_set), rests, "{ready:?} at {now}");
            assert_eq!(wait_set.descriptors.len(), usize::from(rests), "still waited for");
            served.places = 0..1;
        }
        wait_set.clear();
        wait_set.ready = vec![true];
        assert!(served.rests(50, 60, &mut wait_set), "its pause is not over");
        assert_eq!((wait_set.descriptors.len(), wait_set.deadline), (0, 60));
        assert!(!served.rests(100, 110, &mut wait_set), "its deadline waits for no pause");
        wait_set.clear();
        wait_set.ready = vec![];
        assert!(served.rests(60, 60, &mut wait_set));
        assert_eq!(wait_set.descriptors.len(), 1, "waited for again");
        wait_set.ready = vec![true];
        assert!(!served.rests(61, 60, &mut wait_set));
    }
}
