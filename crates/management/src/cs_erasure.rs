//! `cs/erase`: the workers erase one after the other, and the answer waits for the last worker.
//!
//! Source: management.md §5. One command erases at most [`MAX_ERASED`] Data. The answer gives the number of erased
//! Data. If the command asked for more and the limit was reached, the answer repeats the limit as Capacity. Then a
//! client sends the command again.
//!
//! Limit: [`MAX_PENDING`] commands in progress.

use crate::{
    command::{Refusal, invalid_parameters, refusal},
    effect::{Effect, Ticket},
    management::Management,
    pending_commands::CsErasure,
    replies::ReplyTo,
};
use namewire_packet::nfd::ControlParameters;

/// Most Data that one command erases, as in NFD.
pub const MAX_ERASED: u64 = 256;

/// Most erasures in progress.
const MAX_PENDING: usize = 64;

impl Management {
    /// `cs/erase`: the answer comes when the workers are done.
    pub(crate) fn erase_cs(
        &mut self,
        parameters: ControlParameters,
        reply_to: &ReplyTo,
        out: &mut Vec<Effect>,
    ) -> Result<Option<ControlParameters>, Refusal> {
        let prefix = parameters.name.ok_or_else(|| invalid_parameters("Name is required"))?;
        let count = parameters.count.unwrap_or(u64::MAX);
        if count == 0 {
            return Err(invalid_parameters("Count must not be 0"));
        }
        if self.pending.erasures.len() >= MAX_PENDING {
            return Err(refusal(503, format!("Too many erasures in progress (limit is {MAX_PENDING})")));
        }
        let ticket = self.pending.next_ticket();
        let erasure = CsErasure { prefix: prefix.clone(), count, reply_to: reply_to.clone() };
        self.pending.erasures.insert(ticket, erasure);
        out.push(Effect::EraseCs { ticket, prefix, limit: count.min(MAX_ERASED) });
        Ok(None)
    }

    /// Answers `cs/erase`. The router calls this once for each [`Effect::EraseCs`], with the number of Data that all
    /// workers erased.
    pub fn on_cs_erased(&mut self, ticket: Ticket, erased: u64, out: &mut Vec<Effect>) {
        let Some(CsErasure { prefix, count, reply_to }) = self.pending.erasures.remove(&ticket) else { return };
        let more_were_asked_for = erased >= MAX_ERASED && count > MAX_ERASED;
        let body = ControlParameters {
            name: Some(prefix),
            count: Some(erased),
            capacity: more_were_asked_for.then_some(MAX_ERASED),
            ..Default::default()
        };
        self.replies.succeed(&reply_to, body, out);
    }
}
