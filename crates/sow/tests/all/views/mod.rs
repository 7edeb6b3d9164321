//! Views: what they show, that they show it whatever happened before, and what they refuse.

mod again;
mod document;
mod followed;
mod joined;
mod refused;
mod world;
