//! How does a running router give its sockets and its state to a new program?
//!
//! Decision 0017 has the conversation. [`Line`] carries messages and descriptors over a pair of Unix sockets;
//! [`messages`] says what they hold. [`faces`] makes messages of faces, and back; [`Handed`] is all that the new
//! program hears before it goes on. Nothing here knows a router.
//!
//! Rules for the next versions: a field that a reader may not know is new and has a default; a kind that a reader may
//! not know is new and may be skipped. Anything else is another [`PROTOCOL`].

pub mod faces;
mod handed;
mod line;
pub mod messages;

pub use handed::{Handed, HandedSockets, TakeOver, Takers, place};
pub use line::{DESCRIPTORS_MAX, Line, LineError, Message, TEXT_BYTES_MAX, WAIT_MAX};
pub use messages::Kind;

/// The version of the protocol. Both ends must have the same.
pub const PROTOCOL: u32 = 1;

/// The environment variable that tells a program to take over: the line is its standard input.
pub const TAKE_OVER_VARIABLE: &str = "NAMEWIRE_TAKE_OVER";
