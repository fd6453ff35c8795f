//! Name state: which Interests for a name are pending, and which Data would answer one?
//!
//! `namewire explain` shows this to operators. The look-up changes nothing: the policy of the Content Store does not
//! learn of it, and no counter counts it.
//!
//! Cost: a probe of the composite index, and for stored Data of longer names what a CanBePrefix Interest costs.
//!
//! Limit: the answer names [`FACES_MAX`] downstreams and as many upstreams of an entry.

use crate::{
    Instant,
    state::{pit_state::OutRecord, tables::Tables},
};
use namewire_packet::{FaceId, NackReason, Name, NameBuf};
use namewire_tables::{CsId, NameHashes, PitId};

/// Faces named of one entry, in each direction.
const FACES_MAX: usize = 32;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NameState {
    /// The pending Interests with exactly this name.
    pub pending: Vec<PendingInterest>,
    /// Data that answers an Interest for exactly this name.
    pub stored: Option<StoredData>,
    /// Data that answers an Interest with CanBePrefix, if it is another.
    pub stored_under: Option<StoredData>,
}

/// One PIT entry.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingInterest {
    /// Data of longer names may answer.
    pub can_be_prefix: bool,
    /// Only fresh Data may.
    pub must_be_fresh: bool,
    /// Milliseconds until it expires.
    pub expires_ms: u64,
    /// It has been answered, and waits for further answers.
    pub is_satisfied: bool,
    /// The faces that wait.
    pub downstreams: Vec<FaceId>,
    /// The faces that were asked.
    pub upstreams: Vec<PendingUpstream>,
}

/// A face that was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingUpstream {
    /// The face.
    pub face: FaceId,
    /// Milliseconds since it was asked last.
    pub sent_ms_ago: u64,
    /// The Nack that it sent.
    pub nack: Option<NackReason>,
    /// Its link went down since.
    pub is_lost: bool,
}

/// Data in the Content Store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredData {
    /// Its own name.
    pub name: NameBuf,
    /// Size of the packet.
    pub bytes: u64,
    /// Milliseconds for which it is still fresh; 0: it is stale.
    pub fresh_ms: u64,
}

impl NameState {
    pub(crate) fn of(tables: &Tables, now: Instant, name: Name<'_>) -> Self {
        let cs = &tables.pit_cs;
        let mut hashes = NameHashes::default();
        if hashes.compute(cs.key(), name.value()).is_err() {
            return NameState::default(); // no table holds such a name
        }
        let group = cs.find(hashes.full_hash(), name.value());
        let pending = group.into_iter().flat_map(|group| cs.pit_of_group(group).into_iter().flatten());
        let stored = group.and_then(|group| cs.cs_lookup(group)).filter(|hit| hit.direct).map(|hit| hit.id);
        let under = cs.cs_first_under(name.value(), None).filter(|id| Some(*id) != stored);
        NameState {
            pending: pending.map(|entry| PendingInterest::of(tables, now, entry)).collect(),
            stored: stored.and_then(|id| StoredData::of(tables, now, id)),
            stored_under: under.and_then(|id| StoredData::of(tables, now, id)),
        }
    }
}

impl PendingInterest {
    fn of(tables: &Tables, now: Instant, entry: PitId) -> Self {
        let (pit, records) = (tables.pit_cs.pit(entry), &tables.records);
        let (variant, state) = (pit.variant(), &pit.state);
        PendingInterest {
            can_be_prefix: variant.can_be_prefix(),
            must_be_fresh: variant.must_be_fresh(),
            expires_ms: ms_between(now, state.expires),
            is_satisfied: state.satisfied,
            downstreams: records.downstreams(state).take(FACES_MAX).map(|record| record.face).collect(),
            upstreams: records
                .upstreams(state)
                .take(FACES_MAX)
                .map(|record| PendingUpstream::of(now, record))
                .collect(),
        }
    }
}

impl PendingUpstream {
    fn of(now: Instant, record: &OutRecord) -> Self {
        PendingUpstream {
            face: record.face,
            sent_ms_ago: ms_between(record.sent, now),
            nack: record.nack,
            is_lost: record.is_lost(),
        }
    }
}

impl StoredData {
    fn of(tables: &Tables, now: Instant, id: CsId) -> Option<Self> {
        let stored = tables.pit_cs.cs(id);
        let name = Name::parse_value(stored.name_value()?).ok()?.to_buf();
        let fresh_ms = ms_between(now, Instant(stored.fresh_until_ns()));
        Some(StoredData { name, bytes: stored.data().len() as u64, fresh_ms })
    }
}

fn ms_between(earlier: Instant, later: Instant) -> u64 {
    later.0.saturating_sub(earlier.0) / 1_000_000
}
