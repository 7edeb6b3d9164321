//! Authenticates clients before their commands are executed, and handles results of password
//! checks.

use crate::auth::password::PasswordResult;
use crate::clients::DisconnectReason;
use crate::command::acknowledgement::ReplyTo;
use crate::command::error::CommandError;
use crate::command::request::{Operation, Request};
use crate::engine::state::State;
use crate::ids::ClientId;
use crate::stats::log::is_logged;
use crate::time::Now;
use lanecast_wire::command::{Field, Header};

/// Commands that may fail before a successful logon; then the connection ends.
const FAILURES_MAX: u8 = 3;

/// Whether a client's command may be executed. Otherwise its logon waits for a password check, or
/// the command is rejected.
pub(crate) fn authenticate(
    state: &mut State,
    id: ClientId,
    request: &Request<'_>,
    payload: &[u8],
) -> bool {
    if !state.auth.requires_logon() {
        return true;
    }
    let State { auth, clients, .. } = state;
    let Some(client) = clients.get_mut(id) else { return false };
    // Each connection logs on once; a reload of the users file leaves its permissions as they are.
    if client.auth.permissions.is_some() {
        return true;
    }
    match &request.operation {
        Ok(Operation::Logon(logon)) => {
            let credentials = (logon.user.as_deref().unwrap_or_default(), &*logon.password);
            // The argon2 check takes milliseconds of a core: the password worker runs it, and the
            // client is paused meanwhile.
            auth.begin_check(id, client.source, &mut client.auth, credentials, payload);
        }
        _ => reject(state, id, &request.reply_to, &CommandError::NotLoggedOn),
    }
    false
}

/// Rejects a command of a client that is not authenticated, and disconnects it after too many.
fn reject(state: &mut State, id: ClientId, reply_to: &ReplyTo<'_>, error: &CommandError) {
    state.counters.refused += 1;
    state.reply(id, reply_to, |reply_to, out| reply_to.nack(error, out));
    let Some(client) = state.clients.get_mut(id) else { return };
    // Counted for every refused command, so a client cannot stay without a logon by sending others.
    client.auth.failures += 1;
    if client.auth.failures >= FAILURES_MAX {
        state.clients.disconnect(id, DisconnectReason::NotAuthenticated);
    }
}

/// Handles the result of a password check. After a right password returns the logon's payload, to
/// be executed with the user's permissions.
pub(crate) fn finish_check(
    state: &mut State,
    now: Now,
    result: &PasswordResult,
) -> Option<Box<[u8]>> {
    // Recorded even if the client disconnected: otherwise it could guess without delay.
    if let Some(count) = state.auth.record(now.monotonic_ns, result) {
        state.counters.wrong_logons += 1;
        if is_logged(count) {
            let source = result.source;
            state.log.push(format!(
                "logons from {source} with a wrong user or password: {count} of late"
            ));
        }
    }
    let State { auth, clients, .. } = state;
    let client = clients.get_mut(result.client)?;
    // The serial number differs if the client's id was reused during the check.
    let payload = client.auth.finish_check(result.serial)?;
    let header = Header::parse(&payload).ok()?;
    let name = header.text(Field::UserId).unwrap_or_default();
    // A reload may have removed the user meanwhile.
    match auth.permissions(&name).filter(|_| result.is_right) {
        Some(permissions) => {
            client.auth.permissions = Some(permissions);
            Some(payload)
        }
        None => {
            let reply_to = Request::parse(&header).reply_to;
            reject(state, result.client, &reply_to, &CommandError::Credentials);
            None
        }
    }
}
