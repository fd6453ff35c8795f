//! Changes the policy of a store that is in use.
//!
//! All Data stays stored. The former policy names its victims one after the other, and the new policy takes
//! them over in that order. So the Data that the former policy would have evicted first is evicted first,
//! if the new policy keeps an order. The new policy does not learn how often entries were used, nor
//! anything about names that are not stored.
//!
//! Cost: the change reads and writes a few lines per entry. It takes some 100 ns per entry, and the worker
//! does nothing else meanwhile. If the kernel does not map the new policy's memory, the former policy
//! stays.

use super::ContentStore;
use super::policy::{CsPolicy, PolicyInForce};
use crate::cs_policy::Newcomer;
use std::io;

impl ContentStore {
    pub(crate) fn set_policy(&mut self, policy: CsPolicy, seed: u64) -> io::Result<()> {
        if policy == *self.policy.choice() {
            return Ok(());
        }
        let policy = PolicyInForce::new(policy, self.entries_max as u32, seed, self.pages)?;
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
