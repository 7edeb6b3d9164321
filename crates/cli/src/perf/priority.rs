//! Arguments about the process's priority.

use crate::output::print_error;
use anyhow::Context;
use lanecast_measure::{PriorityChange, PriorityRequest};
use lanecast_os::process;

/// Leaves the session of the process that started this one, and ends when that does.
pub(super) fn leave_session() -> anyhow::Result<()> {
    process::end_with_parent().context("cannot tie this process to its parent")?;
    process::start_session()
        .context("cannot start a session: --own-session is for processes that another one starts")
}

/// Priority of a measuring process.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct PriorityArgs {
    /// Priority over other processes: auto, none or real-time (for 0.9 s at most)
    #[arg(long, value_name = "HOW", default_value = "auto")]
    raise: PriorityRequest,

    /// Leave the session of the process that started this one, and end when it does
    #[arg(long, hide = true)]
    own_session: bool,
}

impl PriorityArgs {
    /// Does what can be done before the measurement.
    pub(super) fn apply(self) -> anyhow::Result<PriorityChange> {
        if self.own_session {
            leave_session()?;
        }
        let raise = PriorityChange::by(self.raise);
        if self.raise == PriorityRequest::RealTime && raise == PriorityChange::NotPermitted {
            print_error(
                "real-time priorities are not permitted here: going on without (allow them with \
                 'ulimit -r 11', or the right CAP_SYS_NICE)",
            );
        }
        Ok(raise)
    }
}
