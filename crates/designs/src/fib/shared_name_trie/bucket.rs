//! Buckets: how do several threads add edges to one chain of lines?
//!
//! Source: NameTrie18 §IV-B (embedded arrays instead of lists); the lock in the bucket itself is ours.
//!
//! ```text
//! line:  | key u64 × 5 | value u32 × 5 | following line u31, lock |
//!        0             40              60                        64
//! ```
//!
//! The first line of a chain has the lock of the chain: the uppermost bit of its last word. A thread that adds an edge
//! takes the lock, walks to the end of the chain, and writes the value before the key. So two threads never take one
//! place, and a key is there once. A thread that only asks takes no lock: it sees an edge whole or not at all, because
//! the key is published last. Edges do not leave a chain while threads add.
//!
//! Cost: the lock is in the line that is written anyway. A lock is held for the walk through one chain (1.3 lines), and
//! a caller brings the line that may be needed, so nothing is allocated meanwhile. A thread that waits gives the
//! processor away after [`SPINS`] attempts.
//! Limits: 2³¹ − 1 lines besides the first ones. Writers: any number. The loom models in `crates/tables/loom` check
//! this file.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Edges of a line.
pub(super) const EDGES: usize = 5;
/// In the last word of a chain's first line: a thread adds to the chain.
const LOCKED: u32 = 1 << 31;
/// Attempts to take a lock before the processor is given away.
#[cfg(not(loom))]
const SPINS: u32 = 64;

/// Some edges of a chain.
#[cfg_attr(not(loom), derive(bytemuck::Zeroable))]
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(64))]
pub(super) struct Line {
    /// 0: an empty place; the places behind it are empty, too.
    keys: [AtomicU64; EDGES],
    values: [AtomicU32; EDGES],
    /// The line that follows and 1 (0: none), and [`LOCKED`].
    following: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Line>() == 64);

/// The lines of all chains.
#[derive(Clone, Copy)]
pub(super) struct Chains<'l> {
    /// Element `chain`: its first line.
    pub(super) first: &'l [Line],
    /// The lines that follow others.
    pub(super) further: &'l [Line],
}

/// What became of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entered {
    /// What the edge led to before; `None`: it is new.
    pub(super) before: Option<u32>,
    /// The spare line belongs to the chain now.
    pub(super) took_spare: bool,
}

impl<'l> Chains<'l> {
    /// What the edge leads to.
    #[inline]
    pub(super) fn get(self, chain: usize, key: u64) -> Option<u32> {
        let mut line = &self.first[chain];
        loop {
            for (found, value) in line.keys.iter().zip(&line.values) {
                match found.load(Ordering::Acquire) {
                    0 => return None,
                    found if found == key => return Some(value.load(Ordering::Relaxed)),
                    _ => {}
                }
            }
            line = self.behind(line.following.load(Ordering::Acquire))?;
        }
    }

    /// Adds an edge. If it is there, it stays as it is or, with `replaces`, leads to `value` from now on. `spare` is an
    /// empty line that nobody else has.
    #[inline]
    pub(super) fn enter(self, chain: usize, (key, value): (u64, u32), replaces: bool, spare: u32) -> Entered {
        let first = &self.first[chain];
        let following = lock(&first.following);
        let (entered, following) = self.enter_locked(first, following, (key, value), (replaces, spare));
        first.following.store(following, Ordering::Release);
        entered
    }

    /// As [`Chains::enter`], with the chain's lock; gives what the first line's last word becomes, too.
    #[inline]
    fn enter_locked(
        self,
        first: &'l Line,
        following: u32,
        (key, value): (u64, u32),
        (replaces, spare): (bool, u32),
    ) -> (Entered, u32) {
        let (mut line, mut next) = (first, following);
        loop {
            for (found, of_found) in line.keys.iter().zip(&line.values) {
                let seen = found.load(Ordering::Relaxed);
                if seen == key {
                    let before = if replaces {
                        of_found.swap(value, Ordering::Relaxed)
                    } else {
                        of_found.load(Ordering::Relaxed)
                    };
                    return (Entered { before: Some(before), took_spare: false }, following);
                }
                if seen == 0 {
                    of_found.store(value, Ordering::Relaxed);
                    found.store(key, Ordering::Release);
                    return (Entered { before: None, took_spare: false }, following);
                }
            }
            let Some(behind) = self.behind(next) else { break };
            (line, next) = (behind, behind.following.load(Ordering::Relaxed));
        }
        let fresh = &self.further[spare as usize];
        fresh.values[0].store(value, Ordering::Relaxed);
        fresh.keys[0].store(key, Ordering::Release);
        let entered = Entered { before: None, took_spare: true };
        if std::ptr::eq(line, first) {
            return (entered, spare + 1);
        }
        line.following.store(spare + 1, Ordering::Release);
        (entered, following)
    }

    /// Empties a chain: gives its edges to `edge`, and its lines but the first to `line`. No other thread may use the
    /// chain meanwhile.
    pub(super) fn take(self, chain: usize, mut edge: impl FnMut(u64, u32), mut line: impl FnMut(u32)) {
        let (mut at, mut number) = (&self.first[chain], 0);
        loop {
            for (key, value) in at.keys.iter().zip(&at.values) {
                match key.load(Ordering::Relaxed) {
                    0 => break,
                    taken => edge(taken, value.load(Ordering::Relaxed)),
                }
                key.store(0, Ordering::Relaxed);
            }
            let next = at.following.load(Ordering::Relaxed);
            at.following.store(0, Ordering::Relaxed);
            if number != 0 {
                line(number - 1);
            }
            let Some(behind) = self.behind(next) else { return };
            (at, number) = (behind, next & !LOCKED);
        }
    }

    /// The line that the last word of the one before it names.
    #[inline]
    fn behind(self, following: u32) -> Option<&'l Line> {
        (following & !LOCKED).checked_sub(1).map(|number| &self.further[number as usize])
    }
}

/// Takes a chain's lock; gives the word without it.
#[inline]
fn lock(word: &AtomicU32) -> u32 {
    let mut attempts = 0;
    loop {
        let free = word.load(Ordering::Relaxed) & !LOCKED;
        if word.compare_exchange_weak(free, free | LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return free;
        }
        attempts += 1;
        wait(attempts);
    }
}

#[cfg(not(loom))]
fn wait(attempts: u32) {
    if attempts.is_multiple_of(SPINS) { std::thread::yield_now() } else { std::hint::spin_loop() }
}

#[cfg(loom)]
fn wait(_attempts: u32) {
    loom::thread::yield_now();
}
