//! Face events: the notification stream `faces/events`.
//!
//! Source: management.md §6.4. Each event is a Data `…/seq=<n>`, which is sent to the waiting Interests and kept for
//! later requests. A first request (CanBePrefix) gets the latest event while this event is fresh, and otherwise waits
//! for the next one. A request for a future sequence number waits too. Waiting costs management nothing: the Interest
//! is pending in the forwarder, and management sends every new event while an Interest may wait.
//!
//! Limit: [`MAX_EVENTS_KEPT`] events.

use crate::{
    command::malformed, dataset_store::FRESHNESS_MS, effect::Effect, environment::Times, face_registry::FaceProperties,
    name_key::fixed_name, replies::Replies, request::Request,
};
use namewire_packet::{
    DataBuilder,
    nfd::{FaceEventKind, FaceEventNotification},
    tlv::types::SEQUENCE_NUM_COMPONENT,
};
use std::collections::VecDeque;

/// Events that can still be requested by sequence number.
const MAX_EVENTS_KEPT: usize = 256;

/// Components of `/localhost/nfd/faces/events`.
const STREAM_NAME_LEN: usize = 4;

/// The latest events, and the time until which an Interest may wait for the next.
#[derive(Debug, Default)]
pub(crate) struct FaceEvents {
    /// (instant, Data) of the events from `next_sequence - kept.len()` on.
    kept: VecDeque<(u64, Vec<u8>)>,
    next_sequence: u64,
    awaited_until_ns: u64,
}

impl FaceEvents {
    fn by_sequence(&self, sequence: u64) -> Option<&Vec<u8>> {
        let first = self.next_sequence - self.kept.len() as u64;
        let index = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.kept.get(index).map(|(_, packet)| packet)
    }

    fn latest_if_fresh(&self, now_ns: u64) -> Option<&Vec<u8>> {
        let (at_ns, packet) = self.kept.back()?;
        (now_ns.saturating_sub(*at_ns) < FRESHNESS_MS * 1_000_000).then_some(packet)
    }
}

impl FaceEvents {
    /// Answers a request for an event, or lets it wait.
    pub(crate) fn on_request(&mut self, request: &Request<'_>, replies: &mut Replies, out: &mut Vec<Effect>) {
        let &Request { now, interest, ref reply_to, .. } = request;
        let name = interest.name();
        let last = name.last().filter(|last| last.type_number == SEQUENCE_NUM_COMPONENT);
        let sequence = last.and_then(|last| last.as_nni());
        let packet = match (name.len() - STREAM_NAME_LEN, sequence) {
            (0, _) if interest.can_be_prefix() => self.latest_if_fresh(now.mono_ns),
            (1, Some(sequence)) if sequence >= self.next_sequence => None,
            (1, Some(sequence)) => match self.by_sequence(sequence) {
                Some(packet) => Some(packet),
                None => return replies.counters.not_kept += 1,
            },
            _ => {
                let refusal = malformed("an event request needs CanBePrefix or a sequence number");
                return replies.refuse(reply_to, &refusal, out);
            }
        };
        match packet.cloned() {
            Some(packet) => replies.counters.events += u64::from(replies.send(packet, reply_to.pit_token, out)),
            None => {
                let until_ns = now.mono_ns.saturating_add(interest.lifetime_ms().saturating_mul(1_000_000));
                self.awaited_until_ns = self.awaited_until_ns.max(until_ns);
            }
        }
    }

    /// Keeps an event, and sends it if an Interest may wait for it.
    pub(crate) fn announce(
        &mut self,
        now: Times,
        kind: FaceEventKind,
        face: &FaceProperties,
        replies: &mut Replies,
        out: &mut Vec<Effect>,
    ) {
        let notification = FaceEventNotification {
            kind,
            face_id: face.face,
            uri: face.remote.to_string(),
            local_uri: face.local.to_string(),
            face_scope: face.scope,
            face_persistency: face.persistency,
            link_type: face.link_type,
            flags: face.flags,
        };
        let mut name = fixed_name("/localhost/nfd/faces/events");
        name.push_typed_nni(SEQUENCE_NUM_COMPONENT, self.next_sequence);
        let packet = DataBuilder::new(name).freshness_ms(FRESHNESS_MS).content(&notification.to_wire()).sign_digest();
        if self.kept.len() == MAX_EVENTS_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((now.mono_ns, packet.clone()));
        self.next_sequence += 1;
        if now.mono_ns < self.awaited_until_ns && replies.send(packet, None, out) {
            replies.counters.events += 1;
        }
    }
}
