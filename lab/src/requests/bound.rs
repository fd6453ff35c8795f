//! Bounds: the largest possible number of hits of any cache.
//!
//! *Belady's rule* (1966, "MIN"), with bypass, knows all future requests. It keeps the objects whose next request is
//! nearest. It does not store an object whose next request is later than all of these, or that is never requested
//! again. No cache of the same number of objects has more hits. The rule counts objects, not bytes: with sizes, no
//! fast way to the best choice is known. Requests that are not counted only fill the cache: an object is judged by its
//! next counted request.
//!
//! *Without limit*: every request hits except the first for each object.
//!
//! The place of its next request identifies a kept object, so a heap of places is enough; the farthest is on top. When
//! a request hits, its own place remains in the heap as a past one. Past places are below all others and are removed
//! once they fill half of the heap.
//!
//! Cost: a request takes O(log C). Memory: a request takes 4 bytes, an object 4 bytes and one bit, and a cache entry
//! up to 8 bytes.

use std::collections::BinaryHeap;

use super::Request;

/// Most requests: places are 32-bit.
pub const REQUESTS_MAX: usize = u32::MAX as usize - 1;

const NEVER: u32 = u32::MAX;

/// For every request, the next counted request for the same object.
#[derive(Clone, Debug)]
pub struct NextUses<'r> {
    requests: &'r [Request],
    next: Vec<u32>,
    objects: u32,
    counted_from: usize,
}

impl<'r> NextUses<'r> {
    /// All objects are below `objects`; requests before `counted_from` only fill the cache.
    ///
    /// # Panics
    /// If there are more than [`REQUESTS_MAX`] requests, or an object is not below `objects`.
    pub fn new(requests: &'r [Request], objects: u32, counted_from: usize) -> Self {
        assert!(requests.len() <= REQUESTS_MAX, "{} requests", requests.len());
        let mut soonest = vec![NEVER; objects as usize];
        let mut next = vec![NEVER; requests.len()];
        for (place, request) in requests.iter().enumerate().rev() {
            let soonest = &mut soonest[request.object as usize];
            next[place] = *soonest;
            if place >= counted_from {
                *soonest = place as u32;
            }
        }
        Self { requests, next, objects, counted_from }
    }

    /// Hits by Belady's rule of a cache of `capacity` objects that is empty at first.
    pub fn belady_hits(&self, capacity: usize) -> usize {
        let mut kept = Kept::new(self.objects, capacity);
        let mut hits = 0;
        for (place, (request, &next)) in self.requests.iter().zip(&self.next).enumerate() {
            let counts = place >= self.counted_from;
            hits += usize::from(kept.request((place as u32, counts), request.object, next, self.requests));
        }
        hits
    }

    /// Hits of a cache without limit that is empty at first.
    pub fn hits_without_limit(&self) -> usize {
        let mut is_known = vec![false; self.objects as usize];
        let mut hits = 0;
        for (place, request) in self.requests.iter().enumerate() {
            let hit = std::mem::replace(&mut is_known[request.object as usize], true);
            hits += usize::from(hit && place >= self.counted_from);
        }
        hits
    }
}

/// The objects in the cache.
struct Kept {
    is_kept: Vec<bool>,
    objects: usize,
    capacity: usize,
    /// Places of next requests: the farthest on top, past ones at the bottom.
    next: BinaryHeap<u32>,
}

impl Kept {
    fn new(objects: u32, capacity: usize) -> Self {
        Self { is_kept: vec![false; objects as usize], objects: 0, capacity, next: BinaryHeap::new() }
    }

    /// Whether the request at `place` hits and counts.
    fn request(&mut self, (place, counts): (u32, bool), object: u32, next: u32, requests: &[Request]) -> bool {
        let is_kept = &mut self.is_kept[object as usize];
        if *is_kept && !counts {
            return false; // the heap has this place already
        }
        let hits = std::mem::replace(is_kept, next != NEVER);
        self.objects -= usize::from(hits);
        if next == NEVER {
            return hits;
        }
        self.next.push(next);
        self.objects += 1;
        if self.objects > self.capacity
            && let Some(farthest) = self.next.pop()
        {
            self.is_kept[requests[farthest as usize].object as usize] = false;
            self.objects -= 1;
        }
        if self.next.len() > 2 * self.capacity + 64 {
            self.next.retain(|&next| next > place);
        }
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn requests(objects: &[u32]) -> Vec<Request> {
        objects.iter().map(|&object| Request { object, bytes: 1 }).collect()
    }

    /// The most hits of all choices to keep an object or not, by exhaustive search over the reachable states of the
    /// cache.
    fn best_of_all(requests: &[Request], capacity: usize, counted_from: usize) -> usize {
        let mut states = HashMap::from([(0_u32, 0_usize)]);
        for (place, request) in requests.iter().enumerate() {
            let mut reached = HashMap::<u32, usize>::new();
            let mut reach = |state: u32, hits: usize| {
                let most = reached.entry(state).or_default();
                *most = hits.max(*most);
            };
            for (&state, &hits) in &states {
                let bit = 1 << request.object;
                let hits = hits + usize::from(state & bit != 0 && place >= counted_from);
                reach(state, hits);
                if state & bit == 0 {
                    if (state.count_ones() as usize) < capacity {
                        reach(state | bit, hits);
                    } else {
                        (0..8)
                            .filter(|kept| state >> kept & 1 == 1)
                            .for_each(|kept| reach(state & !(1 << kept) | bit, hits));
                    }
                }
            }
            states = reached;
        }
        states.into_values().max().unwrap_or(0)
    }

    #[test]
    fn no_choice_of_objects_has_more_hits() {
        let mut random = fastrand::Rng::with_seed(1);
        for round in 0..300 {
            let objects: Vec<u32> = (0..random.usize(1..40)).map(|_| random.u32(..8).min(random.u32(..8))).collect();
            let (requests, counted_from) = (requests(&objects), random.usize(..6));
            let next_uses = NextUses::new(&requests, 8, counted_from);
            for capacity in 1..=4 {
                let hits = next_uses.belady_hits(capacity);
                assert_eq!(
                    hits,
                    best_of_all(&requests, capacity, counted_from),
                    "round {round}, {capacity}: {objects:?}"
                );
            }
            assert_eq!(next_uses.belady_hits(8), next_uses.hits_without_limit());
        }
    }

    #[test]
    fn a_long_run_keeps_its_heap_small() {
        let objects: Vec<u32> = (0..20_000).map(|place| place % 3).collect();
        let requests = requests(&objects);
        let next_uses = NextUses::new(&requests, 3, 0);
        assert_eq!((next_uses.belady_hits(3), next_uses.belady_hits(0)), (19_997, 0));
        assert_eq!(next_uses.hits_without_limit(), 19_997);
        let mut kept = Kept::new(3, 3);
        for (place, (request, &next)) in requests.iter().zip(&next_uses.next).enumerate() {
            kept.request((place as u32, true), request.object, next, &requests);
            assert!(kept.next.len() <= 70);
        }
    }
}
