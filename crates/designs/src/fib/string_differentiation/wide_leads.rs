//! Wide leads: where does a slot lead if its port field is too narrow for the answer?
//!
//! Deviation from Yuan15 §4.3.4, where a port has 8 bits and nothing more. Here numbers of a FIB have 32 bits, and root
//! rules with longer rules below lead to a group. The largest port means "look in this table". Slots are exact keys, so
//! no slot is taken for another.
//!
//! ```text
//! word │ slot + 1, 31 bits │ leads, 33 bits │     0 = free; linear probing, at most 3/4 full
//! ```
//!
//! Cost: a look-up reads 1 line. Bytes: a wide lead takes 10.7 to 21.3. When the table is full, it grows. Writers: the
//! owner.

use super::differentiator::Leads;

const LEADS_MASK: u64 = (1 << Leads::BITS) - 1;

/// Leads by slot.
#[derive(Default)]
pub(super) struct WideLeads {
    words: Vec<u64>,
    len: usize,
}

impl WideLeads {
    /// Where the slot leads, if the table has it.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<Leads> {
        let at = self.find(slot).ok()?;
        Some(Leads::from_bits(self.words[at] & LEADS_MASK))
    }

    pub(super) fn set(&mut self, slot: u32, leads: Leads) {
        let word = tag(slot) << Leads::BITS | leads.bits();
        match self.find(slot) {
            Ok(at) => self.words[at] = word,
            Err(_) => {
                if (self.len + 1) * 4 > self.words.len() * 3 {
                    self.grow();
                }
                if let Err(at) = self.find(slot) {
                    self.words[at] = word;
                    self.len += 1;
                }
            }
        }
    }

    /// Removes the slot's word, if there is one. Words that probed past it move up.
    pub(super) fn remove(&mut self, slot: u32) {
        let Ok(mut gap) = self.find(slot) else { return };
        self.len -= 1;
        let mask = self.words.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let word = self.words[at];
            if word == 0 {
                break;
            }
            let home = self.home(word >> Leads::BITS);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.words[gap] = word;
                gap = at;
            }
        }
        self.words[gap] = 0;
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Where the slot is, or where it would be; no sense in the latter if there are no words.
    #[inline]
    fn find(&self, slot: u32) -> Result<usize, usize> {
        if self.words.is_empty() {
            return Err(0);
        }
        let mut at = self.home(tag(slot));
        loop {
            match self.words[at] {
                0 => return Err(at),
                word if word >> Leads::BITS == tag(slot) => return Ok(at),
                _ => at = (at + 1) & (self.words.len() - 1),
            }
        }
    }

    #[inline]
    fn home(&self, tag: u64) -> usize {
        (tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.words.len() - 1)
    }

    fn grow(&mut self) {
        let larger = vec![0; (self.words.len() * 2).max(8)];
        for word in std::mem::replace(&mut self.words, larger) {
            if word != 0
                && let Err(at) = self.find((word >> Leads::BITS) as u32 - 1)
            {
                self.words[at] = word;
            }
        }
    }
}

#[inline]
fn tag(slot: u32) -> u64 {
    u64::from(slot) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn slots_lead_where_they_were_set_to() {
        let (mut wide, mut model) = (WideLeads::default(), HashMap::new());
        let mut rng = fastrand::Rng::with_seed(5);
        for round in 0..50_000_u32 {
            let slot = if rng.bool() { rng.u32(..400) } else { (1 << 30) - 1 - rng.u32(..400) };
            assert_eq!(wide.get(slot), model.get(&slot).copied());
            let leads = if rng.bool() { Leads::to_group(u32::MAX - round) } else { Leads::to_number(u32::MAX - round) };
            if rng.bool() {
                wide.set(slot, leads);
                model.insert(slot, leads);
            } else {
                wide.remove(slot);
                model.remove(&slot);
            }
            assert_eq!(wide.len, model.len());
        }
        assert!(wide.bytes() <= 16 * 1024, "800 slots at most");
    }
}
