//! Shares: how a limited number of places is divided among holders, so that none locks out another. A holder is a face
//! of the router, or the address of a client that connects to the repository directly.
//!
//! A face may take a place while it holds fewer places than are free. So one face gets at most half of the places, and
//! two that want all get a third each. A remote host can easily make more faces, and each takes a part of what is left.
//! So a quarter of the places is for local faces only.
//!
//! All clients behind one face, such as those of another router, use the share of this face. If the router does not
//! tell the repository from which face a packet came, all clients use one share.

use namewire_packet::FaceId;
use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Notify;

/// One in so many places is for local faces only.
const RESERVED_PART: usize = 4;

/// The face that a client is behind, if the router tells.
pub(crate) type Holder = Option<FaceId>;

struct Held<H> {
    all: usize,
    by_holder: HashMap<H, usize>,
}

/// Places.
pub(crate) struct Shares<H: Copy + Eq + Hash = Holder> {
    places: usize,
    held: Mutex<Held<H>>,
    freed: Notify,
}

/// One place, free again when it is dropped.
pub(crate) struct Place<H: Copy + Eq + Hash = Holder> {
    shares: Arc<Shares<H>>,
    holder: H,
}

impl<H: Copy + Eq + Hash> Shares<H> {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        let held = Mutex::new(Held { all: 0, by_holder: HashMap::new() });
        Arc::new(Shares { places, held, freed: Notify::new() })
    }

    /// A place now. `None`: there is none for this holder.
    pub(crate) fn try_take(self: &Arc<Self>, holder: H, is_local: bool) -> Option<Place<H>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let own = held.by_holder.get(&holder).copied().unwrap_or(0);
        let reserved = if is_local { 0 } else { self.places / RESERVED_PART };
        if own >= self.places.saturating_sub(held.all + reserved) {
            return None;
        }
        held.all += 1;
        held.by_holder.insert(holder, own + 1);
        Some(Place { shares: Arc::clone(self), holder })
    }

    /// Waits for a place.
    pub(crate) async fn take(self: &Arc<Self>, holder: H, is_local: bool) -> Place<H> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // From here on, a place that becomes free is noticed.
            freed.as_mut().enable();
            if let Some(place) = self.try_take(holder, is_local) {
                return place;
            }
            freed.await;
        }
    }
}

impl<H: Copy + Eq + Hash> Drop for Place<H> {
    fn drop(&mut self) {
        let mut held = self.shares.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.all -= 1;
        if let Some(own) = held.by_holder.get_mut(&self.holder) {
            *own -= 1;
            if *own == 0 {
                held.by_holder.remove(&self.holder);
            }
        }
        drop(held);
        self.shares.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use proptest::prelude::*;

    fn takes(shares: &Arc<Shares>, face: u64, is_local: bool) -> Vec<Place> {
        std::iter::from_fn(|| shares.try_take(Some(FaceId(face)), is_local)).collect()
    }

    #[test]
    fn greedy_faces_leave_places_for_others() {
        let shares = Shares::new(100);
        let first = takes(&shares, 1, true);
        let second = takes(&shares, 2, true);
        assert_eq!((first.len(), second.len(), takes(&shares, 3, true).len()), (50, 25, 13));
        drop(first);
        assert_eq!(takes(&shares, 3, true).len(), 38, "what was given back");
        drop(second);
        assert_eq!(shares.held.lock().unwrap().all, 0);
        let strangers: Vec<Place> = (1..100).flat_map(|face| takes(&shares, face, false)).collect();
        assert_eq!((strangers.len(), takes(&shares, 100, true).len()), (75, 13));
    }

    #[tokio::test]
    async fn a_waiting_face_gets_the_next_free_place() {
        let shares = Shares::<Holder>::new(2);
        let place = shares.try_take(None, true).unwrap();
        assert!(shares.try_take(None, true).is_none(), "one of two places is the others'");
        let waiting = shares.take(None, true);
        tokio::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(place);
        waiting.await;
    }

    proptest! {
        /// Whatever faces to other hosts took and gave back, a local face finds a place.
        #[test]
        fn a_local_face_finds_a_place(
            places in RESERVED_PART..64,
            steps in prop::collection::vec((0_u64..20, any::<bool>()), 0..200),
        ) {
            let shares = Shares::new(places);
            let mut held = Vec::new();
            for (face, takes) in steps {
                if takes {
                    held.extend(shares.try_take(Some(FaceId(face)), false));
                } else if !held.is_empty() {
                    held.swap_remove(face as usize % held.len());
                }
                prop_assert!(shares.try_take(Some(FaceId(99)), true).is_some());
            }
        }
    }
}
