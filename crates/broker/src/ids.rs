//! Identifiers of what the broker keeps in tables. Each is the index of its entry, and is used
//! again after the entry is gone; the types keep one kind of index from standing for another.

macro_rules! index {
    ($(#[$about:meta])* $visibility:vis $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility struct $name(pub(crate) u32);

        impl $name {
            /// The identifier of the entry at `index`. Tables stay far below 2^32 entries.
            #[allow(dead_code, reason = "not every table makes identifiers by index")]
            #[inline]
            pub(crate) fn from_index(index: usize) -> Self {
                Self(index as u32)
            }

            /// The index of its entry.
            #[inline]
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(
    /// A connected client.
    pub ClientId
);
index!(
    /// A topic in the catalog.
    pub(crate) TopicId
);
index!(
    /// A subscription in the server's table; matchers return this number.
    pub(crate) SubscriptionId
);
index!(
    /// A subscription or query within one SOW topic.
    pub(crate) FeedId
);
index!(
    /// A distinct subscription name, shared by all subscriptions that have it.
    pub(crate) NameId
);
index!(
    /// A distinct regular expression for topics.
    pub(crate) PatternId
);
