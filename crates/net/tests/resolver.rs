//! Contexts that find each other without multicast.

mod resolver {
    pub(crate) mod client;
    mod daemon;
    mod healing;
}
