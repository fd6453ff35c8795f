//! Files, folders and streams over NDN: what `namewire put`, `get` and `serve` do besides reading their command line.
//!
//! [`namewire_client`] fetches and publishes one object of segments. This crate adds what files have besides their
//! bytes: a size, a mode and times, a folder around them, an unfinished copy on disk, an end that nobody knows yet.
//!
//! | question | file |
//! | --- | --- |
//! | what of an object is on the disk already? | [`part`] |
//! | what does a file that changes answer with? | [`file_server`] |
//! | two producers serve one name: which one does a consumer find? | [`standing`] |
//! | how are bytes served that come one after the other: a pipe, a growing file? | [`stream_server`]; its answers: `stream_answers`; how the bytes are cut and kept: `stream_segments` |
//! | where do these bytes come from? | [`stream_input`] |

pub mod file_server;
pub mod part;
pub mod standing;
mod stream_answers;
pub mod stream_input;
mod stream_segments;
pub mod stream_server;
