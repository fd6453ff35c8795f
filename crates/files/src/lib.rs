//! Files, folders and streams over NDN: what `namewire put`, `get` and `serve` do besides reading their command line.
//!
//! [`namewire_client`] fetches and publishes one object of segments. This crate adds what files have besides their
//! bytes: a size, a mode and times, a folder around them, an unfinished copy on disk, an end that nobody knows yet.
//!
//! | question | module |
//! | --- | --- |
//! | what of an object is on the disk already? | [`part`]; `part_place` names its files, `part_disk` writes them |
//! | what does a file that changes answer with? | [`file_server`] |
//! | two producers serve one name: which one does a consumer find? | [`standing`] |
//! | how are bytes served that come one after the other: a pipe, a growing file? | [`stream_server`]; its answers: `stream_answers`; how the bytes are cut and kept: `stream_segments` |
//! | where do these bytes come from? | [`stream_input`] |
//! | which names may an entry of a folder have? | [`entry_name`] |
//! | what does a producer say of a file or folder besides its bytes? | [`metadata`] |
//! | what is in a folder? | [`listing`] |
//! | which Interest asks for what in a folder? | `request` |
//! | how is a folder served? | [`folder_server`]; `served_tree` reads the disk, `served_object` a version, `segment_form` cuts it, `bounded` limits what is kept |
//! | what of a folder must a repository store? | [`stored_folder`] |
//! | how does one signature cover a folder? | `folder_manifest`; `signed_tree` reads what it covers |
//! | how is a folder fetched? | [`folder_fetch`]; `entry_fetch` fetches one entry |
//! | how does nothing get written outside the target? | [`target`] |

mod bounded;
mod entry_fetch;
pub mod entry_name;
pub mod file_server;
pub mod folder_fetch;
mod folder_manifest;
pub mod folder_server;
pub mod listing;
pub mod metadata;
pub mod part;
mod part_disk;
pub mod part_place;
mod request;
mod segment_form;
mod served_object;
mod served_tree;
mod signed_tree;
pub mod standing;
pub mod stored_folder;
mod stream_answers;
pub mod stream_input;
mod stream_segments;
pub mod stream_server;
pub mod target;
