//! Ends of a run's session, as the stores' offers tell.

use crate::quorum::StoreGroups;
use lanecast_wire::store::{Ballot, Members, StoreOffer};

/// Whether the publisher of a run is gone: a store has seen it leave, and so many members have too,
/// or have not heard of it since they started, that it could not go on without one of them.
pub(super) fn is_publisher_gone(
    offers: &[Option<StoreOffer>],
    stores: &StoreGroups,
    members: &Members,
    run: Ballot,
) -> bool {
    let is_gone = |name: &str, incarnation| {
        let offer = stores.index(name).and_then(|store| offers.get(store)?.as_ref());
        let offer = offer.filter(|it| it.state.incarnation == incarnation && it.state.log == run);
        offer.is_some_and(|offer| !may_get_more(offer, run))
    };
    let mut followed = offers.iter().flatten().filter(|it| it.state.log == run);
    followed.any(|offer| offer.has_left) && members.is_recovery_quorum(is_gone)
}

/// Whether a store may still get messages of a run: it has heard its publisher, and not seen it
/// leave.
pub(super) fn may_get_more(offer: &StoreOffer, run: Ballot) -> bool {
    offer.state.log == run && offer.is_live && !offer.has_left
}
