//! What everything else of the engine names: faces, time, the size and the order of a batch, and what a batch results
//! in. Nothing here decides.

pub(crate) mod announcement_table;
pub(crate) mod drop_notes;
pub(crate) mod face_table;
pub(crate) mod instant;
pub mod measured;
pub(crate) mod order;
pub(crate) mod output;
