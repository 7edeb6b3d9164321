//! Who publishes what, and where.
