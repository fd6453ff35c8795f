//! References: SIEVE and S3-FIFO as their papers write them, with plain lists of objects and without limits.
//!
//! Source: Zhang et al., NSDI 2024, Algorithm 1; Yang et al., SOSP 2023, Algorithm 1, with the ghost queue G as a
//! queue. The router's policies differ on purpose: one victim costs at most
//! [`MAX_SECOND_CHANCES`](namewire_tables::cs_policy::MAX_SECOND_CHANCES) entries that stay, and S3-FIFO's ghosts are a
//! table that forgets by age. A comparison shows what both cost in hits.

use std::collections::VecDeque;

use crate::requests::Request;

/// Hit ratios of the references.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct References {
    pub(super) sieve: f64,
    pub(super) s3_fifo: f64,
}

impl References {
    /// All requests count, from an empty store.
    pub(super) fn of(requests: &[Request], objects: u32, capacity: u32) -> Self {
        let count = requests.len().max(1) as f64;
        let mut sieve = Sieve::new(objects, capacity);
        let mut s3_fifo = S3Fifo::new(objects, capacity);
        Self {
            sieve: requests.iter().filter(|request| sieve.request(request.object)).count() as f64 / count,
            s3_fifo: requests.iter().filter(|request| s3_fifo.request(request.object)).count() as f64 / count,
        }
    }
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    older: u32,
    newer: u32,
    is_stored: bool,
    visited: bool,
}

/// A doubly linked list of objects, and the hand.
struct Sieve {
    links: Vec<Link>,
    oldest: u32,
    newest: u32,
    hand: u32,
    len: u32,
    capacity: u32,
}

impl Sieve {
    fn new(objects: u32, capacity: u32) -> Self {
        let link = Link { older: NONE, newer: NONE, is_stored: false, visited: false };
        Self { links: vec![link; objects as usize], oldest: NONE, newest: NONE, hand: NONE, len: 0, capacity }
    }

    /// Whether it hits.
    fn request(&mut self, object: u32) -> bool {
        if self.links[object as usize].is_stored {
            self.links[object as usize].visited = true;
            return true;
        }
        if self.len == self.capacity {
            self.evict();
        }
        self.links[object as usize] = Link { older: self.newest, newer: NONE, is_stored: true, visited: false };
        match self.newest {
            NONE => self.oldest = object,
            newest => self.links[newest as usize].newer = object,
        }
        self.newest = object;
        self.len += 1;
        false
    }

    fn evict(&mut self) {
        let mut victim = if self.hand == NONE { self.oldest } else { self.hand };
        while std::mem::take(&mut self.links[victim as usize].visited) {
            let newer = self.links[victim as usize].newer;
            victim = if newer == NONE { self.oldest } else { newer };
        }
        let Link { older, newer, .. } = self.links[victim as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.links[newer as usize].older = older,
        }
        self.hand = newer;
        self.links[victim as usize].is_stored = false;
        self.len -= 1;
    }
}

#[derive(Clone, Copy, Default)]
struct Known {
    is_stored: bool,
    uses: u8,
    /// When it became a ghost; 0 = it is none.
    ghost_since: u64,
}

/// Three queues; the oldest is in front.
struct S3Fifo {
    known: Vec<Known>,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    /// Ghosts, and names that are no longer ghosts since a request.
    ghosts: VecDeque<(u32, u64)>,
    ghosts_len: u32,
    now: u64,
    capacity: u32,
}

impl S3Fifo {
    fn new(objects: u32, capacity: u32) -> Self {
        let known = vec![Known::default(); objects as usize];
        let [small, main] = [VecDeque::new(), VecDeque::new()];
        Self { known, small, main, ghosts: VecDeque::new(), ghosts_len: 0, now: 0, capacity }
    }

    /// Whether it hits.
    fn request(&mut self, object: u32) -> bool {
        let known = &mut self.known[object as usize];
        if known.is_stored {
            known.uses = (known.uses + 1).min(3);
            return true;
        }
        if self.small.len() + self.main.len() == self.capacity as usize {
            self.evict();
        }
        let known = &mut self.known[object as usize];
        let was_ghost = std::mem::take(&mut known.ghost_since) > 0;
        (known.is_stored, known.uses) = (true, 0);
        self.ghosts_len -= u32::from(was_ghost);
        if was_ghost { &mut self.main } else { &mut self.small }.push_back(object);
        false
    }

    fn evict(&mut self) {
        loop {
            let is_small = self.small.len() * 10 >= self.capacity as usize;
            let queue = if is_small { &mut self.small } else { &mut self.main };
            let Some(object) = queue.pop_front() else { return };
            let known = &mut self.known[object as usize];
            if is_small && known.uses > 1 {
                known.uses = 0;
                self.main.push_back(object);
            } else if !is_small && known.uses > 0 {
                known.uses -= 1;
                self.main.push_back(object);
            } else {
                known.is_stored = false;
                if is_small {
                    self.add_ghost(object);
                }
                return;
            }
        }
    }

    fn add_ghost(&mut self, object: u32) {
        self.now += 1;
        self.known[object as usize].ghost_since = self.now;
        self.ghosts.push_back((object, self.now));
        self.ghosts_len += 1;
        while self.ghosts_len > self.capacity - self.capacity / 10 {
            let Some((oldest, since)) = self.ghosts.pop_front() else { return };
            let known = &mut self.known[oldest as usize];
            if known.ghost_since == since {
                known.ghost_since = 0;
                self.ghosts_len -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(mut request: impl FnMut(u32) -> bool, objects: &str) -> String {
        objects.bytes().map(|object| if request(u32::from(object - b'a')) { '+' } else { '-' }).collect()
    }

    /// By hand. For d the hand spares a and evicts b; for e it evicts c, where it stands.
    #[test]
    fn sieve_by_hand() {
        let mut sieve = Sieve::new(26, 3);
        assert_eq!(hits(|object| sieve.request(object), "abcaddeaed"), "---+-+-+++");
        // Stored: a, d, e, all used. The hand is at d: it spares all three, comes back to d and evicts it.
        assert_eq!(hits(|object| sieve.request(object), "faed"), "-++-");
    }

    /// By hand. S evicts if it has one entry of three or more; G has three names.
    #[test]
    fn s3_fifo_by_hand() {
        let mut s3_fifo = S3Fifo::new(26, 3);
        // d evicts a, and a is a ghost; a evicts b and comes into M. e, f, g go through S, and a stays.
        assert_eq!(hits(|object| s3_fifo.request(object), "abcdaefga"), "--------+");
        // The ghosts are c, d, e. For c, f leaves S; so c is a ghost no longer.
        assert_eq!(hits(|object| s3_fifo.request(object), "c"), "-");
        assert_eq!((s3_fifo.small.len(), s3_fifo.main.len()), (2, 1));
        // f left S last: it is a ghost, and comes into M.
        assert_eq!(hits(|object| s3_fifo.request(object), "f"), "-");
        assert_eq!((s3_fifo.small.len(), s3_fifo.main.len()), (1, 2));
    }
}
