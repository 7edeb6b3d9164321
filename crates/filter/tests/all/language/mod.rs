//! The language: its text, what it means, and that every faster way means the same.

mod faster;
mod many;
mod meaning;
mod page;
mod random;
mod record;
mod text;
