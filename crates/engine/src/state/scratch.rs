//! Scratch: buffers that outlive a packet, so that the data path allocates nothing.
//!
//! A function that uses a buffer empties it first. No content is kept from one packet to the next.

use crate::{ground::order::BATCH_PACKETS, state::pit_state::MAX_RECORDS};
use hashbrown::HashSet;
use namewire_packet::{FaceId, MAX_PACKET_BYTES, lp::PitToken};
use namewire_tables::{MAX_NAME_COMPONENTS, NameHashes, PitId};

/// Most pending entries that one Data can satisfy: four variants per name, one name per
/// prefix length, the full name. Nearly always it is one.
const MAX_MATCHES: usize = 4 * (MAX_NAME_COMPONENTS + 2);

/// See the module.
pub(crate) struct Scratch {
    /// HopLimit bytes to write once no view borrows the frames: (frame, offset, value).
    pub(crate) hop_limits: Vec<(u16, u32, u8)>,
    /// An Interest being copied into the PIT, or out of it.
    pub(crate) interest_copy: Vec<u8>,
    /// Downstreams that the Data at hand was sent to, for Data that satisfies several entries.
    pub(crate) served: HashSet<(FaceId, Option<PitToken>)>,
    /// Pending entries that the Data at hand satisfies.
    pub(crate) matches: Vec<PitId>,
    /// A name being built or moved.
    pub(crate) name_copy: Vec<u8>,
    /// The prefix of the delegation that the Interest at hand follows.
    pub(crate) hint_prefix: Vec<u8>,
    /// Downstreams that get the same Nack.
    pub(crate) faces_to_nack: Vec<FaceId>,
    /// Pending entries that a change of faces or next hops affects. It has room for all entries; that is address space,
    /// and memory is used as it fills.
    pub(crate) entries_to_visit: Vec<PitId>,
    /// Prefixes under the dispatcher's key.
    pub(crate) dispatch_hashes: NameHashes,
    /// Prefixes of a delegation, or of a name that did not just arrive.
    pub(crate) name_hashes: NameHashes,
}

impl Scratch {
    /// Buffers for a PIT of `pit_entries` entries.
    pub(crate) fn new(pit_entries: u32) -> Self {
        Scratch {
            hop_limits: Vec::with_capacity(BATCH_PACKETS),
            interest_copy: Vec::with_capacity(2 * MAX_PACKET_BYTES),
            served: HashSet::with_capacity(2 * MAX_RECORDS),
            matches: Vec::with_capacity(MAX_MATCHES),
            name_copy: Vec::with_capacity(2 * MAX_PACKET_BYTES),
            hint_prefix: Vec::with_capacity(MAX_PACKET_BYTES),
            faces_to_nack: Vec::with_capacity(MAX_RECORDS),
            entries_to_visit: Vec::with_capacity(pit_entries as usize),
            dispatch_hashes: NameHashes::with_full_room(),
            name_hashes: NameHashes::with_full_room(),
        }
    }
}
