//! What is in a message, and who wants it: message types read lazily, the filter language, and
//! the matching of one message against many filters.
//!
//! - [`path`]: names of fields, such as `/55` and `/FIXML/Order/@Sym`;
//! - [`kind`]: what messages are written in;
//! - [`fields`]: the fields that somebody wants, each with a slot;
//! - [`reader`], [`row`]: from the bytes of a message to the values in those slots;
//! - [`malformed`]: why a message could not be read;
//! - [`value`], [`number`], [`truth`]: what stands in fields, and how it compares.
//!
//! Nothing here does I/O, keeps time, or waits. Errors are for whoever wrote the filter or sent the
//! message; neither can make this crate panic.
#![forbid(unsafe_code)]

pub mod fields;
pub mod kind;
pub mod malformed;
mod names;
pub mod number;
pub mod path;
pub mod reader;
pub mod row;
pub mod truth;
pub mod value;
