//! Views: contents, incremental maintenance, and refused definitions.

mod again;
mod document;
mod followed;
mod joined;
mod refused;
mod world;
