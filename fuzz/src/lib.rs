//! Parts of all targets: a script read from the fuzzer's bytes, and the frames and texts that are
//! made of it.
//!
//! Bytes alone would hardly ever make a frame that gets past the first check. So a script says
//! which frame to write, and its numbers are near those that would be right; and texts follow the
//! rules of a language, most of the time.

mod frames;
mod grammar;
mod script;

pub use frames::{Near, frame};
pub use grammar::Grammar;
pub use script::Script;
