//! Order: how large is a batch, and which schedule does it follow? [`crate::schedule::batch`] runs the schedules.

/// Most packets of one call. Cache misses of these packets overlap.
pub const BATCH_PACKETS: usize = 64;

namewire_packet::names! {
    /// The order of a batch's stages, and what they prefetch: `schedule.rs` has the table. Slowest first by the
    /// thesis's results.
    #[derive(Default)]
    pub enum Schedule {
        /// No prefetch.
        Naive = "naive",
        /// Prefetches a packet's own buckets before searching them.
        BucketPrefetch = "bucket-prefetch",
        /// Decodes and hashes two packets and prefetches their buckets, then acts on both.
        PreHash = "pre-hash",
        /// `PreHash`, and also prefetches the entries that the buckets name.
        SpeculativeLookup = "shtl",
        /// Decodes, hashes and probes the FIB's buckets over the whole batch, in groups; the later stages follow each
        /// other a few packets apart. The default.
        #[default]
        Vector = "vector",
    }
}

impl std::str::FromStr for Schedule {
    type Err = UnknownSchedule;

    fn from_str(name: &str) -> Result<Self, UnknownSchedule> {
        Self::find(name).ok_or(UnknownSchedule)
    }
}

/// No schedule has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schedules are naive, bucket-prefetch, pre-hash, shtl and vector")]
pub struct UnknownSchedule;
