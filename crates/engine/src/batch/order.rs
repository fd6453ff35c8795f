//! How large is a batch, and which schedule does it follow? [`super::schedule`] runs them.

/// Most packets of one call. Cache misses of these packets overlap.
pub const BATCH_PACKETS: usize = 64;

/// The order of a batch's stages, and what they prefetch: `schedule.rs` has the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// No prefetch.
    Naive,
    /// Prefetches a packet's own buckets before searching them.
    BucketPrefetch,
    /// Decodes and hashes two packets and prefetches their buckets, then acts on both.
    PreHash,
    /// `PreHash`, and also prefetches the entries that the buckets name.
    SpeculativeLookup,
    /// Decodes, hashes and probes the FIB's buckets over the whole batch, in groups; the later stages follow each other
    /// a few packets apart. The default.
    #[default]
    Vector,
}

impl Schedule {
    /// Every schedule, slowest first by the thesis's results.
    pub const ALL: [Self; 5] =
        [Self::Naive, Self::BucketPrefetch, Self::PreHash, Self::SpeculativeLookup, Self::Vector];

    /// The name in configuration and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::BucketPrefetch => "bucket-prefetch",
            Self::PreHash => "pre-hash",
            Self::SpeculativeLookup => "shtl",
            Self::Vector => "vector",
        }
    }
}

impl std::str::FromStr for Schedule {
    type Err = UnknownSchedule;

    fn from_str(name: &str) -> Result<Self, UnknownSchedule> {
        Self::ALL.into_iter().find(|schedule| schedule.name() == name).ok_or(UnknownSchedule)
    }
}

/// No schedule has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schedules are naive, bucket-prefetch, pre-hash, shtl and vector")]
pub struct UnknownSchedule;
