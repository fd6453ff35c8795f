//! The types that the rest of the engine uses: faces, time, the size and the order of a batch, and the output of a
//! batch. Nothing here makes decisions.

pub(crate) mod announcement_table;
pub(crate) mod drop_notes;
pub(crate) mod face_table;
pub(crate) mod instant;
pub mod measured;
pub(crate) mod order;
pub(crate) mod output;
