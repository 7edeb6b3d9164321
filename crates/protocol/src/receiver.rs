//! One session, as one subscriber receives it.
