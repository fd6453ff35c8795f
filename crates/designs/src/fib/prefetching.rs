//! Prefetching: what does a design fetch before it needs it?
//!
//! Source: Yuan15 §3.4.1 for none, first and all; the batch is ours (Takemasa19 §4.3 has two packets).
//! What a design cannot fetch ahead it does not offer.

/// How a design of hash tables fetches ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FibPrefetch {
    /// Nothing.
    None,
    /// The bucket that a search looks at first, as soon as its hash is known.
    First,
    /// Every bucket that a search may look at, as soon as its hash is known.
    All,
    /// For all names of a batch before the first is looked at, or with all searches under way.
    Batch,
}

impl FibPrefetch {
    /// Every choice.
    pub const ALL: [Self; 4] = [Self::None, Self::First, Self::All, Self::Batch];

    /// The name in configuration and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::First => "first",
            Self::All => "all",
            Self::Batch => "batch",
        }
    }
}

/// How a design looks a batch of names up whose accesses depend on each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BatchPrefetch {
    /// One name after the other, nothing fetched ahead: what the papers do.
    None,
    /// All names of a batch at once, each one access at a time, fetched a round ahead.
    #[default]
    Batch,
}

impl BatchPrefetch {
    /// Every choice.
    pub const ALL: [Self; 2] = [Self::None, Self::Batch];

    /// The name in configuration and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Batch => "batch",
        }
    }
}
