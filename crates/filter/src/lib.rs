//! Message types, the filter language, and matching of one message against many filters.
//!
//! Path of a filter: [`parser`](parse_expr) builds an [`expr`] tree from text; [`Filter`] holds it;
//! `normalize` folds constants; [`Plan`] compiles it for one filter, [`index`] for many at once.
//!
//! Path of a message: a [`reader`] extracts the fields of a [`FieldSet`](fields::FieldSet) into the
//! slots of a [`row`]; a plan or an index evaluates the row.
//!
//! - [`path`]: field paths such as `/55` and `/FIXML/Order/@Sym`;
//! - [`message_type`]: FIX, NVFIX, JSON, XML, binary, and their separators;
//! - [`fields`]: the fields to extract, each with a slot;
//! - [`malformed`]: errors of malformed messages;
//! - [`merge`], [`difference`]: deltas applied and computed;
//! - [`value`], [`number`], [`ternary`]: values, their comparison, three-valued logic;
//! - [`Selection`], [`Projection`]: selected and computed fields of messages;
//! - [`interpreter`]: reference semantics of expressions;
//! - [`explain`]: plan and access paths of a filter, for people.
//!
//! The crate performs no I/O, reads no clock and never blocks. Malformed filters and messages are
//! errors and cannot cause a panic.
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
