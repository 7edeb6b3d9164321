//! The CPUs of a fan-out run: of the server, the publishers and the subscribers.

use lanecast_measure::NumaPlacement;

/// The CPU of thread group `number`; groups without one of their own share the last.
pub(super) fn cpu_of(placement: &NumaPlacement, number: usize) -> Option<usize> {
    let first = *placement.cpus.first()?;
    // After the last CPU of the node comes the first again.
    let again = placement.cpus.iter().skip(1).position(|cpu| *cpu == first);
    let own = again.map_or(placement.cpus.len(), |at| at + 1);
    placement.cpus.get(number.min(own - 1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_without_a_cpu_of_their_own_share_the_last() {
        let at = |cpus: &[usize]| {
            let placement = NumaPlacement { cpus: cpus.to_vec(), ..NumaPlacement::default() };
            [0, 1, 2].map(|number| cpu_of(&placement, number))
        };
        assert_eq!(at(&[4, 5, 6]), [Some(4), Some(5), Some(6)]);
        assert_eq!(at(&[0, 1, 0]), [Some(0), Some(1), Some(1)]);
        assert_eq!(at(&[3, 3, 3]), [Some(3); 3]);
        assert_eq!(at(&[]), [None; 3]);
    }
}
