//! Drops between the threads of a router. (The engine and the links count their own drops.)

namewire_packet::reasons! {
    /// Why a packet was lost between two threads of the router.
    pub enum RouterDrop {
        /// The ring to the worker that owns the name or the face is full.
        RingFull = "ring-full",
        /// The face has as many requests waiting for management as it may have.
        ManagementQueueFull = "management-queue-full",
    }
}
