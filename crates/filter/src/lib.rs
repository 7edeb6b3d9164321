//! What is in a message, and who wants it: message types read lazily, the filter language, and
//! the matching of one message against many filters.
//!
//! - [`path`]: names of fields, such as `/55` and `/FIXML/Order/@Sym`;
//! - [`kind`]: what messages are written in;
//! - [`fields`]: the fields that somebody wants, each with a slot;
//! - [`reader`], [`row`]: from the bytes of a message to the values in those slots;
//! - [`malformed`]: why a message could not be read;
//! - [`compose`], [`merge`], [`difference`]: messages made of values, and of deltas;
//! - [`value`], [`number`], [`truth`]: what stands in fields, and how it compares;
//! - [`Selection`]: which fields of messages somebody wants to have;
//! - [`Filter`], [`Projection`], [`expr`]: the language, read from text and printed again;
//! - [`naive`]: what expressions mean; [`Plan`]: the same, faster;
//! - [`index`]: the same for many filters at once;
//! - [`explain`]: what plans and indexes make of a filter, for people.
//!
//! Nothing here does I/O, keeps time, or waits. Errors are for whoever wrote the filter or sent the
//! message; neither can make this crate panic.
#![forbid(unsafe_code)]

mod arithmetic;
mod call;
pub mod compose;
mod date;
pub mod difference;
mod error;
pub mod explain;
pub mod expr;
pub mod fields;
pub mod filter;
mod function;
pub mod index;
pub mod kind;
mod lexer;
pub mod malformed;
pub mod merge;
mod message;
pub mod naive;
mod names;
mod normal;
pub mod number;
mod parser;
mod parts;
pub mod path;
mod pattern;
mod plan;
mod predicate;
mod projection;
pub mod reader;
pub mod row;
mod selection;
mod tree;
pub mod truth;
pub mod value;

pub use error::{Fault, FilterError};
pub use filter::{Filter, Limits};
pub use function::Function;
pub use index::Index;
pub use message::Message;
pub use pattern::Pattern;
pub use plan::Plan;
pub use projection::Projection;
pub use selection::{Selection, SelectionError};
