//! Heartbeats: executes the command that agrees on them, sends them, and disconnects clients that
//! miss theirs.

use crate::clients::{Clients, DisconnectReason, Heartbeat};
use crate::command::acknowledgement::write_heartbeat;
use crate::command::request::HeartbeatRequest;
use crate::ids::ClientId;
use crate::time::Nanos;

/// Heartbeat intervals without a command after which a client is disconnected.
const MISSED_MAX: Nanos = 3;

/// Starts or stops the heartbeats of a client.
pub(crate) fn set(clients: &mut Clients, now: Nanos, id: ClientId, request: HeartbeatRequest) {
    let Some(client) = clients.get_mut(id) else { return };
    match request {
        HeartbeatRequest::Beat => {}
        HeartbeatRequest::Stop => client.heartbeat = None,
        HeartbeatRequest::Start(interval) => {
            let next = now.saturating_add(interval);
            client.heartbeat = Some(Heartbeat { interval, next });
        }
    }
}

/// Sends heartbeats that are due, and disconnects clients that missed theirs.
pub(crate) fn check(clients: &mut Clients, now: Nanos) {
    let (mut missed, mut due) = (Vec::new(), Vec::new());
    for (id, client) in clients.iter_mut() {
        // A paused client cannot prove that it lives: the server does not read its bytes.
        if client.is_silence_excused() {
            client.last_heard = now;
        }
        let Some(heartbeat) = &mut client.heartbeat else { continue };
        let silence = now.saturating_sub(client.last_heard);
        // Three intervals allow for a lost moment on the network or a busy machine.
        if silence > heartbeat.interval.saturating_mul(MISSED_MAX) {
            missed.push(id);
        } else if heartbeat.next <= now {
            heartbeat.next = now.saturating_add(heartbeat.interval);
            // Bytes that wait already are as good as a heartbeat once the client reads them.
            if client.queue.is_empty() {
                write_heartbeat(client.queue.buffer());
                due.push(id);
            }
        }
    }
    // After the loop, which borrows the clients.
    missed.into_iter().for_each(|id| clients.disconnect(id, DisconnectReason::HeartbeatMissed));
    due.into_iter().for_each(|id| clients.mark_dirty(id));
}
