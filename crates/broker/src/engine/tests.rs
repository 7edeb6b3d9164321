//! Tests of the engine without sockets.

mod deletions;
mod flow_control;
mod logons;
mod patterns;
mod topics;
