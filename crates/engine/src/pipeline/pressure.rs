//! Pressure: what happens if an Interest needs a new PIT entry, and its holder or its face has its share?
//!
//! ```text
//!   a holder has over twice as much,     one of its entries ends, and this one takes the place: `displaced.pit`
//!   or another face of the same holder
//!   else                                 refused: `face-share-used`, `pit-share-used`,
//!                                        or `pit-full` if nothing is free for its class
//! ```
//!
//! So entries that were taken while there was room do not keep light holders out, however long their Interests live.
//! Holdings approach one another, up to a factor of two. The factor keeps two equal holders from displacing each other
//! in turn. An entry of a holder with more rights (local before remote) is never displaced. With a share of 100 %, none
//! is.
//!
//! The entry is chosen among [`SAMPLE`] random slots: of the heaviest holder found there, the one that would wait
//! longest. Its downstreams get nothing, as if its Interest had been lost further on. Its nonces go to the dead nonce
//! list.
//!
//! Cost: only under pressure, up to [`SAMPLE`] entries are read. Limit: if many holders have little each, a sample may
//! miss those that have more; then the Interest is refused.

use crate::{DropReason, Instant, parts::Parts, state::pit_shares::EntryRefusal};
use namewire_packet::FaceId;
use namewire_shares::{Class, HolderId, Refusal};
use namewire_tables::{GroupId, PitId};

/// Slots that are looked at for an entry to displace.
const SAMPLE: u32 = 32;

/// Who needs an entry.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) face: FaceId,
    pub(crate) holder: HolderId,
    /// The name group of the Interest, which must stay.
    pub(crate) group: Option<GroupId>,
}

/// Whether the asker may have a new entry, if need be in place of another one. Counts a refusal.
///
/// # Errors
/// Why not.
#[cold]
#[inline(never)]
pub(crate) fn admit(parts: &mut Parts, now: Instant, asker: Asker) -> Result<(), DropReason> {
    let Err(refusal) = parts.tables.records.shares.may_have_entry(asker.face, asker.holder) else { return Ok(()) };
    if parts.config.face_share_percent < 100 && make_room(parts, now, asker) {
        return Ok(());
    }
    let EntryRefusal::Holder(refusal) = refusal else { return Err(DropReason::FaceShareUsed) };
    parts.tables.records.shares.entries.count_refusal(asker.holder, refusal);
    Err(match refusal {
        Refusal::ShareUsed => DropReason::PitShareUsed,
        Refusal::PoolFull => DropReason::PitFull,
    })
}

/// Ends an entry of somebody who has over twice as much as the asker.
fn make_room(parts: &mut Parts, now: Instant, asker: Asker) -> bool {
    let shares = &mut parts.tables.records.shares;
    let (held, waiting) = (shares.entries.held(asker.holder), shares.waiting.of(asker.face));
    let least = Least { holder: 2 * held + 1, face: 2 * waiting + 1 };
    let is_heavier = |class| {
        let heaviest = shares.entries.heaviest(class);
        heaviest.is_some_and(|heaviest| shares.entries.held(heaviest) > least.holder)
    };
    let is_any =
        held > least.face.into() || Class::ALL[asker.holder.class() as usize..].iter().copied().any(is_heavier);
    let Some(entry) = is_any.then(|| longest_of_heaviest(parts, asker, least)).flatten() else { return false };
    parts.tables.finalize_unsatisfied(now, entry, &mut parts.counters);
    parts.tables.records.shares.entries.count_displaced(1);
    true
}

/// An entry may be displaced if its holder, or its face if the holder is the same, has more.
#[derive(Clone, Copy)]
struct Least {
    holder: u64,
    face: u32,
}

/// Among some entries: of those that may be displaced, one whose holder has most, and of these the one that ends last.
fn longest_of_heaviest(parts: &mut Parts, asker: Asker, least: Least) -> Option<PitId> {
    let (pit_cs, records) = (&parts.tables.pit_cs, &parts.tables.records);
    let (extent, mut best) = (pit_cs.pit_extent(), None);
    for _ in 0..SAMPLE.min(extent) {
        let id = PitId(parts.random.u32(..extent));
        if !pit_cs.pit_exists(id) || Some(pit_cs.pit(id).group()) == asker.group {
            continue;
        }
        let state = &pit_cs.pit(id).state;
        let held = records.shares.entries.held(state.holder);
        let may_go = match state.holder == asker.holder {
            true => records.downstreams(state).any(|record| records.shares.waiting.of(record.face) > least.face),
            false => held > least.holder && state.holder.class() >= asker.holder.class(),
        };
        if may_go && best.is_none_or(|(most, last, _)| (held, state.expires) > (most, last)) {
            best = Some((held, state.expires, id));
        }
    }
    best.map(|(_, _, id)| id)
}
