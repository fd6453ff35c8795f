//! Pressure: what happens if an Interest needs a new PIT entry, and its holder or its face has used its share?
//!
//! ```text
//!   another holder has over twice as much    one of its entries ends, and this Interest takes the place:
//!                                            `displaced.pit`
//!   another face of the same holder waits    the same
//!   for over twice as much
//!   another Interest of the same face would  the same
//!   wait for over twice as long
//!   else                                     refused: `face-share-used`, `pit-share-used`,
//!                                            or `pit-full` if nothing is free for its class
//! ```
//!
//! So entries that were taken while there was room do not keep light holders out, however long their Interests live.
//! Holdings approach one another, up to a factor of two. Within one face, too, Interests with a lifetime of an hour do
//! not keep out Interests with a lifetime of seconds: a neighbour that forwards an attack can still use its share for
//! honest Interests. (In `sim/tests/hostile.rs`, goodput behind such a neighbour was 0.08.) The factor keeps two equal
//! holders from displacing each other in turn. A group of holders (the networks of a site) counts as one holder in
//! comparison with others; within the group, each holder counts separately. An entry of a holder with more rights
//! (local before remote) is never displaced. With a share of 100 %, no entry is displaced.
//!
//! The entry is chosen among [`SAMPLE`] random slots: of the heaviest holder found there, the entry that would wait
//! longest. Only downstreams of that holder are removed. They get no answer, as if the Interest had been lost further
//! on. An entry with other downstreams stays, charged to one of these, and the search continues. The nonces of an entry
//! that ends go to the dead nonce list.
//!
//! Cost: only under pressure, up to [`SAMPLE`] entries are read, and again after each one that stays, up to [`TRIES`]
//! times. If only an Interest of the same face can be displaced, [`SAMPLE_OF_FACE`] are enough, because most of the PIT
//! belongs to its holder.
//! Limit: if many holders have little each, a sample may miss those that have more; then the Interest is refused.

use crate::{
    DropReason, Instant,
    state::{
        parts::Parts,
        pit_shares::{EntryRefusal, PitShares},
        pit_state::{InRecord, PitState, Records},
        tables::Tables,
    },
};
use arrayvec::ArrayVec;
use namewire_packet::FaceId;
use namewire_shares::{Class, HolderId, Refusal};
use namewire_tables::{GroupId, PitId};

/// Slots that are looked at for an entry to displace.
const SAMPLE: u32 = 32;
/// The same, if no other holder and no other face has more than the asker.
const SAMPLE_OF_FACE: u32 = 4;
/// Entries whose downstreams are removed for one Interest.
const TRIES: u32 = 4;

/// Who needs an entry.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) face: FaceId,
    pub(crate) holder: HolderId,
    /// The name group of the Interest, which must stay.
    pub(crate) group: Option<GroupId>,
    /// What the Interest needs beside its entry.
    pub(crate) long_bytes: u64,
    /// How long it waits for an answer.
    pub(crate) lifetime_ms: u64,
}

/// Whether the asker may have a new entry, if need be in place of another one. Counts a refusal.
///
/// # Errors
/// Why not.
#[cold]
#[inline(never)]
pub(crate) fn admit(parts: &mut Parts, now: Instant, asker: Asker) -> Result<(), DropReason> {
    let shares = &parts.tables.records.shares;
    let Err(refusal) = shares.may_have_entry(asker.face, asker.holder) else { return Ok(()) };
    if asker.long_bytes > 0 && shares.long_interests.may_take(asker.holder, asker.long_bytes).is_err() {
        return Err(DropReason::PitOverflowFull); // before another entry ends in vain
    }
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

/// Ends an entry of a holder, or of another face of the same holder, that has over twice as much as the asker, or one
/// of the same face that would wait over twice as long.
fn make_room(parts: &mut Parts, now: Instant, asker: Asker) -> bool {
    let Parts { tables, counters, random, .. } = parts;
    let shares = &mut tables.records.shares;
    let waiting = shares.waiting.of(asker.face);
    // A face may wait for more than its holder is charged for: it has joined Interests of others.
    let beyond_twice = |has: u64| 2 * has.max(waiting.into()) + 1;
    let limits = Limits {
        asker,
        weight: beyond_twice(shares.entries.weight(asker.holder)),
        held: beyond_twice(shares.entries.held(asker.holder)),
        waiting: 2 * waiting + 1,
        ends: now.plus_ms(asker.lifetime_ms.saturating_mul(2)),
    };
    let is_own = shares.entries.held(asker.holder) > limits.waiting.into();
    let is_other = |class| shares.entries.may_any_weigh(class, limits.weight.min(limits.held));
    let classes = &Class::ALL[asker.holder.class() as usize..];
    let sample = if is_own || classes.iter().copied().any(is_other) { SAMPLE } else { SAMPLE_OF_FACE };
    for _ in 0..TRIES {
        let Some(entry) = limits.longest_of_heaviest(tables, random, sample) else { return false };
        let (state, records) = (&mut tables.pit_cs.pit_mut(entry).state, &mut tables.records);
        limits.end_downstreams(state, records);
        records.shares.entries.count_displaced(1);
        if state.nobody_waits() {
            tables.finalize_unsatisfied(now, entry, counters);
            return true;
        }
        tables.arm(entry);
    }
    false
}

/// What a holder or a face must exceed to lose something to the asker.
#[derive(Clone, Copy)]
struct Limits {
    asker: Asker,
    /// What another holder's weight must exceed.
    weight: u64,
    /// The same for a holder of the asker's group, by what it has itself.
    held: u64,
    /// The same for another face of the asker's holder, by the answers it waits for.
    waiting: u32,
    /// When an Interest of the asker's face must end at the latest to stay.
    ends: Instant,
}

impl Limits {
    /// Among some entries: of those that may be displaced, one whose holder weighs most, and of these the one that ends
    /// last.
    fn longest_of_heaviest(&self, tables: &Tables, random: &mut fastrand::Rng, sample: u32) -> Option<PitId> {
        let (pit_cs, entries) = (&tables.pit_cs, &tables.records.shares.entries);
        let (extent, mut best) = (pit_cs.pit_extent(), None);
        for _ in 0..sample.min(extent) {
            let id = PitId(random.u32(..extent));
            if !pit_cs.pit_exists(id) || Some(pit_cs.pit(id).group()) == self.asker.group {
                continue;
            }
            let state = &pit_cs.pit(id).state;
            let weight = entries.weight(state.holder);
            if self.may_go(&tables.records, state)
                && best.is_none_or(|(most, last, _)| (weight, state.expires) > (most, last))
            {
                best = Some((weight, state.expires, id));
            }
        }
        best.map(|(_, _, id)| id)
    }

    /// Whether the holder that keeps this entry has too much.
    fn may_go(&self, records: &Records, state: &PitState) -> bool {
        let (entries, holder) = (&records.shares.entries, state.holder);
        if holder == self.asker.holder {
            return records.downstreams(state).any(|record| self.must_go(record, &records.shares));
        }
        let has_more = match entries.are_together(holder, self.asker.holder) {
            true => entries.held(holder) > self.held,
            false => entries.weight(holder) > self.weight,
        };
        has_more && holder.class() >= self.asker.holder.class()
    }

    /// Whether it is of a face of the asker's holder that waits for too much, or of the asker's face and too long.
    fn must_go(&self, record: &InRecord, shares: &PitShares) -> bool {
        let is_long = record.face == self.asker.face && record.expires > self.ends;
        record.holder == self.asker.holder && (is_long || shares.waiting.of(record.face) > self.waiting)
    }

    /// Removes the downstreams for which the entry may go.
    fn end_downstreams(&self, state: &mut PitState, records: &mut Records) {
        let holder = state.holder;
        let going: ArrayVec<FaceId, 8> = match holder == self.asker.holder {
            true => {
                let must_go = |record: &&InRecord| self.must_go(record, &records.shares);
                records.downstreams(state).filter(must_go).map(|record| record.face).take(8).collect()
            }
            false => ArrayVec::new(),
        };
        records.forget_downstreams(state, |record| match holder == self.asker.holder {
            true => going.contains(&record.face),
            false => record.holder == holder,
        });
    }
}
