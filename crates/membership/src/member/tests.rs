//! Members that come, go, crash, hang and part, and agree.

mod changes;
mod silence;
mod world;
