//! What is in a message, and who wants it: message types read lazily, the filter language, and
//! the matching of one message against many filters.
//!
//! - [`path`]: names of fields, such as `/55` and `/FIXML/Order/@Sym`;
//! - [`message_type`]: what messages are written in;
//! - [`fields`]: the fields that somebody wants, each with a slot;
//! - [`reader`], [`row`]: from the bytes of a message to the values in those slots;
//! - [`malformed`]: why a message could not be read;
//! - [`write_message`], [`merge`], [`difference`]: messages made of values, and of deltas;
//! - [`value`], [`number`], [`truth`]: what stands in fields, and how it compares;
//! - [`Selection`]: which fields of messages somebody wants to have;
//! - [`Filter`], [`Projection`], [`expr`]: the language, read from text and printed again;
//! - [`interpreter`]: what expressions mean; [`Plan`]: the same, faster;
//! - [`index`]: the same for many filters at once;
//! - [`explain`]: what plans and indexes make of a filter, for people.
//!
//! Nothing here does I/O, keeps time, or waits. Errors are for whoever wrote the filter or sent the
//! message; neither can make this crate panic.
#![forbid(unsafe_code)]

mod arithmetic;
mod builtins;
mod date;
pub mod difference;
mod error;
pub mod explain;
pub mod expr;
pub mod fields;
pub mod filter;
mod function;
pub mod index;
pub mod interpreter;
mod lexer;
mod limits;
pub mod malformed;
mod members;
pub mod merge;
mod message;
pub mod message_type;
pub mod message_writer;
mod name_table;
mod normalize;
pub mod number;
mod parser;
pub mod path;
mod path_trie;
mod pattern;
mod plan;
mod predicate;
mod projection;
mod quoted;
pub mod reader;
pub mod row;
mod selection;
pub mod ternary;
pub mod value;

pub use error::{FilterError, FilterErrorKind};
pub use filter::Filter;
pub use function::Function;
pub use index::Index;
pub use limits::FilterLimits;
pub use message::Message;
pub use parser::parse_expr;
pub use pattern::Pattern;
pub use plan::Plan;
pub use projection::Projection;
pub use selection::{Selection, SelectionError};
