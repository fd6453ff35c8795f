//! What is wrong with a router and its machine (`namewire doctor`).
//!
//! | question | file |
//! | --- | --- |
//! | what is looked at? | [`facts`], filled by the files of [`gather`] |
//!
//! No check changes anything.

pub mod facts;
pub mod finding;
pub mod gather;
