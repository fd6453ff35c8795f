//! Data only from faces that were asked: may this face answer that pending Interest?
//!
//! Without this check, any neighbour or application could forge Data of another one. It would send Data for popular
//! names; consumers would get this Data, and the Content Store would keep it. NFD accepts Data from any face.
//!
//! | face of the Data | accepted |
//! | --- | --- |
//! | the Interest was sent there | yes. A link with several members (multicast) is one face, so any of them may answer |
//! | it went to another face, which has closed | if both faces are of one holder: the peer has connected again |
//! | any other | no: [`DropReason::DataNotAsked`](crate::DropReason::DataNotAsked) |
//!
//! With [`DataFrom::Any`] all faces are accepted. Before this check, `scope.rs` drops Data that applications send under
//! `/localhost/nfd`.
//!
//! Limits: each next hop of a prefix may answer for it, and the Content Store gives this Data to all who ask. If
//! holders share a number, or cannot be distinguished (all of `loopback`), one may answer in place of another whose
//! face has closed. Fingerprints of the [core role](crate::state::core_role) keep no upstream: there any face may
//! answer.
//!
//! Cost: one comparison if the only upstream answers (`only_match` in `data.rs`); else a walk over the upstreams.

use crate::{DataFrom, FaceAttributes, FaceTable, state::parts::Parts};
use namewire_packet::FaceId;
use namewire_tables::PitId;

/// Whether Data from `face`, with these attributes, may answer the entry.
pub(crate) fn was_asked(
    parts: &Parts,
    faces: &FaceTable,
    (face, attributes): (FaceId, &FaceAttributes),
    entry: PitId,
) -> bool {
    let mut upstreams = parts.tables.records.upstreams(parts.tables.state(entry));
    parts.config.data_from == DataFrom::Any
        || upstreams
            .any(|record| record.face == face || record.holder == attributes.holder && faces.get(record.face).is_none())
}
