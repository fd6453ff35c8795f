//! TagNet: forwarding by descriptor (a set of tags) and by locator (a place in a tree).
//!
//! Applications publish and ask by sets of tags. A router forwards a pull or a push to the applications whose
//! advertised tags are all among the packet's. Replies and follow-ups go by locator, which costs a few instructions.
//!
//! | question | module |
//! | --- | --- |
//! | what is a set of tags on the wire, and when does one contain another? | [`descriptor`] |
//! | which advertised descriptors are subsets of this one, and which is the largest? | [`matching`] |
//! | which neighbour leads to this place in the tree? | [`locator`] |
//! | what did each face advertise, and what does a router announce to a neighbour? | [`advertisements`] |
//! | what does a router send its neighbours? | [`routing`] |
//! | how do neighbours agree on a tree and its labels? | [`tree_protocol`] |
//! | through which faces does this packet leave? | [`forwarder`] |
//!
//! Source: Papalini, Khazaei, Carzaniga, Rogora, "High Throughput Forwarding for ICN with Descriptors and Locators",
//! ANCS 2016 (TagNet16). The crate has no socket, no clock and no thread.
#![forbid(unsafe_code)]

pub mod advertisements;
pub mod forwarder;
pub mod locator;
pub mod routing;
pub mod tree_protocol;

pub use namewire_packet::descriptor::{self, Descriptor, TagSet, TagSetError};
pub use namewire_tag_matching as matching;
