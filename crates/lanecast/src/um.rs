//! Configuration files of Ultra Messaging, translated into lanecast's settings.

pub(crate) mod flat;
mod options;
pub(crate) mod xml;
