//! `status/name/<name>`: what is pending and stored for one name, as all workers see it.
//!
//! The dataset is ours. Only workers know the answer, so it comes when all of them have looked.
//!
//! Limits: [`MAX_PENDING`] looks in progress; a name of [`MAX_NAME_BYTES`]. Components behind the name are not read.

use crate::{
    command::{malformed, refusal},
    dataset_store::Asked,
    datasets::{is_of_snapshot, too_long},
    effect::{Effect, Ticket},
    environment::Times,
    management::Management,
    request::Request,
};
use namewire_packet::{
    Name,
    nfd::{NameLook, encode_dataset},
    tlv::types::GENERIC_COMPONENT,
};

/// Most looks in progress.
const MAX_PENDING: usize = 64;

/// Longest name in bytes. Every segment repeats it in its own name.
const MAX_NAME_BYTES: usize = 4096;

/// The place of the name's component: after `/localhost/nfd/status/name`.
const NAME_AT: usize = 4;

/// The request that has this name.
fn asked_in(name: Name<'_>) -> Asked<'_> {
    Asked { dataset: name.prefix(NAME_AT + 1), name }
}

impl Management {
    /// Answers a request for a segment at once, and a new request when the workers have looked.
    pub(crate) fn on_name_request(&mut self, request: &Request<'_>, out: &mut Vec<Effect>) {
        let &Request { now, interest, ref reply_to, .. } = request;
        let asked = interest.name();
        if is_of_snapshot(asked) {
            let segment = self.replies.store.stored(asked_in(asked), now.mono_ns);
            return self.send_segment(segment, reply_to, out);
        }
        if let Some(refusal) = too_long(asked) {
            return self.refuse_query(&refusal, reply_to, out);
        }
        let component = asked.get(NAME_AT).filter(|one| one.type_number == GENERIC_COMPONENT);
        let Some(name) = component.and_then(|component| Name::parse_tlv(component.value).ok()) else {
            let why = malformed("the fifth component must hold a Name");
            return self.refuse_query(&why, reply_to, out);
        };
        if !interest.can_be_prefix() || name.value().len() > MAX_NAME_BYTES {
            let why = malformed(&format!("a look needs CanBePrefix, and a name of at most {MAX_NAME_BYTES} bytes"));
            return self.refuse_query(&why, reply_to, out);
        }
        if self.pending.looks.len() >= MAX_PENDING {
            let why = refusal(503, format!("Too many looks in progress (limit is {MAX_PENDING})"));
            return self.refuse_query(&why, reply_to, out);
        }
        let ticket = self.pending.next_ticket();
        self.pending.looks.insert(ticket, reply_to.clone());
        out.push(Effect::LookAtName { ticket, name: name.to_buf() });
    }

    /// Answers a look. The router calls this once for each [`Effect::LookAtName`], with one entry for each worker.
    pub fn on_name_looked(&mut self, now: Times, ticket: Ticket, looks: &[NameLook], out: &mut Vec<Effect>) {
        let Some(reply_to) = self.pending.looks.remove(&ticket) else { return };
        let content = encode_dataset(looks);
        match self.replies.store.add(asked_in(reply_to.name.as_name()), content, now.mono_ns, now.unix_ms) {
            Some(segment) => self.send_segment(Some(segment), &reply_to, out),
            None => {
                self.refuse_query(&refusal(507, "The answer is larger than this forwarder's limit"), &reply_to, out)
            }
        }
    }
}
