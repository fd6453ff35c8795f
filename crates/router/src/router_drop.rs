//! Drops that are neither the engine's nor a link's: between threads.

/// Why a packet was lost between two threads of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterDrop {
    /// The ring to the worker that owns the name or the face is full.
    RingFull,
    /// Its face has as many requests waiting for management as it may.
    ManagementQueueFull,
}

impl RouterDrop {
    /// Number of reasons.
    pub const COUNT: usize = 2;
    /// All reasons, in the order of their counters.
    pub const ALL: [RouterDrop; RouterDrop::COUNT] = [RouterDrop::RingFull, RouterDrop::ManagementQueueFull];

    /// Stable name for counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            RouterDrop::RingFull => "ring-full",
            RouterDrop::ManagementQueueFull => "management-queue-full",
        }
    }
}
