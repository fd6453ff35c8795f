//! NDN packets in their wire format: names, Interest, Data, Nack, NDNLPv2 and the management TLVs.
//!
//! There are two kinds of types (the split follows smoltcp's wire modules):
//!
//! * **Views** ([`Interest`], [`Data`], [`Name`], [`lp::LpPacket`]) borrow the bytes. `parse` checks the whole element
//!   once. After `Ok` no accessor can panic or fail, and none re-scans more than its own field.
//! * **Builders** ([`InterestBuilder`], [`DataBuilder`], [`NameBuf`], [`lp::write_headers`]) write the packets that we
//!   send, always in the shortest form.
//!
//! A view proves that the bytes obey the grammar of packet format v0.3. It does not prove that a signature or a
//! parameters digest is right: call [`Data::verify_digest_sha256`] and [`Interest::parameters_digest_is_valid`] for
//! that.

pub mod counters;
pub mod data;
pub mod descriptor;
pub mod digest;
mod ids;
pub mod interest;
pub mod lane_hello;
pub mod lp;
pub mod nack;
pub mod name;
pub mod name_uri;
pub mod names;
pub mod nfd;
pub mod path_label;
pub mod probe;
pub mod rtt;
pub mod signature;
pub mod tag;
pub mod tlv;

pub use data::{Data, DataBuilder, content_type};
pub use ids::{FaceId, Nonce};
pub use interest::{Interest, InterestBuilder, SignedInterestFields};
pub use nack::NackReason;
pub use name::{Component, Name, NameBuf, NameError};
pub use signature::{KeyLocator, SignatureInfo};
pub use tlv::TlvError;

/// Largest network packet accepted, in bytes: the limit of every NDN implementation (packet-format §7). It is not in
/// the packet specification.
pub const MAX_PACKET_BYTES: usize = 8800;

/// Why some bytes are not a packet of the expected type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The TLV structure itself is broken.
    #[error("malformed TLV: {0}")]
    Tlv(#[from] TlvError),
    /// A name breaks the rules for names.
    #[error("malformed name: {0}")]
    Name(#[from] NameError),
    /// The outermost element is of another type.
    #[error("expected element type {expected}, found {found}")]
    WrongType {
        /// Type number that the caller asked for.
        expected: u32,
        /// Type number that was there.
        found: u32,
    },
    /// Bytes follow the packet.
    #[error("bytes follow the packet")]
    TrailingBytes,
    /// A required element is absent.
    #[error("required element {0} is absent")]
    Missing(u32),
    /// A critical element is unknown, repeated or in the wrong place.
    #[error("critical element {0} is unknown, repeated or out of order")]
    UnexpectedCritical(u32),
    /// A field has a length or value that its definition does not allow.
    #[error("element {0} has a value that is not allowed")]
    BadValue(u32),
}

/// True if an element that the decoder does not expect here must be skipped (even type ≥ 32, or the reserved 126)
/// instead of failing the packet (packet-format §1.1).
pub(crate) const fn is_ignorable(type_number: u32) -> bool {
    type_number >= 32 && type_number.is_multiple_of(2)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
