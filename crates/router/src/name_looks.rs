//! Looks at one name under way: each worker is asked, and the answer is complete when all have looked.
//!
//! Limit: management begins a bounded number of looks (its module `name_looks`), and the observer one for each of its
//! connections.

use crate::{
    messages::{LookId, ToWorker},
    senders::WorkerSender,
};
use namewire_engine::{Engine, Foresight, Instant, NameState, PendingInterest, PendingUpstream, StoredData, View};
use namewire_management::Ticket;
use namewire_node_model::explanation::Explanation;
use namewire_packet::{
    FaceId, Name, NameBuf,
    nfd::{FibLook, NameLook, NextHopRecord, PendingLook, StoredLook, UpstreamLook},
};
use namewire_tables::{NameHashes, NextHop};
use std::{collections::HashMap, sync::Arc};
use tokio::sync::oneshot;

/// Who waits for a look.
pub(crate) enum Asker {
    /// A client of management.
    Client(Ticket),
    /// The observer, which wants to know more about the name.
    Observer { name: NameBuf, reply: oneshot::Sender<Explanation> },
}

/// Looks for answers of type `R`: a ticket, or the end of a channel.
pub(crate) struct NameLooks<R> {
    last: u64,
    running: HashMap<LookId, Running<R>>,
}

struct Running<R> {
    reply: R,
    looks: Vec<NameLook>,
    workers: usize,
}

impl<R> Default for NameLooks<R> {
    fn default() -> Self {
        NameLooks { last: 0, running: HashMap::new() }
    }
}

impl<R> NameLooks<R> {
    /// Asks all workers.
    pub(crate) fn start(&mut self, workers: &[WorkerSender], name: NameBuf, reply: R) {
        self.last += 1;
        let (id, name) = (LookId(self.last), Arc::new(name));
        self.running.insert(id, Running { reply, looks: Vec::new(), workers: workers.len() });
        workers.iter().for_each(|worker| worker.send(ToWorker::LookAtName { id, name: Arc::clone(&name) }));
    }

    /// A worker has looked. Returns everything when it was the last one.
    pub(crate) fn looked(&mut self, id: LookId, look: NameLook) -> Option<(R, Vec<NameLook>)> {
        let running = self.running.get_mut(&id)?;
        running.looks.push(look);
        if running.looks.len() < running.workers {
            return None;
        }
        let Running { reply, mut looks, .. } = self.running.remove(&id)?;
        looks.sort_by_key(|look| look.worker);
        Some((reply, looks))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_waits_for_all_workers_and_has_them_in_order() {
        let mut looks = NameLooks::default();
        let id = LookId(1);
        looks.running.insert(id, Running { reply: "me", looks: Vec::new(), workers: 2 });
        let look = |worker| NameLook { worker, ..NameLook::default() };
        assert!(looks.looked(id, look(1)).is_none());
        assert!(looks.looked(LookId(2), look(0)).is_none(), "of another time");
        assert_eq!(looks.looked(id, look(0)), Some(("me", vec![look(0), look(1)])));
        assert!(looks.looked(id, look(0)).is_none(), "it is over");
    }
}
