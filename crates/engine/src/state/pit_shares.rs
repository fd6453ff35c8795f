//! PIT shares: how much of the PIT may one holder have, and how much one of its faces?
//!
//! Source: ours. Yuan15 §5.7.2 leaves floods of unanswerable Interests to statistics and countermeasures. The rule is
//! that of [`namewire_shares::pool`], with reserves for local applications and for management. It is applied twice. The
//! first limit is for the holder: its entries must stay below its share of what is free for its class. The second is
//! for the face: the Interests that it waits for must stay below its share of what its holder may still take.
//!
//! ```text
//!   entries  │ free for remote holders │ reserve of local ones │ reserve of management │
//!   holder   held    < k · free,   k = share / (1 − share)
//!   face     waiting < k · (k · free − held)
//! ```
//!
//! With the default of 80 %, one holder has at most four fifths of what remote holders may use, and one face alone
//! 16/21 of it. n holders that flood have 4/(1 + 4 n) each, and a part of 1/(1 + 4 n) stays free for others.
//!
//! While few entries are in use, no holder can have more than its share, however they are distributed: see
//! `easy_entries`. Then the check of a new entry is one comparison. Under pressure, [`crate::verdict::pressure`] lets
//! light holders displace heavy ones.
//!
//! Four pools count what Interests hold:
//!
//! | pool | unit | who is charged |
//! | --- | --- | --- |
//! | `pit` | entries | the holder of the downstream that waits longest: it keeps the entry |
//! | `in-records` | downstreams beyond the first of an entry | the holder of the downstream |
//! | `out-records` | upstreams beyond the first | the holder charged for the entry |
//! | `long-interests` | bytes of Interests and names too long for the entry | the same |
//!
//! The [core role](crate::state::core_role)'s fingerprints have no share: an entry belongs to no face, and takes 8
//! bytes. A flooding face can fill the table of fingerprints. Interests that find no room in this table are kept by
//! name, within the share.
//!
//! A long name is charged to every entry that has it, though it is kept once.
//!
//! Cost: an Interest touches a line of its face's count and one of its holder's, the same for all packets of a face;
//! the end of an entry touches them again. Memory: see [`namewire_shares::pool`], and 64 KiB of counts by face. Writer:
//! the engine.

use crate::counters::face_share::WaitingByFace;
use namewire_packet::FaceId;
use namewire_shares::{Groups, HolderId, Pool, PoolConfig, PoolReader, Refusal};

/// Parts of the capacity that management and local applications can be sure of.
const MANAGEMENT_PART: u64 = 16;
const LOCAL_PART: u64 = 8;

/// How much there is of what Interests hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PitCapacities {
    pub(crate) entries: u64,
    /// Downstreams beyond the first of each entry, and as many upstreams.
    pub(crate) further_records: u64,
    pub(crate) long_interest_bytes: u64,
}

/// Why there is no new entry for an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryRefusal {
    /// The face waits for as much as it may; other faces of its holder may not.
    Face,
    /// The holder has what it may have.
    Holder(Refusal),
}

/// See the module.
pub(crate) struct PitShares {
    pub(crate) entries: Pool,
    pub(crate) in_records: Pool,
    pub(crate) out_records: Pool,
    pub(crate) long_interests: Pool,
    pub(crate) waiting: WaitingByFace,
    share_percent: u64,
    /// While no more entries are in use, none can be beyond a share.
    easy_entries: u64,
}

impl PitShares {
    pub(crate) fn new(capacities: PitCapacities, share_percent: u32, groups: &Groups) -> Self {
        let pool = |name, capacity: u64| {
            let (management_reserve, local_reserve) = (capacity / MANAGEMENT_PART, capacity / LOCAL_PART);
            Pool::new(PoolConfig { name, capacity, share_percent, management_reserve, local_reserve }, groups)
        };
        let entries = pool("pit", capacities.entries);
        PitShares {
            easy_entries: easy_entries(entries.config()),
            entries,
            in_records: pool("in-records", capacities.further_records),
            out_records: pool("out-records", capacities.further_records),
            long_interests: pool("long-interests", capacities.long_interest_bytes),
            waiting: WaitingByFace::default(),
            share_percent: share_percent.into(),
        }
    }

    /// Access for other threads.
    pub(crate) fn readers(&self) -> [PoolReader; 4] {
        [&self.entries, &self.in_records, &self.out_records, &self.long_interests].map(Pool::reader)
    }

    /// Whether so few entries are in use that anybody may have another one.
    #[inline(always)]
    pub(crate) fn is_easy(&self, entries: usize) -> bool {
        (entries as u64) < self.easy_entries
    }

    /// Whether a face of this holder may have another entry.
    pub(crate) fn may_have_entry(&self, face: FaceId, holder: HolderId) -> Result<(), EntryRefusal> {
        self.entries.may_take(holder, 1).map_err(EntryRefusal::Holder)?;
        let (share, rest) = (self.share_percent, 100 - self.share_percent);
        let room = self.entries.room(holder);
        let is_within = u64::from(self.waiting.of(face)) * rest < share * room;
        if is_within { Ok(()) } else { Err(EntryRefusal::Face) }
    }

    /// A new entry for this face.
    #[inline(always)]
    pub(crate) fn begin_entry(&mut self, face: FaceId, holder: HolderId) {
        self.waiting.count_up(face);
        self.entries.take(holder, 1);
    }
}

/// How many entries may be in use before anybody can be beyond a share, however they are distributed: with all of them
/// at one face of one remote holder, `used < k · (k · free − used)` where `free = usable − used`.
fn easy_entries(config: &PoolConfig) -> u64 {
    let PoolConfig { capacity, share_percent, management_reserve, local_reserve, .. } = *config;
    let usable = capacity.saturating_sub(management_reserve + local_reserve);
    if share_percent >= 100 {
        return usable;
    }
    // k² / (1 + k + k²) with k = share / rest.
    let (share, rest) = (u128::from(share_percent), 100 - u128::from(share_percent));
    let (numerator, denominator) = (share * share, rest * rest + rest * share + share * share);
    (u128::from(usable) * numerator / denominator) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_shares::{Class, Holder, HolderTable};

    fn shares(entries: u64, share_percent: u32) -> PitShares {
        let capacities = PitCapacities { entries, further_records: 0, long_interest_bytes: 0 };
        PitShares::new(capacities, share_percent, &Groups::default())
    }

    /// Asks without end for each (face, holder) in turn; what each then has, and what is free for remote holders.
    fn flooded(entries: u64, share_percent: u32, asking: &[(FaceId, HolderId)]) -> (Vec<u32>, u64) {
        let mut shares = shares(entries, share_percent);
        for _ in 0..entries {
            for &(face, holder) in asking {
                if shares.may_have_entry(face, holder).is_ok() {
                    shares.begin_entry(face, holder);
                }
            }
        }
        (asking.iter().map(|&(face, _)| shares.waiting.of(face)).collect(), shares.entries.free(Class::Remote))
    }

    #[test]
    fn floods_leave_the_part_that_the_rule_guarantees() {
        let usable = 65_536.0 * 13.0 / 16.0;
        let holder = |number: usize| HolderId::from_index(300 + number).unwrap();
        for holders in 1..=6 {
            // Two faces each, so that the share of the holder is the limit.
            let asking: Vec<_> = (0..2 * holders as usize).map(|n| (FaceId(1_000 + n as u64), holder(n / 2))).collect();
            let (waiting, free) = flooded(65_536, 80, &asking);
            let wanted = usable * 4.0 / (1.0 + 4.0 * holders as f64);
            for pair in waiting.chunks(2) {
                let held = f64::from(pair[0] + pair[1]);
                assert!((held - wanted).abs() < wanted * 0.15, "{held} of {wanted}, {holders} holders");
            }
            assert!(free as f64 > 0.7 * wanted / 4.0, "{free}");
        }
        let (waiting, _) = flooded(65_536, 80, &[(FaceId(300), holder(0))]);
        assert!((f64::from(waiting[0]) - usable * 16.0 / 21.0).abs() < 4.0, "one face alone: {waiting:?}");
        let (waiting, free) = flooded(1_600, 100, &[(FaceId(300), holder(0))]);
        assert_eq!((waiting, free), (vec![1_300], 0), "100 % is no limit but the reserves");
    }

    #[test]
    fn no_holder_exceeds_its_share_while_few_entries_are_in_use() {
        for (entries, share) in [(1_000, 80), (1_000, 50), (1_000, 10), (16, 80), (0, 80), (1_000, 100), (65_536, 99)] {
            let mut shares = shares(entries, share);
            let (face, holder) = (FaceId(300), HolderId::ANY_REMOTE);
            let mut used = 0;
            while shares.is_easy(used) {
                assert_eq!(shares.may_have_entry(face, holder), Ok(()), "{used} of {entries} at {share} %");
                shares.begin_entry(face, holder);
                used += 1;
            }
            assert!(
                entries < 100 || used as u64 * 130 > entries * u64::from(share.min(95)) / 10,
                "{used} of {entries}"
            );
        }
    }

    #[test]
    fn remote_holders_leave_the_reserves() {
        let table = HolderTable::default();
        let mut shares = shares(1_600, 100);
        let remote = table.enter(&Holder::Ipv4([192, 0, 2, 1].into()));
        while shares.may_have_entry(FaceId(300), remote).is_ok() {
            shares.begin_entry(FaceId(300), remote);
        }
        let (local, management) = (table.enter(&Holder::User(1_000)), HolderId::MANAGEMENT);
        assert_eq!((shares.entries.held(remote), shares.entries.free(local.class())), (1_300, 200));
        while shares.may_have_entry(FaceId(301), local).is_ok() {
            shares.begin_entry(FaceId(301), local);
        }
        assert_eq!((shares.entries.held(local), shares.entries.free(Class::Management)), (200, 100));
        assert_eq!(shares.may_have_entry(FaceId(1), management), Ok(()));
    }
}
