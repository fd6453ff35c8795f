//! NFD management elements: what commands, answers and datasets say.
//!
//! Source: management.md §3 to §7 (type numbers of ndn-cxx `tlv-nfd.hpp`).
//! Numbers 128 to 134 mean different things in different datasets, so each
//! element type decodes by its own table and nothing here guesses.
//!
//! Encoders write the fields in the documented order, in the shortest form.
//! Decoders take any order, skip fields they do not know, and use the first of a
//! repeated field. Everything is owned (`String`, [`NameBuf`](crate::NameBuf)):
//! this is the slow path. Input is one packet or one fetched dataset; memory used
//! is proportional to it.

mod control_parameters;
mod control_response;
mod cs_info;
mod cs_usage;
mod drop_counter;
pub mod face_uri;
mod faces;
mod fib_entry;
mod fib_usage;
mod field;
mod forwarder_status;
pub mod numbers;
pub mod prefix_announcement;
mod rib_entry;
mod strategy_choice;

pub use control_parameters::ControlParameters;
pub use control_response::ControlResponse;
pub use cs_info::CsInfo;
pub use cs_usage::{CsPolicyUsage, CsPrefixUsage, CsUsage};
pub use drop_counter::DropCounter;
pub use face_uri::{FaceUri, FaceUriError, MacAddress, WebSocketUrl};
pub use faces::{
    ChannelStatus, FaceCounters, FaceEventKind, FaceEventNotification, FacePersistency, FaceQueryFilter, FaceScope,
    FaceStatus, LinkType,
};
pub use fib_entry::{FibEntry, NextHopRecord};
pub use fib_usage::FibUsage;
pub use field::NfdError;
pub use forwarder_status::ForwarderStatus;
pub use numbers::{cs_flags, face_flags, origin, route_flags};
pub use rib_entry::{RibEntry, Route};
pub use strategy_choice::StrategyChoice;

/// An element of a dataset: datasets are such elements one after the other.
pub trait DatasetEntry: Sized {
    /// Appends the element with type and length.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads one whole element, type and length included.
    ///
    /// # Errors
    /// If the octets are not exactly one element of this kind.
    fn decode(wire: &[u8]) -> Result<Self, NfdError>;
}

/// Reads a dataset: the Contents of all its segments joined in order.
///
/// # Errors
/// If an element is malformed, of another type, or cut off at the end.
pub fn decode_dataset<T: DatasetEntry>(content: &[u8]) -> Result<Vec<T>, NfdError> {
    let mut reader = crate::tlv::Reader::new(content);
    let mut entries = Vec::new();
    while let Some(element) = reader.next_element()? {
        entries.push(T::decode(element.wire)?);
    }
    Ok(entries)
}

/// Joins the elements of a dataset, ready to be cut into segments.
pub fn encode_dataset<T: DatasetEntry>(entries: &[T]) -> Vec<u8> {
    let mut content = Vec::new();
    for entry in entries {
        entry.encode(&mut content);
    }
    content
}
