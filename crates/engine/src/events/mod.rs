//! What happens without a packet: time passes, next hops appear, faces open and close.

pub(crate) mod face_changes;
pub(crate) mod new_next_hops;
pub(crate) mod timers;
