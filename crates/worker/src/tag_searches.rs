//! Long tag searches: they continue in later turns, within the share of their holder.
//!
//! A search for a packet with many 1-bits visits a large part of the table: after 60,000 advertised sets, some hundred
//! times as much as for an ordinary packet. Anyone can send such packets, so the cost of a turn is bounded in steps
//! (see `burst_trie/search.rs` of `namewire_tagnet`), a tenth of a microsecond or so each:
//!
//! ```text
//!   packet by tags ─► at most FIRST_STEPS, of FIRST_TURN_STEPS in a turn ─► sent
//!        │ longer; or packets of its holder wait already
//!        ▼
//!   holder A │ packet │ packet │ …     TURN_STEPS in a turn of the worker; the holders
//!   holder B │ packet │                take turns (`namewire_shares::turns`), in steps
//! ```
//!
//! Between two turns the worker reads its sockets and decides other packets. One search runs at a time, so that the
//! worker keeps old tables only for the time of one search. A holder pays for its search afterwards.
//!
//! Limits: the waiting packets share a pool, `tag-searches`, by holder; packets that find no room are dropped as
//! `searches-waiting`.

use namewire_engine::FaceId;
use namewire_packet::lp::LpHeaders;
use namewire_shares::{Groups, HolderId, Payer, Pool, PoolConfig, PoolReader, Turns};
use std::collections::{HashMap, VecDeque, hash_map::Entry};

/// Steps of a packet in the turn in which it came. Ordinary packets need no more.
pub(crate) const FIRST_STEPS: usize = 256;
/// The same for all packets of a turn.
pub(crate) const FIRST_TURN_STEPS: usize = 1_024;
/// Steps in a turn for packets that wait.
pub(crate) const TURN_STEPS: usize = 1_024;
/// Steps of a holder in a round of turns.
const QUANTUM_STEPS: u32 = 512;
/// Bytes of the packets that wait.
const WAITING_BYTES: u64 = 4 << 20;

/// A packet whose search waits, or is under way.
pub(crate) struct WaitingPacket {
    pub(crate) face: FaceId,
    pub(crate) headers: LpHeaders,
    /// An application's is complete.
    pub(crate) wire: Box<[u8]>,
}

/// See the module documentation.
pub(crate) struct TagSearches {
    /// The packets of each holder. No line is empty.
    lines: HashMap<HolderId, VecDeque<WaitingPacket>>,
    turns: Turns<HolderId>,
    /// Whose first packet is under way, and the steps that its search has used.
    under_way: Option<(HolderId, usize)>,
    pool: Pool,
}

impl TagSearches {
    pub(crate) fn new(groups: &Groups) -> Self {
        let config = PoolConfig {
            name: "tag-searches",
            capacity: WAITING_BYTES,
            share_percent: 80,
            management_reserve: WAITING_BYTES / 16,
            local_reserve: WAITING_BYTES / 8,
        };
        TagSearches {
            lines: HashMap::new(),
            turns: Turns::new(QUANTUM_STEPS, groups),
            under_way: None,
            pool: Pool::new(config, groups),
        }
    }

    /// The pool, for reports.
    pub(crate) fn pool(&self) -> PoolReader {
        self.pool.reader()
    }

    /// True if no packet waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// True if packets of this holder wait: later ones wait behind them.
    pub(crate) fn has_any_of(&self, holder: HolderId) -> bool {
        self.lines.contains_key(&holder)
    }

    /// Keeps a packet. False: its holder has its share.
    pub(crate) fn park(&mut self, holder: HolderId, packet: WaitingPacket) -> bool {
        if self.pool.try_take(holder, packet.wire.len() as u64).is_err() {
            return false;
        }
        match self.lines.entry(holder) {
            Entry::Occupied(mut line) => line.get_mut().push_back(packet),
            Entry::Vacant(place) => {
                place.insert([packet].into());
                self.turns.push(Payer::Holder(holder), holder);
            }
        }
        true
    }

    /// The packet that is to be searched for now: the one that is under way, or the next.
    pub(crate) fn next(&mut self) -> Option<&WaitingPacket> {
        if self.under_way.is_none() {
            self.under_way = Some((self.turns.begin()?, 0));
        }
        let (holder, _) = self.under_way?;
        self.lines.get(&holder)?.front()
    }

    /// Charges the packet that is under way for the steps that it used; `is_over` ends it.
    pub(crate) fn charge(&mut self, steps: usize, is_over: bool) {
        let Some((holder, used)) = &mut self.under_way else { return };
        *used += steps;
        let (holder, used) = (*holder, *used);
        if !is_over {
            return;
        }
        self.under_way = None;
        let Entry::Occupied(mut line) = self.lines.entry(holder) else { return self.turns.end(0, false) };
        if let Some(packet) = line.get_mut().pop_front() {
            self.pool.give_back(holder, packet.wire.len() as u64);
        }
        let has_more = !line.get().is_empty();
        if !has_more {
            line.remove();
        }
        self.turns.end(u32::try_from(used).unwrap_or(u32::MAX), has_more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_shares::{Holder, HolderTable};

    /// Packets are as long as their holder's number, and need so many steps.
    struct Searches {
        searches: TagSearches,
        holders: Vec<HolderId>,
        needed: Vec<usize>,
        /// What the packet under way has had.
        had: usize,
        done: Vec<usize>,
    }

    impl Searches {
        fn new(needed: &[usize]) -> Self {
            let table = HolderTable::default();
            let holder = |number: usize| table.enter(&Holder::of_address([192, 0, 2, number as u8].into(), false));
            let holders = (0..needed.len()).map(holder).collect();
            let searches = TagSearches::new(table.groups());
            Searches { searches, holders, needed: needed.to_vec(), had: 0, done: vec![0; needed.len()] }
        }

        fn park(&mut self, holder: usize) -> bool {
            let packet =
                WaitingPacket { face: FaceId(holder as u64), headers: LpHeaders::default(), wire: vec![0; 500].into() };
            self.searches.park(self.holders[holder], packet)
        }

        fn waiting(&self, holder: usize) -> usize {
            self.searches.lines.get(&self.holders[holder]).map_or(0, VecDeque::len)
        }

        /// One turn; returns the steps that it used.
        fn turn(&mut self) -> usize {
            let mut steps = TURN_STEPS;
            while steps > 0
                && let Some(packet) = self.searches.next()
            {
                let holder = packet.face.0 as usize;
                let used = steps.min(self.needed[holder] - self.had);
                steps -= used;
                self.had += used;
                let is_over = self.had == self.needed[holder];
                if is_over {
                    self.done[holder] += 1;
                    self.had = 0;
                }
                self.searches.charge(used, is_over);
            }
            TURN_STEPS - steps
        }
    }

    #[test]
    fn a_turn_has_its_steps_whatever_waits() {
        let mut searches = Searches::new(&[50_000]);
        (0..10).for_each(|_| assert!(searches.park(0)));
        let turns = (0..500).take_while(|_| searches.turn() == TURN_STEPS).count();
        assert_eq!((turns, searches.done[0]), (10 * 50_000 / TURN_STEPS, 10));
        assert!(searches.searches.is_empty() && searches.searches.pool.used() == 0);
    }

    #[test]
    fn holders_share_the_steps_and_not_the_packets() {
        let mut searches = Searches::new(&[20_000, 100, 2_000]);
        for _ in 0..4_000 {
            for holder in 0..3 {
                while searches.waiting(holder) < 50 {
                    assert!(searches.park(holder));
                }
            }
            searches.turn();
        }
        let steps: Vec<usize> =
            searches.done.iter().zip(&searches.needed).map(|(done, needed)| done * needed).collect();
        let third = 4_000 * TURN_STEPS / 3;
        assert!(steps.iter().all(|steps| steps.abs_diff(third) < third / 20), "{steps:?}, each a third of {third}");
    }

    /// One that sends more than there is time for keeps neither the places nor the time of another.
    #[test]
    fn a_heavy_holder_leaves_room_and_turns_to_others() {
        let mut searches = Searches::new(&[20_000, 1_000]);
        while searches.park(0) {}
        let refused_at = searches.searches.pool.used();
        assert!(refused_at < WAITING_BYTES && refused_at > WAITING_BYTES / 2);
        let mut longest = 0;
        for _ in 0..100 {
            assert!(searches.park(1));
            let before = searches.done[1];
            let turns = (1..1_000).find(|_| {
                searches.turn();
                searches.done[1] > before
            });
            longest = longest.max(turns.unwrap());
            while searches.park(0) {}
        }
        // At most the search that is under way, and its own.
        assert!(longest <= 20_000 / TURN_STEPS + 3, "{longest} turns");
    }
}
