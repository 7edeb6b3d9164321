//! `lanecast pub` and `lanecast sub`: topics as pipes of a shell.

mod frames;
mod pace;
mod publish;
mod subscribe;

pub(crate) use publish::{PubArgs, run as publish};
pub(crate) use subscribe::{SubArgs, run as subscribe};

/// The exit status of a run that ended well, but not with every message at its reader.
const INCOMPLETE: u8 = 3;
