//! The Incoming Interest pipeline of the core role: handles Interests that are kept as a fingerprint (Yuan15 §5.4.1).
//! [`crate::state::core_role`] says which these are, and why.
//!
//! Read [`core_interest`]. It begins after a Content Store miss. It changes nothing until it inserts the fingerprint,
//! so up to then the Interest can still be kept by name.

use crate::{
    LimitMet,
    dispatch::token::TOKEN_BYTES,
    ground::{
        measured::{PartClock, Stage},
        output::Transmit,
    },
    pipeline::{
        call::{Call, Received},
        interest::where_to,
    },
    state::{core_role::CoreRole, parts::Parts, scratch::Scratch},
    verdict::{
        journey::Journey,
        next_hops::{MatchedPrefix, NextHops},
        scope::NameScope,
        strategy::WithoutEntry,
        trigger::Trigger,
    },
};
use namewire_packet::{FaceId, Interest, lp::LpHeaders};
use namewire_shares::HolderId;
use namewire_tables::{
    HashKey,
    fingerprint_pit::{FingerprintPit, FingerprintPitRefusal, Inserted, MAX_LIFETIME_NS},
    hash_name,
};

/// Keeps a fingerprint of an Interest of another node and sends it on. False if it must be kept by name.
#[inline(never)]
pub(crate) fn core_interest<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    received: &Received<'_, 'v, Interest<'_>>,
    hint_removed: bool,
    trigger: Trigger,
) -> bool {
    let faces = call.outbound.faces;
    let holder = faces.get(received.face()).map(|face| face.holder).unwrap_or_default();
    let Some(packet) = trigger.packet.filter(|_| may_go_by_fingerprint(parts, received, holder)) else { return false };
    let (instance, next_hops) = where_to(parts, call, received, hint_removed);
    let (Some(choice), Some(next_hops)) = (instance.strategy().without_entry(), next_hops) else { return false };
    let name_hash = received.hashes.full_hash();
    let journey = Journey { faces, ingress: received.face(), scope: NameScope::Global, hop_limit: trigger.hop_limit };
    let eligible = || {
        let next_hops = next_hops.next_hops.iter().map(|hop| FaceId(hop.face));
        next_hops.filter(|&face| journey.is_eligible(face))
    };
    let count = eligible().count();
    if count == 0 {
        return false; // its strategy says what becomes of it
    }
    let (first, copies) = match choice {
        WithoutEntry::Cheapest => (0, 1),
        WithoutEntry::All => (0, count),
        WithoutEntry::AnyOne => (parts.random.usize(..count), 1),
    };
    let Some(inserted) = insert_fingerprint(parts, call.outbound.now.0, received, &next_hops) else { return false };
    call.clock.end_of_part(Stage::Insert);
    parts.counters.by_fingerprint += 1;
    parts.counters.fingerprints_collided += u64::from(inserted != Inserted::New);
    if inserted == Inserted::Aggregated {
        parts.counters.aggregated += 1;
        return true;
    }
    if let Some(core) = parts.core.as_deref_mut().filter(|_| copies > 1) {
        core.sent_names.ask_several(name_hash);
    }
    parts.tables.dead_nonces.insert(name_hash, trigger.nonce.to_u32(), call.outbound.now.0);
    let headers = LpHeaders {
        incoming_face_id: Some(received.face()),
        congestion_mark: received.headers().congestion_mark,
        non_discovery: received.headers().non_discovery,
        ..LpHeaders::default()
    };
    parts.counters.out_interests += copies as u64;
    let to = eligible().skip(first).take(copies);
    call.outbound.out.transmits.extend(to.map(|face| Transmit { face, headers, packet }));
    true
}

/// Whether a fingerprint is enough for this Interest, and the adaptive PIT does not keep it by name. The adaptive PIT
/// keeps no Interest by name that the PIT would drop.
fn may_go_by_fingerprint(parts: &mut Parts, received: &Received<'_, '_, Interest<'_>>, holder: HolderId) -> bool {
    let (interest, headers) = (received.packet, received.headers());
    // Tokens of ours and ndnd's have that length, and both work without them. Other peers may need theirs back.
    let does_without_token = headers.pit_token.is_none_or(|token| token.as_bytes().len() == TOKEN_BYTES);
    let is_plain = does_without_token
        && !interest.can_be_prefix()
        && interest.implicit_digest().is_none()
        && headers.next_hop_face_id.is_none();
    if !is_plain {
        return false;
    }
    let pending_by_name = parts.tables.pit_cs.pit_len();
    let has_room = parts.tables.free_entries() > 0 && parts.may_ask(received.face(), holder);
    parts.core.as_deref_mut().is_some_and(|core| !(core.keeps_name(pending_by_name) && has_room))
}

/// Notes which port asked. `None` if there is no room, or the lifetime is too long.
fn insert_fingerprint(
    parts: &mut Parts,
    now_ns: u64,
    received: &Received<'_, '_, Interest<'_>>,
    next_hops: &NextHops<'_>,
) -> Option<Inserted> {
    let Parts { tables, scratch, counters, config, core, .. } = parts;
    let (interest, name_hash) = (received.packet, received.hashes.full_hash());
    let CoreRole { fingerprints, ports, sent_names, expiry, aggregates, .. } = core.as_deref_mut()?;
    let lifetime_ms = interest.lifetime_ms().min(config.max_lifetime_ms);
    let mut lifetime_ns = lifetime_ms.saturating_mul(1_000_000);
    let mut prefix_hash = 0;
    if let Some(expiry) = expiry {
        prefix_hash = hash_prefix(tables.pit_cs.key(), scratch, interest.name().value(), next_hops);
        lifetime_ns = expiry.lifetime_ns(prefix_hash, lifetime_ns);
    }
    if lifetime_ns > MAX_LIFETIME_NS {
        return None;
    }
    let Some(port) = ports.number(received.face(), fingerprints) else {
        counters.meet(LimitMet::PortsFull);
        return None;
    };
    let insert = if *aggregates { FingerprintPit::insert_aggregating } else { FingerprintPit::insert };
    match insert(fingerprints, name_hash, port, now_ns, now_ns.saturating_add(lifetime_ns)) {
        Ok(inserted) => {
            sent_names.ask(name_hash);
            match (expiry, inserted) {
                (None, _) | (_, Inserted::Aggregated) => {}
                (Some(expiry), Inserted::New) => expiry.sent_new(name_hash, prefix_hash, now_ns),
                (Some(expiry), Inserted::Collided) => expiry.sent_again(name_hash),
            }
            Some(inserted)
        }
        Err(refusal) => {
            counters.meet(match refusal {
                FingerprintPitRefusal::FaceSetsFull => LimitMet::FaceSetsFull,
                _ => LimitMet::FingerprintsFull,
            });
            None
        }
    }
}

/// The hash of the prefix that the next hops belong to.
fn hash_prefix(key: &HashKey, scratch: &Scratch, name_value: &[u8], next_hops: &NextHops<'_>) -> u64 {
    match next_hops.prefix {
        MatchedPrefix::OfName { bytes } => hash_name(key, &name_value[..bytes]),
        MatchedPrefix::OfDelegation => hash_name(key, &scratch.hint_prefix),
    }
}
