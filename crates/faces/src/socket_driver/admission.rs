//! Admission: which face may have one of the worker's places, and which idle face makes room for it?
//!
//! Places are a pool ([`namewire_shares::pool`]). A holder that has used its share gets no further face. Faces that the
//! operator makes (persistent and permanent ones) count as management's, which has a reserve; so have local
//! applications.
//!
//! If a request finds no place, the driver closes idle on-demand faces. If the holder has used its share, they are its
//! own faces. If all places are taken, they are faces of the heaviest holder. A face is idle after [`IDLE_LEAST_NS`] of
//! silence. It closes with [`CloseReason::Displaced`].
//!
//! Cost: a search visits all faces. It closes up to [`DISPLACED_AT_ONCE`] of them. At least [`PAUSE_NS`] pass between
//! two searches, so that a flood of newcomers costs few searches. Newcomers in between are refused.

use namewire_packet::{FaceId, nfd::FacePersistency};
use namewire_shares::{Holder, HolderId, Pool, Refusal};

use super::SocketDriver;
use super::face::{Channel, Face, place_holder};
use crate::{AddFaceError, CloseReason, DriverConfig, FaceInfo, memory};

/// A face that was silent for this long may be displaced: 5 s.
pub(super) const IDLE_LEAST_NS: u64 = 5_000_000_000;

/// Faces that one search closes.
const DISPLACED_AT_ONCE: usize = 64;

/// Time between two searches: 100 ms.
const PAUSE_NS: u64 = 100_000_000;

/// The places of a worker's faces.
pub(super) struct Places {
    pub(super) pool: Pool,
    next_search_ns: u64,
}

impl Places {
    pub(super) fn new(config: &DriverConfig) -> Self {
        Places { pool: config.pool("faces", config.max_faces), next_search_ns: 0 }
    }
}

impl SocketDriver {
    /// Checks that a face may be added.
    pub(super) fn check_room(&mut self, face: FaceId, info: &FaceInfo) -> Result<(), AddFaceError> {
        if self.faces.get(face).is_some() {
            return Err(AddFaceError::Exists(face));
        }
        let found = self.find_place(&info.holder(), info.persistency);
        found.map_err(|refusal| match refusal {
            Refusal::ShareUsed => AddFaceError::HolderShare,
            Refusal::PoolFull => AddFaceError::FaceLimit(self.config.max_faces),
        })
    }

    /// Makes sure that a place is free for a face of `holder`, which the caller adds next.
    pub(super) fn find_place(&mut self, holder: &Holder, persistency: FacePersistency) -> Result<(), Refusal> {
        let id = self.config.holders.enter(holder);
        let found = self.find_place_for(place_holder(id, persistency));
        self.config.holders.leave(id);
        found
    }

    fn find_place_for(&mut self, holder: HolderId) -> Result<(), Refusal> {
        let Err(refusal) = self.places.pool.may_take(holder, 1) else { return Ok(()) };
        if self.places.next_search_ns <= self.now_ns {
            self.places.next_search_ns = self.now_ns + PAUSE_NS;
            let others = match refusal {
                Refusal::ShareUsed => None,
                Refusal::PoolFull => self.places.pool.heaviest_beside(holder),
            };
            self.displace_idle(others.unwrap_or(holder), |_| true);
            if self.places.pool.may_take(holder, 1).is_ok() {
                return Ok(());
            }
        }
        self.places.pool.count_refusal(holder, refusal);
        Err(refusal)
    }

    /// Closes the longest idle connections of a holder, because the process is short of descriptors.
    pub fn displace_idle_connections(&mut self, now_ns: u64, holder: HolderId) {
        self.now_ns = now_ns;
        self.displace_idle(holder, |face| matches!(face.channel, Channel::Stream(_)) || memory::is_memory(&face.info));
    }

    /// Closes the longest idle on-demand faces of a holder, some at a time.
    fn displace_idle(&mut self, holder: HolderId, is_meant: fn(&Face) -> bool) {
        let now_ns = self.now_ns;
        let is_idle = |face: &&Face| {
            face.place == holder
                && face.info.persistency == FacePersistency::OnDemand
                && now_ns.saturating_sub(face.last_received_ns) >= IDLE_LEAST_NS
                && is_meant(face)
        };
        let mut idle: Vec<(u64, FaceId)> =
            self.faces.iter().filter(is_idle).map(|face| (face.last_received_ns, face.id)).collect();
        if idle.len() > DISPLACED_AT_ONCE {
            idle.select_nth_unstable(DISPLACED_AT_ONCE);
            idle.truncate(DISPLACED_AT_ONCE);
        }
        self.places.pool.count_displaced(idle.len() as u64);
        for (_, face) in idle {
            self.close(face, CloseReason::Displaced);
        }
    }
}
