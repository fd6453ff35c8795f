//! Two stages: with how many components does the search begin?
//!
//! Source: So et al. 2013 (Yuan15 §3.2.1): the first look-up is at M components, the length that most prefixes have.
//! The population is not known beforehand, and changes; so M is chosen again whenever the number of prefixes has
//! doubled. If M changes, all prefixes have other markers, so the tables are rebuilt.
//!
//! Cost: a choice of M reads every entry; if M changes, it inserts all prefixes again. Because choices come only after
//! doublings, this at most doubles the mean cost of an insertion. But the insertion that causes it takes that long.
//! Bytes: both tables meanwhile; without memory for the second, M stays. Writers: the owner.

use super::HashTables;
use super::name_entries::SlotRef;
use super::prefix_hashes::first_components;
use super::search_order::HashSearch;

/// Prefixes at the first choice.
pub(super) const FIRST_CHOICE: usize = 8;

impl HashTables {
    /// Chooses M, if the number of prefixes has doubled since the last choice.
    pub(super) fn review_first_stage(&mut self) {
        if !self.options.is_first_stage_chosen || self.len < self.next_choice {
            return;
        }
        self.next_choice = 2 * self.len;
        let HashSearch::TwoStage { first_components } = self.order.search() else { return };
        let prefixes_of = |&length: &usize| self.prefixes_of(length).count();
        let fits = |&length: &usize| u16::try_from(length).is_ok();
        // Of several the shortest, which has the fewest markers above it.
        let most = (1..=self.longest_in_use).filter(fits).rev().max_by_key(prefixes_of);
        if let Some(most) = most.filter(|&most| most != usize::from(first_components)) {
            self.begin_at(most as u16);
        }
    }

    /// After a removal: the next choice may come earlier.
    pub(super) fn expect_growth_from_here(&mut self) {
        if 4 * self.len < self.next_choice {
            self.next_choice = (2 * self.len).max(FIRST_CHOICE);
        }
    }

    /// Makes the tables anew for this M; where there is no memory for that, they stay.
    fn begin_at(&mut self, first_components: u16) {
        let options = super::HashTableOptions { search: HashSearch::TwoStage { first_components }, ..self.options };
        let Ok(mut anew) = Self::new(self.capacity, self.hasher.key, options) else { return };
        anew.next_choice = usize::MAX; // not while it is filled
        let root = self.root.map(|number| (&[][..], number));
        for (prefix, number) in root.into_iter().chain((1..=self.longest_in_use).flat_map(|n| self.prefixes_of(n))) {
            if anew.insert_prefix(prefix, number).is_err() {
                return;
            }
        }
        anew.next_choice = self.next_choice;
        *self = anew;
    }

    /// The prefixes of this many components, markers left out.
    fn prefixes_of(&self, length: usize) -> impl Iterator<Item = (&[u8], u32)> {
        let slot = self.order.slot(length) as u8;
        self.tables[length].name_entries().filter_map(move |name_entry| {
            let prefix = first_components(self.names.string(name_entry), length);
            let forwarding = self.names.forwarding(SlotRef { name_entry, slot });
            (usize::from(forwarding.matched_bytes) == prefix.len()).then_some((prefix, forwarding.number))
        })
    }
}
