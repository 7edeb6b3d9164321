//! `lanecast sub`.

use super::sub_args::SubArgs;
use super::{subscribe_durable, subscribe_server, subscribe_transport};
use crate::output::wrong_arguments;
use std::process::ExitCode;

pub(crate) fn run(arguments: &SubArgs) -> anyhow::Result<ExitCode> {
    if let Some(words) = arguments.misfit() {
        return Ok(wrong_arguments(&words));
    }
    arguments.shared.warn_old_topic();
    match (arguments.durable.session, arguments.shared.server.is_named()) {
        (Some(session), _) => subscribe_durable::run(arguments, session),
        (None, true) => subscribe_server::run(arguments),
        (None, false) => subscribe_transport::run(arguments),
    }
}
