//! What is wrong with a router and its machine (`namewire doctor`).
//!
//! | question | file |
//! | --- | --- |
//! | what is looked at? | [`facts`], filled by the files of [`gather`] |
//! | what is wrong with it? | the files of [`checks`], pure functions from facts to findings |
//! | how is it told? | [`diagnosis`] |
//!
//! No check changes anything.

pub mod checks;
pub mod diagnosis;
pub mod doctor;
pub mod facts;
pub mod finding;
pub mod gather;
