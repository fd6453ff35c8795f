//! Another policy for a store that is in use: what stays, and in which order?
//!
//! Everything stays. The former policy names its victims one after the other, and in that order
//! the new one takes them in, so that what would have gone first goes first as far as the new
//! policy keeps an order at all; what the former knew of uses and of names that are not stored
//! is lost. Cost: a few lines per entry, at once: some 100 ns each, in which the worker does
//! nothing else. If the kernel does not map the new policy's memory, the former one stays.

use super::ContentStore;
use crate::cs_policy::Newcomer;
use crate::cs_policy::catalogue::{CachePolicy, CsPolicy};
use std::io;

impl ContentStore {
    pub(crate) fn set_policy(&mut self, policy: CsPolicy, seed: u64) -> io::Result<()> {
        if policy.in_effect() == self.policy.name().in_effect() {
            return Ok(());
        }
        let policy = CachePolicy::new(policy, self.entries_max as u32, seed, self.pages)?;
        let former = std::mem::replace(&mut self.policy, policy);
        let now_ns = self.now_ns;
        self.policy.take_over(former, &mut self.slots, now_ns, |slots, id| {
            let slot = slots.get(id);
            Newcomer {
                hash: slot.hash,
                account_bytes: slot.account_bytes.into(),
                requests: 1,
                unsolicited: slot.unsolicited,
                fresh_until_ns: slot.fresh_until_ns,
                now_ns,
            }
        });
        Ok(())
    }
}
