//! Pool: how much of something does each holder have, and may it take more?
//!
//! Source: dynamic thresholds for queues that share a memory (Choudhury and Hahne 1998). A holder may take more while
//!
//! ```text
//!   held < share / (1 − share) · free
//! ```
//!
//! With a share of 80 %, one holder alone has at most four fifths of the pool. Two holders that take all they can get
//! have 4/9 each, and n such holders have 4/(1 + 4 n) each. A part of 1/(1 + 4 n) stays free for holders that have
//! little. While there is room for all, no holder meets its limit. A group of holders has the limit of one holder.
//!
//! What is *free* depends on the class. A reserve is the part that only its class, and classes above it, may use:
//!
//! ```text
//!   │ used by anyone │ free for remote holders │ reserve of local ones │ reserve of management │
//!   └ free for local holders: both free parts  ┘                       └ management: all three ┘
//! ```
//!
//! A reserve shrinks by what its class has already taken.
//!
//! ```text
//!   line of a holder   0 ─ 8 held │ 8 ─ 12 refused │ 12 ─ 14 group
//! ```
//!
//! A line keeps its group while it holds something, even if its number goes to another holder meanwhile. So the count
//! of a group always equals the sum of its lines.
//!
//! Cost: an operation touches one cache line of the holder, and one of its group if there is one. Memory: 64 KiB of
//! address space for lines (unused ones take no memory), and 8 KiB for groups. Writer: one thread, without locks. Any
//! thread can read a pool by its [`PoolReader`], because the lines are atomics that only the writer stores to.
//!
//! Limits: a request is refused either because the pool is full for its class, or because the holder has its share. The
//! pool counts both refusals, in total and for each holder.

use crate::holder::Class;
use crate::holder_table::{GROUPS, Groups, HolderId, IDS};
use bytemuck::{Zeroable, allocation::zeroed_box};
use std::sync::{
    Arc,
    atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed},
};

namewire_packet::reasons! {
    /// Why a holder may not take more of a pool.
    pub enum Refusal {
        /// The holder, or its group, has its share.
        ShareUsed = "share-used",
        /// Nothing is free for holders of its class.
        PoolFull = "pool-full",
    }
}

/// What a pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Its name in reports.
    pub name: &'static str,
    /// How much there is, of whatever the pool counts.
    pub capacity: u64,
    /// The part that one holder may have if no other has any, in percent; 100 is no limit.
    pub share_percent: u32,
    /// What management can be sure of.
    pub management_reserve: u64,
    /// What local holders together can be sure of.
    pub local_reserve: u64,
}

/// What one holder has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The holder.
    pub holder: HolderId,
    /// What it has.
    pub held: u64,
    /// How often it was refused more; stops at the largest number of 32 bits.
    pub refused: u64,
}

/// See the module documentation.
#[derive(Debug)]
pub struct Pool {
    ledger: Arc<Ledger>,
    groups: Groups,
    of_groups: Box<[u64]>,
    by_class: [OfClass; Class::ALL.len()],
    /// The most that a group ever had.
    group_peak: u64,
}

/// The part that other threads may read.
#[derive(Debug)]
struct Ledger {
    config: PoolConfig,
    lines: Box<[Line; IDS]>,
    refused: [AtomicU64; Refusal::COUNT],
    displaced: AtomicU64,
}

#[derive(Debug, Zeroable)]
#[repr(C)]
struct Line {
    held: AtomicU64,
    refused: AtomicU32,
    group: AtomicU16,
}

const _: () = assert!(size_of::<Line>() == 16);

/// The holders of a class.
#[derive(Clone, Copy, Debug, Default)]
struct OfClass {
    /// What they have together.
    used: u64,
    /// What the heaviest had when it was chosen or grew last: no other holder of the class has more.
    peak: u64,
    /// A holder that has at least half of what any other has.
    heaviest: HolderId,
}

impl Pool {
    /// An empty pool.
    pub fn new(config: PoolConfig, groups: &Groups) -> Self {
        let lines = zeroed_box();
        let (refused, displaced) = Default::default();
        Pool {
            ledger: Arc::new(Ledger { config, lines, refused, displaced }),
            groups: groups.clone(),
            of_groups: vec![0; GROUPS].into(),
            by_class: Default::default(),
            group_peak: 0,
        }
    }

    /// What the pool is.
    pub fn config(&self) -> &PoolConfig {
        &self.ledger.config
    }

    /// Access for other threads.
    pub fn reader(&self) -> PoolReader {
        PoolReader(Arc::clone(&self.ledger))
    }

    /// What all holders have.
    #[inline]
    pub fn used(&self) -> u64 {
        self.by_class.iter().map(|class| class.used).sum()
    }

    /// What a holder has.
    #[inline]
    pub fn held(&self, holder: HolderId) -> u64 {
        self.ledger.line(holder).held.load(Relaxed)
    }

    /// What is free for holders of a class.
    #[inline]
    pub fn free(&self, class: Class) -> u64 {
        let PoolConfig { capacity, management_reserve, local_reserve, .. } = self.ledger.config;
        let [management, local, remote] = self.by_class.map(|class| class.used);
        let reserved = match class {
            Class::Management => 0,
            Class::Local => management_reserve.saturating_sub(management),
            Class::Remote => management_reserve.saturating_sub(management) + local_reserve.saturating_sub(local),
        };
        capacity.saturating_sub(management + local + remote + reserved)
    }

    /// Whether a holder may take `amount` more. Counts nothing.
    ///
    /// # Errors
    /// Why it may not. A holder below its limit may exceed it by one amount; the capacity is never exceeded.
    #[inline]
    pub fn may_take(&self, holder: HolderId, amount: u64) -> Result<(), Refusal> {
        let free = self.free(holder.class());
        if amount > free {
            return Err(Refusal::PoolFull);
        }
        let share = u64::from(self.ledger.config.share_percent);
        if self.weight(holder) * (100 - share) < share * free { Ok(()) } else { Err(Refusal::ShareUsed) }
    }

    /// How much a holder may take until it meets its limit, as things are now.
    pub fn room(&self, holder: HolderId) -> u64 {
        let free = self.free(holder.class());
        let share = u64::from(self.ledger.config.share_percent);
        let limit = if share < 100 { (share * free).div_ceil(100 - share) } else { u64::MAX };
        limit.saturating_sub(self.weight(holder)).min(free)
    }

    /// Takes `amount` for a holder.
    ///
    /// # Errors
    /// Why it may not; that is counted.
    #[inline]
    pub fn try_take(&mut self, holder: HolderId, amount: u64) -> Result<(), Refusal> {
        match self.may_take(holder, amount) {
            Ok(()) => {
                self.take(holder, amount);
                Ok(())
            }
            Err(refusal) => {
                self.count_refusal(holder, refusal);
                Err(refusal)
            }
        }
    }

    /// Counts `amount` for a holder without asking: for what is taken already.
    #[inline(always)]
    pub fn take(&mut self, holder: HolderId, amount: u64) {
        let line = self.ledger.line(holder);
        let before = line.held.load(Relaxed);
        if before == 0 {
            line.group.store(self.groups.of(holder), Relaxed);
        }
        let held = before + amount;
        line.held.store(held, Relaxed);
        let (group, class) = (line.group.load(Relaxed), holder.class() as usize);
        if group != 0 {
            let of_group = &mut self.of_groups[usize::from(group)];
            *of_group += amount;
            self.group_peak = self.group_peak.max(*of_group);
        }
        let class = &mut self.by_class[class];
        class.used += amount;
        if held > class.peak {
            (class.peak, class.heaviest) = (held, holder);
        }
    }

    /// Gives back `amount`, which the holder must have.
    #[inline(always)]
    pub fn give_back(&mut self, holder: HolderId, amount: u64) {
        let line = self.ledger.line(holder);
        let before = line.held.load(Relaxed);
        debug_assert!(before >= amount, "gives back {amount} of {before}");
        let amount = amount.min(before);
        line.held.store(before - amount, Relaxed);
        let group = line.group.load(Relaxed);
        if group != 0 {
            self.of_groups[usize::from(group)] -= amount;
        }
        self.by_class[holder.class() as usize].used -= amount;
    }

    /// Counts a refusal that the caller decided by [`Pool::may_take`] or [`Pool::room`].
    #[cold]
    pub fn count_refusal(&self, holder: HolderId, refusal: Refusal) {
        let count = &self.ledger.refused[refusal as usize];
        count.store(count.load(Relaxed) + 1, Relaxed);
        let of_holder = &self.ledger.line(holder).refused;
        of_holder.store(of_holder.load(Relaxed).saturating_add(1), Relaxed);
    }

    /// Counts what a holder lost to another one, because the pool was full.
    #[cold]
    pub fn count_displaced(&self, amount: u64) {
        let count = &self.ledger.displaced;
        count.store(count.load(Relaxed) + amount, Relaxed);
    }

    /// The holder that must give something up if `holder` needs more and nothing is free for its class. It is one of
    /// the heaviest of the classes that have no more rights, and has more than `holder`. `None` if there is none: then
    /// it is `holder` itself that has too much.
    ///
    /// Cost: constant, except when the heaviest holder has lost half of what it had; then all lines are visited.
    pub fn heaviest_beside(&mut self, holder: HolderId) -> Option<HolderId> {
        let classes = match holder.class() {
            // Of remote holders, even a light one goes before a local one does.
            Class::Management | Class::Local => [Class::Remote, Class::Local].as_slice(),
            Class::Remote => &[Class::Remote],
        };
        let least = self.held(holder);
        classes.iter().find_map(|&class| {
            let heaviest = self.heaviest(class)?;
            let counts = if class > holder.class() { self.held(heaviest) > 0 } else { self.held(heaviest) > least };
            (counts && heaviest != holder).then_some(heaviest)
        })
    }

    /// A holder of the class that has at least half of what the heaviest has; `None` if none has anything.
    pub fn heaviest(&mut self, class: Class) -> Option<HolderId> {
        let OfClass { peak, heaviest, .. } = self.by_class[class as usize];
        if self.held(heaviest) * 2 < peak {
            let of_class = self.ledger.holdings().filter(|holding| holding.holder.class() == class);
            let found = of_class.max_by_key(|holding| holding.held);
            let (peak, heaviest) = found.map_or_else(Default::default, |found| (found.held, found.holder));
            let known = &mut self.by_class[class as usize];
            (known.peak, known.heaviest) = (peak, heaviest);
        }
        let holder = self.by_class[class as usize].heaviest;
        (holder.class() == class && self.held(holder) > 0).then_some(holder)
    }

    /// Whether two holders belong to one group.
    pub fn are_together(&self, one: HolderId, other: HolderId) -> bool {
        let group = self.groups.of(one);
        group != 0 && group == self.groups.of(other)
    }

    /// Whether some holder of this class, or some group, may weigh more than this. False: none does. True: nearly
    /// always one does; a group may have lost what it had.
    pub fn may_any_weigh(&mut self, class: Class, more_than: u64) -> bool {
        let group = class == Class::Remote && self.group_peak > more_than;
        group || self.heaviest(class).is_some_and(|heaviest| 2 * self.held(heaviest) > more_than)
    }

    /// What the limit compares: what the holder has, or its group if that has more.
    #[inline]
    pub fn weight(&self, holder: HolderId) -> u64 {
        let line = self.ledger.line(holder);
        let held = line.held.load(Relaxed);
        let group = if held > 0 { line.group.load(Relaxed) } else { self.groups.of(holder) };
        if group == 0 { held } else { held.max(self.of_groups[usize::from(group)]) }
    }
}

impl Ledger {
    /// N.B. The remainder changes no number; without it, every access would be checked.
    #[inline(always)]
    fn line(&self, holder: HolderId) -> &Line {
        &self.lines[holder.index() % IDS]
    }

    fn held(&self, holder: HolderId) -> u64 {
        self.line(holder).held.load(Relaxed)
    }

    /// The holders that have something.
    fn holdings(&self) -> impl Iterator<Item = Holding> + '_ {
        self.lines.iter().enumerate().filter_map(|(index, line)| {
            let (held, refused) = (line.held.load(Relaxed), u64::from(line.refused.load(Relaxed)));
            (held > 0 || refused > 0).then_some(Holding { holder: HolderId::from_index(index)?, held, refused })
        })
    }
}

/// A pool as any thread may see it: single numbers are right, sums may lag.
#[derive(Clone, Debug)]
pub struct PoolReader(Arc<Ledger>);

impl PoolReader {
    /// What the pool is.
    pub fn config(&self) -> &PoolConfig {
        &self.0.config
    }

    /// The holders that have something, or were refused something.
    pub fn holdings(&self) -> impl Iterator<Item = Holding> + '_ {
        self.0.holdings()
    }

    /// What a holder has.
    pub fn held(&self, holder: HolderId) -> u64 {
        self.0.held(holder)
    }

    /// How often more was refused, by reason (`Refusal as usize`).
    pub fn refused(&self) -> [u64; Refusal::COUNT] {
        std::array::from_fn(|reason| self.0.refused[reason].load(Relaxed))
    }

    /// What holders lost to others because the pool was full.
    pub fn displaced(&self) -> u64 {
        self.0.displaced.load(Relaxed)
    }
}
