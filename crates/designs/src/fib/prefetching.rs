//! Prefetching: what does a design fetch before it needs it?
//!
//! Source: Yuan15 §3.4.1 for none, first and all; the batch is ours (Takemasa19 §4.3 has two packets). A design does
//! not offer what it cannot fetch ahead.

namewire_packet::names! {
    /// How a design of hash tables fetches ahead.
    pub enum FibPrefetch {
        /// Nothing.
        None = "none",
        /// The bucket that a search looks at first, as soon as its hash is known.
        First = "first",
        /// Every bucket that a search may look at, as soon as its hash is known.
        All = "all",
        /// For all names of a batch before the first is looked at, or with all searches under way.
        Batch = "batch",
    }
}

namewire_packet::names! {
    /// How a design looks a batch of names up whose accesses depend on each other.
    #[derive(Default)]
    pub enum BatchPrefetch {
        /// One name after the other, nothing fetched ahead: what the papers do.
        None = "none",
        /// All names of a batch at once, each one access at a time, fetched a round ahead.
        #[default]
        Batch = "batch",
    }
}
