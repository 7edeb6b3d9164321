//! CPUs of publisher and receivers.

use crate::doctor::Proposal;
use lanecast_os::affinity;
use thiserror::Error;

/// The CPUs of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The publisher's.
    pub publisher: usize,
    /// The receivers', in the order in which they are taken; not empty.
    pub receivers: Vec<usize>,
    /// One of another NUMA node than the publisher's, if there is one.
    pub far: Option<usize>,
}

/// Errors of placement.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// The CPU is not there, or not for this process.
    #[error("CPU {asked} cannot be used here: choose of {allowed:?}")]
    NotAllowed {
        /// The CPU asked for.
        asked: usize,
        /// Available CPUs.
        allowed: Vec<usize>,
    },
    /// The publisher's CPU is also a receiver's.
    #[error("publisher and receiver cannot both have CPU {0}: each of them spins")]
    Shared(usize),
    /// There is only one CPU.
    #[error("a series needs two CPUs, and this process may use only {0:?}")]
    TooFew(Vec<usize>),
}

impl Placement {
    /// Chooses the requested CPUs, or else the pair that the examination of the machine proposes;
    /// more receivers get the other CPUs, those of the publisher's node first.
    ///
    /// # Errors
    /// If there are not two CPUs, or one that was asked for is not there.
    pub fn choose(publisher: Option<usize>, receivers: &[usize]) -> Result<Self, PlacementError> {
        let mut usable = usable();
        if let Some(proposal) = Proposal::on_this_host() {
            let place = |cpu: &usize| match *cpu {
                cpu if cpu == proposal.subscriber_cpu => 0,
                cpu if cpu == proposal.publisher_cpu => 1,
                _ => 2,
            };
            // Stable: the others stay in their order.
            usable.sort_by_key(place);
        }
        Self::among(&usable, affinity::node_of, publisher, receivers)
    }

    /// CPUs for the threads of one process, in order: the requested ones, or else all, starting
    /// with the publisher's proposed one.
    ///
    /// # Errors
    /// If one that was asked for is not there.
    pub fn cpus(asked: &[usize]) -> Result<Vec<usize>, PlacementError> {
        let allowed = usable();
        match asked.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(&asked) => Err(PlacementError::NotAllowed { asked, allowed }),
            None if !asked.is_empty() => Ok(asked.to_vec()),
            None => Ok(match Self::choose(None, &[]) {
                Ok(chosen) => [&[chosen.publisher], &chosen.receivers[..]].concat(),
                Err(_) => allowed,
            }),
        }
    }

    /// Chooses among `allowed`: by default the second one for the publisher, the first one for a
    /// receiver.
    fn among(
        allowed: &[usize],
        node_of: impl Fn(usize) -> Option<usize>,
        publisher: Option<usize>,
        receivers: &[usize],
    ) -> Result<Self, PlacementError> {
        if allowed.len() < 2 {
            return Err(PlacementError::TooFew(allowed.to_vec()));
        }
        for &asked in publisher.iter().chain(receivers) {
            if !allowed.contains(&asked) {
                return Err(PlacementError::NotAllowed { asked, allowed: allowed.to_vec() });
            }
        }
        let publisher = publisher.unwrap_or_else(|| {
            let free = allowed.iter().skip(1).chain(&allowed[..1]);
            free.copied().find(|cpu| !receivers.contains(cpu)).unwrap_or(allowed[1])
        });
        if receivers.contains(&publisher) {
            return Err(PlacementError::Shared(publisher));
        }
        let near = |cpu: &usize| node_of(*cpu) == node_of(publisher);
        let others = || allowed.iter().copied().filter(|&cpu| cpu != publisher);
        let receivers = match receivers {
            [] => others().filter(near).chain(others().filter(|cpu| !near(cpu))).collect(),
            given => given.to_vec(),
        };
        let far = others().find(|cpu| node_of(*cpu).is_some() && !near(cpu));
        Ok(Self { publisher, receivers, far })
    }

    /// The CPU of each of `count` receivers, and whether some share one.
    pub fn receivers(&self, count: usize) -> (Vec<usize>, bool) {
        let cpus = self.receivers.iter().copied().cycle().take(count).collect();
        (cpus, count > self.receivers.len())
    }
}

/// CPUs that this process may pin a thread to, ascending. A separate thread tries them, so that the
/// caller is not moved.
fn usable() -> Vec<usize> {
    let pinned = || affinity::online().into_iter().filter(|&cpu| affinity::pin(cpu).is_ok());
    std::thread::spawn(move || pinned().collect()).join().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_NODE: fn(usize) -> Option<usize> = |_| Some(0);
    /// Even CPUs on node 0, odd ones on node 1: as on the document's machine.
    const TWO_NODES: fn(usize) -> Option<usize> = |cpu| Some(cpu % 2);

    #[test]
    fn two_cpus_are_enough_and_receivers_share_the_second() {
        let placement = Placement::among(&[0, 1], ONE_NODE, None, &[]).unwrap();
        assert_eq!((placement.publisher, &placement.receivers[..]), (1, &[0][..]));
        assert_eq!(placement.receivers(1), (vec![0], false));
        assert_eq!(placement.receivers(3), (vec![0, 0, 0], true));
        assert_eq!(placement.far, None);
    }

    #[test]
    fn receivers_stay_on_the_publisher_s_node_while_they_can() {
        let cpus: Vec<usize> = (0..6).collect();
        let placement = Placement::among(&cpus, TWO_NODES, Some(5), &[]).unwrap();
        assert_eq!(placement.receivers(3), (vec![1, 3, 0], false));
        assert_eq!(placement.far, Some(0));
    }

    #[test]
    fn the_order_of_the_cpus_decides_what_is_not_asked_for() {
        let placement = Placement::among(&[6, 4, 0, 2], ONE_NODE, None, &[]).unwrap();
        assert_eq!((placement.publisher, &placement.receivers[..]), (4, &[6, 0, 2][..]));
    }

    #[test]
    fn threads_get_every_cpu_or_those_that_are_asked_for() {
        let all = Placement::cpus(&[]).unwrap();
        assert_eq!(all.len(), usable().len());
        assert_eq!(Placement::cpus(&[all[0], all[0]]), Ok(vec![all[0], all[0]]));
        let error = Placement::cpus(&[4000]).unwrap_err();
        assert!(error.to_string().contains("CPU 4000 cannot be used here"), "{error}");
    }

    #[test]
    fn a_requested_placement_is_applied_or_refused() {
        let choose = |publisher, receivers: &[usize]| {
            Placement::among(&[0, 1, 2], ONE_NODE, publisher, receivers)
        };
        assert_eq!(choose(None, &[1]).unwrap().publisher, 2);
        assert_eq!(choose(Some(2), &[0, 1]).unwrap().receivers, [0, 1]);
        assert_eq!(choose(Some(1), &[1]), Err(PlacementError::Shared(1)));
        assert!(matches!(choose(Some(7), &[]), Err(PlacementError::NotAllowed { asked: 7, .. })));
        let alone = Placement::among(&[3], ONE_NODE, None, &[]);
        assert_eq!(alone, Err(PlacementError::TooFew(vec![3])));
    }
}
