//! What is in a message, and who wants it: message types read lazily, the filter language, and
//! the matching of one message against many filters.
//!
//! - [`path`]: names of fields, such as `/55` and `/FIXML/Order/@Sym`;
//! - [`value`], [`number`], [`truth`]: what stands in fields, and how it compares.
//!
//! Nothing here does I/O, keeps time, or waits. Errors are for whoever wrote the filter or sent the
//! message; neither can make this crate panic.
#![forbid(unsafe_code)]

pub mod number;
pub mod path;
pub mod truth;
pub mod value;
