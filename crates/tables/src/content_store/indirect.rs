//! Indirect names: a Data is also found under the names of Interests that it answered.

use super::{ContentStore, CsId, INDIRECT_OVERHEAD_BYTES, IndirectRefusal, MAX_EVICTED_PER_BATCH, MAX_INDIRECT};
use crate::cs_policy::Newcomer;
use crate::name_group::{CsLink, GroupRefusal, NameGroups};
use crate::pit::name_overflow;
use crate::slab::NIL;

impl ContentStore {
    pub(crate) fn add_indirect(
        &mut self,
        groups: &mut NameGroups,
        (hash, name_value): (u64, &[u8]),
        id: CsId,
    ) -> Result<(), IndirectRefusal> {
        let more_bytes = INDIRECT_OVERHEAD_BYTES + name_overflow(name_value);
        if !self.contains(id) {
            return Err(IndirectRefusal::NotStored);
        }
        if self.prefix_index.is_some() {
            return Ok(()); // it is found under that name anyway
        }
        if !self.may_hold(u64::from(self.slots.get(id.0).account_bytes) + more_bytes) {
            return Err(IndirectRefusal::LargerThanCapacity);
        }
        if self.evicted.in_batch >= MAX_EVICTED_PER_BATCH {
            return Err(IndirectRefusal::TooManyEvictions);
        }
        let known = groups.find(hash, name_value);
        match known.map_or(CsLink::None, |group| groups.get(group).cs()) {
            CsLink::Direct(_) => return Err(IndirectRefusal::NameOfOtherData),
            CsLink::Indirect(other) if other == id.0 => return Ok(()),
            CsLink::Indirect(other) => self.forget_indirect(groups, other, known.unwrap_or(NIL)),
            CsLink::None => {
                let is_one_more = self.slots.get(id.0).indirect_len() < MAX_INDIRECT;
                if is_one_more && self.indirect_len >= self.entries_max {
                    return Err(IndirectRefusal::NamesFull);
                }
            }
        }
        let group = match known.map_or_else(|| groups.create(hash, name_value), Ok) {
            Ok(group) => group,
            Err(GroupRefusal::Full | GroupRefusal::NoRoomForName) => return Err(IndirectRefusal::NamesFull),
        };
        groups.get_mut(group).set_cs(CsLink::Indirect(id.0));
        let slot = self.slots.get(id.0);
        if slot.indirect_len() == MAX_INDIRECT {
            let oldest = slot.indirect[0];
            self.forget_indirect(groups, id.0, oldest);
            groups.release_if_empty(oldest);
        }
        let slot = self.slots.get_mut(id.0);
        slot.indirect[slot.indirect_len()] = group;
        slot.account_bytes += more_bytes as u32;
        let hash = slot.hash;
        self.bytes += more_bytes;
        self.indirect_len += 1;
        // This eviction may remove the entry itself.
        self.evict_until_fits(groups, 0, &Newcomer { hash, ..self.nobody() });
        if self.contains(id) { Ok(()) } else { Err(IndirectRefusal::NotStored) }
    }

    /// Removes `group` from the indirect names of entry `id`; the caller disposes of the group.
    pub(super) fn forget_indirect(&mut self, groups: &mut NameGroups, id: u32, group: u32) {
        let slot = self.slots.get_mut(id);
        let Some(place) = slot.indirect.iter().position(|&other| other == group) else {
            return;
        };
        slot.indirect.copy_within(place + 1.., place);
        slot.indirect[MAX_INDIRECT - 1] = NIL;
        let bytes = INDIRECT_OVERHEAD_BYTES + name_overflow(groups.name(group));
        slot.account_bytes -= bytes as u32;
        self.bytes -= bytes;
        self.indirect_len -= 1;
        groups.get_mut(group).set_cs(CsLink::None);
    }
}
