//! Members that come, go, crash, hang and part, and agree.

mod changes;
mod leaving;
mod silence;
mod world;
