//! A worker's look at one name: pending Interests, stored Data, and the faces to which an Interest would go.

use namewire_engine::{Engine, Foresight, Instant, NameState, PendingInterest, PendingUpstream, StoredData, View};
use namewire_packet::{
    FaceId, Name,
    nfd::{FibLook, NameLook, NextHopRecord, PendingLook, StoredLook, UpstreamLook},
};
use namewire_tables::{NameHashes, NextHop};

/// What a worker saw, as it is sent.
pub(crate) fn name_look(worker: u8, is_owner: bool, state: NameState) -> NameLook {
    NameLook {
        worker: worker.into(),
        is_owner,
        pending: state.pending.into_iter().map(pending_look).collect(),
        stored: state.stored.map(stored_look),
        stored_under: state.stored_under.map(stored_look),
        fib: None,
    }
}

/// Where the FIB and the strategy that this engine forwards by lead an Interest for the name; `None` if no table holds
/// such a name.
pub(crate) fn fib_look(engine: &Engine, now: Instant, view: &View<'_>, name: Name<'_>) -> Option<FibLook> {
    let mut hashes = NameHashes::default();
    hashes.compute(view.fib.key(), name.value()).ok()?;
    let found = view.fib.longest_prefix_match(name.value(), &hashes);
    let Foresight { chosen, silent } =
        found.as_ref().map(|found| engine.foresee(now, view, name, found)).unwrap_or_default();
    let (next_hops, strategy) = found.map_or((&[][..], 0), |found| (found.nexthops, found.strategy));
    let next_hop = |hop: &NextHop| NextHopRecord { face_id: FaceId(hop.face), cost: hop.cost };
    Some(FibLook {
        strategy: view.strategies.name(strategy).cloned().unwrap_or_default(),
        next_hops: next_hops.iter().map(next_hop).collect(),
        chosen,
        silent,
    })
}

fn pending_look(pending: PendingInterest) -> PendingLook {
    PendingLook {
        can_be_prefix: pending.can_be_prefix,
        must_be_fresh: pending.must_be_fresh,
        expires_ms: pending.expires_ms,
        is_satisfied: pending.is_satisfied,
        downstreams: pending.downstreams,
        upstreams: pending.upstreams.into_iter().map(upstream_look).collect(),
    }
}

fn upstream_look(upstream: PendingUpstream) -> UpstreamLook {
    let PendingUpstream { face, sent_ms_ago, nack, is_lost } = upstream;
    let nack = nack.map(|reason| format!("Nack {reason}"));
    UpstreamLook { face, sent_ms_ago, failure: nack.or(is_lost.then(|| "its link went down".to_owned())) }
}

fn stored_look(stored: StoredData) -> StoredLook {
    StoredLook { name: stored.name, bytes: stored.bytes, fresh_ms: stored.fresh_ms }
}
