//! Routers that a user has named, so that `namewire --router lab …` finds them.
//!
//! | question | file |
//! | --- | --- |
//! | what is in the file, and how is it read and written? | [`file`] |
//! | which router does a command talk to? | [`choice`] |
//!
//! The crate opens no connection. The tools, the completion of their command lines and the views of several routers
//! use it.

pub mod choice;
pub mod file;

pub use choice::{Choice, Named};
pub use file::{NamedRouter, Routers, RoutersError, RoutersFile};
