//! Looks at one name, in progress: control asks each worker, and the answer is complete when all workers have answered.
//!
//! Limit: control begins a bounded number of looks.

use crate::{
    messages::{LookId, ToWorker},
    senders::WorkerSender,
};
use namewire_packet::{NameBuf, nfd::NameLook};
use std::{collections::HashMap, sync::Arc};

/// Looks for answers of type `R`: a ticket, or the end of a channel.
pub struct NameLooks<R> {
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
    pub fn start(&mut self, workers: &[WorkerSender], name: NameBuf, reply: R) {
        self.last += 1;
        let (id, name) = (LookId(self.last), Arc::new(name));
        self.running.insert(id, Running { reply, looks: Vec::new(), workers: workers.len() });
        workers.iter().for_each(|worker| worker.send(ToWorker::LookAtName { id, name: Arc::clone(&name) }));
    }

    /// A worker has looked. Returns everything when it was the last one.
    pub fn looked(&mut self, id: LookId, look: NameLook) -> Option<(R, Vec<NameLook>)> {
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
