//! Authorization: whether a user may execute a request. Pure functions over the request and the
//! client's authentication state.

use crate::auth::permissions::Permission;
use crate::auth::state::AuthState;
use crate::command::error::CommandError;
use crate::command::request::Operation;

/// Checks a request of a logged-on user.
///
/// # Errors
/// If the user lacks a permission, or a restricted user would learn of messages outside its filter.
pub(crate) fn authorize(operation: &Operation<'_>, state: &AuthState) -> Result<(), CommandError> {
    let (permissions, topic): (&[Permission], &str) = match operation {
        Operation::Publish(publish) => (&[Permission::Publish], &publish.topic),
        Operation::Query(query) => (&[Permission::Query], &query.topic),
        Operation::Delete(delete) => (&[Permission::Delete], &delete.topic),
        Operation::Subscribe(subscribe) => {
            let permissions: &[Permission] = match subscribe.mode.with_records {
                // AMPS defines sow_and_subscribe as both commands, so it needs both permissions.
                true => &[Permission::Query, Permission::Subscribe],
                false => &[Permission::Subscribe],
            };
            // A pattern's topics are checked one by one, when a message of each is published.
            let by_topic = subscribe.is_pattern && !subscribe.mode.with_records;
            (if by_topic { &[] } else { permissions }, &subscribe.topic)
        }
        _ => return Ok(()),
    };
    if let Some(missing) = permissions.iter().find(|one| !state.allows(**one, topic)) {
        return Err(CommandError::NotEntitled(missing.name(), topic.to_owned()));
    }
    // After the permissions: a user without one learns nothing about its filter.
    if state.is_restricted() { check_restricted(operation) } else { Ok(()) }
}

/// Refuses what would show or change messages that a restricted user may not see.
fn check_restricted(operation: &Operation<'_>) -> Result<(), CommandError> {
    match operation {
        // The merged record could be one outside the filter, and come into view by the change.
        Operation::Publish(publish) if publish.is_delta => {
            Err(CommandError::Confined("to change fields of a record"))
        }
        Operation::Subscribe(subscribe) if subscribe.options.out_of_focus => {
            Err(CommandError::Confined("to be told what leaves the filter"))
        }
        // Keys and messages would delete records outside the filter.
        Operation::Delete(delete) if delete.filter.is_none() => {
            Err(CommandError::Confined("to delete but by a filter"))
        }
        _ => Ok(()),
    }
}
