//! The shared EdgeHT: one hash table of edges that several threads fill.
//!
//! Source: NameTrie18 §IV-B: n items in m buckets, n/m constant. Within a burst m stays as it is. Before a burst the
//! owner makes m large enough for two edges for each of its names, which is what a new name takes. Buckets are split
//! one by one (linear hashing, Litwin 1980, as in `name_trie::edge_hash_table`): the fresh buckets are divided among
//! the threads. A bucket is split by one thread, and two splits never concern one bucket. Chains are in
//! [`super::bucket`].
//!
//! A thread has a stock of empty lines ([`LineStock`]): those that its splits gave back, and a run of new ones that one
//! atomic addition claims. So lines of one run have one writer at first.
//!
//! Cost: a look-up reads 1.3 lines, an insertion writes one. Bytes: an edge takes 14 for buckets and about 4 for
//! further lines. Limits: 2³¹ buckets. There is a line for every edge of a burst: chains have no gaps, so n edges take
//! at most n/5 further lines.
//! Writers: within a burst, its threads; between bursts, the owner.

use super::bucket::{Chains, EDGES, Entered, Line};
use namewire_tables::pages::{PageArray, PageSize};
use smallvec::SmallVec;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Load: edges for each four buckets.
const EDGES_PER_4_BUCKETS: usize = 18;
const FIRST_BUCKETS: usize = 16;
const MAX_BUCKETS: usize = 1 << 31;
/// Lines that a thread claims at once.
const RUN_LINES: u32 = 64;
/// Fewer splits are made by one thread.
const SPLITS_PER_THREAD: usize = 1 << 12;

/// An edge's name: ⟨parent node, offset, next byte⟩, never 0.
#[inline(always)]
pub(super) fn edge_key(node: u32, offset: usize, byte: u8) -> u64 {
    u64::from(node) << 32 | (offset as u64) << 8 | u64::from(byte) << 1 | 1
}

/// Empty lines of one thread, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct LineStock {
    given_back: Vec<u32>,
    run: Range<u32>,
}

/// The shared EdgeHT.
pub(super) struct SharedEdges {
    buckets: PageArray<Line>,
    /// m; buckets behind these are room.
    used_buckets: usize,
    /// One less than the power of two that m is at most.
    mask: u64,
    further: PageArray<Line>,
    /// Further lines that stocks have claimed.
    claimed: AtomicU32,
    seed: [u64; 2],
}

impl SharedEdges {
    pub(super) fn new(seed: u64, pages: PageSize) -> io::Result<Self> {
        let spread = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
        Ok(Self {
            buckets: PageArray::zeroed_preferably(FIRST_BUCKETS, pages)?,
            used_buckets: FIRST_BUCKETS,
            mask: FIRST_BUCKETS as u64 - 1,
            further: PageArray::zeroed_preferably(FIRST_BUCKETS, pages)?,
            claimed: AtomicU32::new(0),
            seed: [seed, spread | 1],
        })
    }

    /// Bytes of the lines in use.
    pub(super) fn bytes(&self) -> usize {
        (self.used_buckets + self.claimed.load(Ordering::Relaxed) as usize) * size_of::<Line>()
    }

    /// What the edge leads to.
    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<u32> {
        self.chains().get(self.bucket(key), key)
    }

    /// Adds an edge whose room was reserved; see [`Chains::enter`]. Gives what it led to before.
    #[inline]
    pub(super) fn enter(&self, key: u64, value: u32, replaces: bool, stock: &mut LineStock) -> Option<u32> {
        self.enter_in(self.bucket(key), (key, value), replaces, stock)
    }

    /// Makes room for `more` edges beside the `edges` that there are, with a thread for each stock.
    pub(super) fn reserve(&mut self, edges: usize, more: usize, stocks: &mut [LineStock]) -> io::Result<()> {
        let wanted = ((edges + more) * 4).div_ceil(EDGES_PER_4_BUCKETS);
        if wanted > MAX_BUCKETS {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let runs = stocks.len() * RUN_LINES as usize;
        self.buckets.grow(wanted)?;
        self.further.grow(*self.claimed.get_mut() as usize + (edges + more) / EDGES + runs)?;
        if edges == 0 {
            self.use_buckets(wanted.max(self.used_buckets));
        }
        while self.used_buckets < wanted {
            let half = 1 << self.used_buckets.ilog2();
            let end = wanted.min(2 * half);
            self.split_all(self.used_buckets..end, half, stocks);
            self.use_buckets(end);
        }
        Ok(())
    }

    fn use_buckets(&mut self, buckets: usize) {
        self.used_buckets = buckets;
        self.mask = buckets.next_power_of_two() as u64 - 1;
    }

    /// Fills these fresh buckets, each from the one that is `half` before it.
    fn split_all(&self, fresh: Range<usize>, half: usize, stocks: &mut [LineStock]) {
        let threads = stocks.len().min(fresh.len() / SPLITS_PER_THREAD).max(1);
        let part = fresh.len().div_ceil(threads);
        let mut parts = stocks.iter_mut().zip(fresh.clone().step_by(part));
        let split = |(stock, first): (&mut LineStock, usize)| {
            (first..fresh.end.min(first + part)).for_each(|bucket| self.split(bucket, half, stock));
        };
        let own = parts.next();
        std::thread::scope(|scope| {
            for part in parts {
                scope.spawn(|| split(part));
            }
            if let Some(part) = own {
                split(part);
            }
        });
    }

    fn split(&self, fresh: usize, half: usize, stock: &mut LineStock) {
        let mut edges: SmallVec<[(u64, u32); 4 * EDGES]> = SmallVec::new();
        let chains = self.chains();
        chains.take(fresh - half, |key, value| edges.push((key, value)), |line| stock.given_back.push(line));
        for (key, value) in edges {
            let bucket = self.hash(key) as usize & (2 * half - 1);
            self.enter_in(bucket, (key, value), true, stock);
        }
    }

    #[inline]
    fn enter_in(&self, bucket: usize, edge: (u64, u32), replaces: bool, stock: &mut LineStock) -> Option<u32> {
        let spare = stock.spare(&self.claimed);
        let Entered { before, took_spare } = self.chains().enter(bucket, edge, replaces, spare);
        if took_spare {
            stock.spend_spare();
        }
        before
    }

    #[inline(always)]
    fn chains(&self) -> Chains<'_> {
        Chains { first: &self.buckets, further: &self.further }
    }

    #[inline(always)]
    fn hash(&self, key: u64) -> u64 {
        let product = u128::from(key ^ self.seed[0]) * u128::from(self.seed[1]);
        (product >> 64) as u64 ^ product as u64
    }

    #[inline(always)]
    fn bucket(&self, key: u64) -> usize {
        let bucket = self.hash(key) & self.mask;
        let is_split = bucket < self.used_buckets as u64;
        (if is_split { bucket } else { bucket & (self.mask >> 1) }) as usize
    }
}

impl LineStock {
    /// An empty line, which stays in the stock.
    #[inline]
    fn spare(&mut self, claimed: &AtomicU32) -> u32 {
        if let Some(&line) = self.given_back.last() {
            return line;
        }
        if self.run.is_empty() {
            let first = claimed.fetch_add(RUN_LINES, Ordering::Relaxed);
            self.run = first..first + RUN_LINES;
        }
        self.run.start
    }

    /// The line that [`LineStock::spare`] gave is in use.
    fn spend_spare(&mut self) {
        if self.given_back.pop().is_none() {
            self.run.start += 1;
        }
    }
}
