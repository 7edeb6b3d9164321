//! Limits of connections before their logon, and of incomplete frames: the server closes the
//! connections that exceed them, and logs how often.

use crate::engine::Engine;
use crate::engine::state::State;
use crate::ids::ClientId;
use crate::net::network::Network;
use crate::net::source::Source;
use crate::net::websocket::CloseReason;
use crate::stats::log::is_logged;
use crate::time::Nanos;

/// Ends a connection, after telling the client why as far as the socket accepts it at once.
pub(crate) fn end_connection(
    engine: &mut Engine,
    network: &mut Network,
    id: ClientId,
    reason: CloseReason,
) {
    if network.connections.get(id).is_some() {
        network.remove(id, Some(reason));
        engine.disconnect(id);
    }
}

/// Closes pending connections until one more from `source` is within the limits.
pub(crate) fn evict_pending(
    engine: &mut Engine,
    network: &mut Network,
    source: Source,
    is_pending: bool,
) {
    loop {
        let State { clients, auth, .. } = &engine.state;
        let pending = &network.pending;
        let over_limit = network.source_over_limit(source).filter(|_| is_pending);
        let busiest = || if clients.is_full() { pending.busiest_source() } else { None };
        let Some(busiest) = over_limit.or_else(busiest) else { return };
        // Rather an idle connection than one whose password is being checked.
        let idle = pending.oldest_idle(busiest);
        let Some(id) = idle.or_else(|| auth.oldest_of_busiest_user(busiest)) else { return };
        let State { counters, log, .. } = &mut engine.state;
        counters.evicted += 1;
        let count = counters.evicted;
        if is_logged(count) {
            let limits = "limits.pending, limits.pending_per_address";
            log.push(format!(
                "too many connections are coming in: {count} were hung up on so far, the last \
                 from {busiest} ({limits})"
            ));
        }
        let reason = "too many are coming in: try again later";
        end_connection(engine, network, id, CloseReason::Policy(reason));
    }
}

/// Updates a pending connection after a read or a password check.
pub(crate) fn update_handshake(engine: &mut Engine, network: &mut Network, id: ClientId) {
    let is_checking = engine.is_checking_password(id);
    network.update_handshake(id, is_checking, engine.is_authenticated(id));
}

/// Closes pending connections whose deadline passed.
pub(crate) fn expire_handshakes(engine: &mut Engine, network: &mut Network, now: Nanos) {
    while let Some(id) = network.pending.expired(now) {
        network.pending.remove(id);
        end_connection(engine, network, id, CloseReason::Policy("it took too long to come in"));
    }
}

/// Closes connections whose frame is incomplete for too long.
pub(crate) fn expire_partial_frames(engine: &mut Engine, network: &mut Network, now: Nanos) {
    for id in network.expired_partials(now, |id| engine.is_paused(id)) {
        drop_partial_frame(engine, network, id, "its frame took too long");
    }
}

/// Closes connections until incomplete frames are within their memory limit.
pub(crate) fn limit_partial_frames(engine: &mut Engine, network: &mut Network) {
    loop {
        let clients = &engine.state.clients;
        // A client that waits for the journal or its own queries cannot complete its frame.
        let is_waiting = |id| {
            let client = clients.get(id);
            client.is_some_and(|client| client.is_paused && !client.has_unread_replies())
        };
        let Some(id) = network.partial_over_limit(is_waiting) else { return };
        drop_partial_frame(engine, network, id, "too much has come of frames that have not ended");
    }
}

fn drop_partial_frame(
    engine: &mut Engine,
    network: &mut Network,
    id: ClientId,
    reason: &'static str,
) {
    let State { counters, log, .. } = &mut engine.state;
    counters.partial_frames_dropped += 1;
    let count = counters.partial_frames_dropped;
    if is_logged(count) {
        let source = network.connections.get(id).map(|connection| connection.source);
        let source = source.unwrap_or_default();
        log.push(format!(
            "frames that have begun do not end: {count} connections were hung up on so far, \
             the last from {source}: {reason} (limits.frame_time, limits.partial)"
        ));
    }
    end_connection(engine, network, id, CloseReason::Policy(reason));
}
