//! Members that come, go, crash, hang and part, and agree.

mod changes;
mod false_ends;
mod joining;
mod leaving;
mod namesakes;
mod room;
mod rounds;
mod silence;
mod unheard;
mod world;
