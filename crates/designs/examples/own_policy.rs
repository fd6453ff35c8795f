//! A custom cache policy, measured in comparison with `lru` and the default (docs/extending.md).
//!
//! `cargo run --release -p namewire-designs --example own_policy -- [TRACE]`. A trace has one request per line. Without
//! a trace, the program generates requests: for popular objects, and now and then a scan of new ones.

use namewire_tables::cs_policy::adaptive_window::AdaptiveWindow;
use namewire_tables::cs_policy::named_entry::NamedEntry;
use namewire_tables::cs_policy::queue::Lru;
use namewire_tables::cs_policy::{Eviction, Marks, Newcomer, RemovalReason};
use namewire_tables::eviction_queue::EvictionQueues;
use namewire_tables::pages::PageSize;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;

// policy
/// Data that was asked for once and Data that was asked for again, each in the order of last use.
struct TwoQueues {
    queues: EvictionQueues<2>,
    once: u32,
    /// While more entries than this were used once, the oldest of them goes.
    once_max: u32,
}

const ONCE: u8 = 0;
const AGAIN: u8 = 1;

impl TwoQueues {
    fn new(entries: u32) -> io::Result<Self> {
        Ok(TwoQueues { queues: EvictionQueues::new(entries, PageSize::default())?, once: 0, once_max: entries / 5 })
    }

    fn push(&mut self, marks: &mut impl Marks, slot: u32, list: u8) {
        let mark = marks.mark_mut(slot); // eight bytes of the entry's own line, for the policy
        (mark.list, mark.place) = (list, self.queues.push_newest_of(list.into(), slot));
        self.once += u32::from(list == ONCE);
    }
}

impl Eviction for TwoQueues {
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        self.push(marks, slot, ONCE);
    }

    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        self.remove(marks, slot, RemovalReason::Erased);
        self.push(marks, slot, AGAIN);
    }

    fn victim(&mut self, _: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        let [first, second] = if self.once > self.once_max { [ONCE, AGAIN] } else { [AGAIN, ONCE] };
        self.queues.oldest_of(first.into()).or_else(|| self.queues.oldest_of(second.into()))
    }

    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        let mark = marks.mark(slot);
        self.queues.remove_of(mark.list.into(), mark.place);
        self.once -= u32::from(mark.list == ONCE);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.once_max = entries / 5;
        self.queues.grow(entries)
    }

    fn bytes(&self) -> usize {
        self.queues.bytes()
    }
}
// end

// measure
/// A store without Data: which names would this policy have kept?
struct Store<P> {
    policy: P,
    slots: HashMap<u64, u32>,
    /// By slot: the hash of the name, and the policy's mark.
    entries: Vec<NamedEntry<()>>,
    free: Vec<u32>,
}

impl<P: Eviction> Store<P> {
    /// As in a router, a slot's number may be larger than the number of entries.
    fn new(policy: P, entries: u32) -> Self {
        let free = (0..entries).map(|number| 3 * number).collect();
        Store { policy, slots: HashMap::new(), entries: vec![NamedEntry::default(); 3 * entries as usize], free }
    }

    /// An Interest and, unless it is a hit, its Data. The Content Store of a router makes the same calls.
    fn is_hit(&mut self, hash: u64) -> bool {
        self.policy.request(hash);
        if let Some(&slot) = self.slots.get(&hash) {
            self.policy.hit(&mut self.entries, slot);
            return true;
        }
        let newcomer = Newcomer { hash, account_bytes: 1, requests: 1, ..Newcomer::default() };
        if self.free.is_empty() && !self.policy.admits(&mut self.entries, &newcomer) {
            return false;
        }
        self.policy.arriving(&newcomer);
        if self.free.is_empty() {
            let asked = self.policy.victim(&mut self.entries, &newcomer);
            let victim = self.policy.evict(&mut self.entries, &newcomer).expect("a full store has a victim");
            assert_eq!(asked, Some(victim), "nothing changed, so the answer is the same");
            self.slots.remove(&self.entries.hash(victim));
            self.free.push(victim);
        }
        let slot = self.free.pop().expect("room");
        self.entries[slot as usize] = NamedEntry::new(hash, ());
        self.slots.insert(hash, slot);
        self.policy.insert(&mut self.entries, slot, &newcomer);
        false
    }
}

/// The share of requests that hit.
fn hit_ratio(policy: impl Eviction, entries: u32, requests: &[u64]) -> f64 {
    let mut store = Store::new(policy, entries);
    requests.iter().filter(|&&hash| store.is_hit(hash)).count() as f64 / requests.len() as f64
}

/// `lru`, the default, and ours in a store for this share of the objects.
fn compare(requests: &[u64], percent: usize) -> io::Result<[f64; 3]> {
    let objects = requests.iter().collect::<HashSet<_>>().len();
    let entries = (objects * percent / 100).max(1) as u32;
    Ok([
        hit_ratio(Lru::new(entries, PageSize::default())?, entries, requests),
        hit_ratio(AdaptiveWindow::new(entries, PageSize::default())?, entries, requests),
        hit_ratio(TwoQueues::new(entries)?, entries, requests),
    ])
}
// end

fn invented() -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(1);
    let popular = |random: &mut fastrand::Rng| (10_000.0 * random.f64().powi(3)) as u64;
    let mut requests = Vec::new();
    for scan in 0..20_u64 {
        requests.extend((0..10_000).map(|_| popular(&mut random)));
        requests.extend((0..1_000).map(|object| 1_000_000 * (scan + 1) + object));
    }
    requests
}

fn hash(line: impl std::hash::Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(line)
}

fn main() -> io::Result<()> {
    let requests: Vec<u64> = match std::env::args().nth(1) {
        Some(trace) => {
            let lines = std::fs::read_to_string(&trace).map_err(|why| io::Error::other(format!("{trace}: {why}")))?;
            lines.lines().map(hash).collect()
        }
        None => invented().into_iter().map(hash).collect(),
    };
    println!("size of the store      lru  adaptive-window  two-queues");
    for percent in [1, 10, 30] {
        let [lru, default, ours] = compare(&requests, percent)?.map(|ratio| 100.0 * ratio);
        println!("{percent:>4} % of objects  {lru:>5.1} %          {default:>5.1} %     {ours:>5.1} %");
    }
    Ok(())
}

/// What `TwoQueues` is for; a policy of yours promises something else.
#[test]
fn a_scan_does_not_wash_out_what_is_popular() -> io::Result<()> {
    let requests: Vec<u64> = invented().into_iter().map(hash).collect();
    for percent in [1, 10] {
        let [lru, _, ours] = compare(&requests, percent)?;
        assert!(ours > lru + 0.03, "{percent} %: {ours}, lru {lru}");
    }
    Ok(())
}
