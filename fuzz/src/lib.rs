//! What the targets for frames share: a script read from the fuzzer's bytes, and frames made of it.
//!
//! Bytes alone would hardly ever make a frame that gets past the first check. So a script says
//! which frame to write, and its numbers are near those that would be right.

mod frames;
mod script;

pub use frames::{Near, frame};
pub use script::Script;
