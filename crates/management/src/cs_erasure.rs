//! `cs/erase`: the workers do it, one after the other, and the answer waits for the last.
//!
//! Source: management.md §5. One command erases at most [`MAX_ERASED`] Data; the answer says
//! how many, and repeats the limit as Capacity if it was met while more were asked for: then
//! a client sends the command again.
//!
//! Limit: [`MAX_PENDING`] commands in progress.

use crate::{
    command::{Refusal, invalid_parameters, refusal},
    dispatcher::{Management, ReplyTo},
    effect::{Effect, Ticket},
};
use namewire_packet::{NameBuf, nfd::ControlParameters};

/// Most Data that one command erases, as in NFD.
pub const MAX_ERASED: u64 = 256;

/// Most erasures in progress.
const MAX_PENDING: usize = 64;

/// An erasure that the workers are at.
#[derive(Debug)]
pub(crate) struct CsErasure {
    prefix: NameBuf,
    count: u64,
    reply_to: ReplyTo,
}

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
        if self.cs_erasures.len() >= MAX_PENDING {
            return Err(refusal(503, format!("Too many erasures in progress (limit is {MAX_PENDING})")));
        }
        let ticket = self.next_ticket();
        let erasure = CsErasure { prefix: prefix.clone(), count, reply_to: reply_to.clone() };
        self.cs_erasures.insert(ticket, erasure);
        out.push(Effect::EraseCs { ticket, prefix, limit: count.min(MAX_ERASED) });
        Ok(None)
    }

    /// Answers `cs/erase`: the router calls this once for each [`Effect::EraseCs`], with how
    /// many Data all workers erased.
    pub fn on_cs_erased(&mut self, ticket: Ticket, erased: u64, out: &mut Vec<Effect>) {
        let Some(CsErasure { prefix, count, reply_to }) = self.cs_erasures.remove(&ticket) else { return };
        let more_were_asked_for = erased >= MAX_ERASED && count > MAX_ERASED;
        let body = ControlParameters {
            name: Some(prefix),
            count: Some(erased),
            capacity: more_were_asked_for.then_some(MAX_ERASED),
            ..Default::default()
        };
        self.succeed(&reply_to, body, out);
    }
}
