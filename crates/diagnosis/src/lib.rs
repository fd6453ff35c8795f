//! What is wrong with a router and its machine (`namewire doctor`), and a bundle for those who are asked for help
//! (`namewire report`).
//!
//! | question | file |
//! | --- | --- |
//! | what is looked at? | [`facts`], filled by the files of [`gather`] |
//! | what is wrong with it? | the files of [`checks`], pure functions from facts to findings |
//! | how is it told? | [`diagnosis`] |
//! | what is in a bundle, and how do names and addresses get out of it? | the files of [`report`] |
//!
//! No check changes anything.

pub mod checks;
pub mod diagnosis;
pub mod doctor;
pub mod facts;
pub mod finding;
pub mod gather;
pub mod report;
