//! Fingerprint-only PIT: which ports have an Interest pending for a name of this fingerprint?
//!
//! Source: Yuan15 ch. 5 (Fig. 5.3, Algorithm 1), the PIT of core routers. Symbols: N =
//! [`FingerprintPitConfig::capacity_entries`], d = *subtables*, B = buckets of a subtable, E = 8 = entries of a
//! bucket, w = *fingerprint bits*, s = *segments*, n = ports, t = 10 bits of expiry, T_exp = an Interest's
//! lifetime, *occupy* and *collision* bits = occupied, collided.
//!
//! ```text
//! hash ─► class ─┬─► subtable 0, bucket b₀ │ occupied, collided, fingerprint f₀, expiry, faces │ × 8   1 line
//!                └─► subtable 1, bucket b₁ │ the same with f₁                                  │ × 8   1 line
//!                    overflow table, if bucket b₀ says that it may be there
//! ```
//!
//! The table stores no names. If an Interest's class has an entry, the entry may belong to the same name or
//! to another one; the table cannot tell. So it never aggregates the Interest. Instead it marks the entry
//! *collided*, and the entry keeps the ports of both. Data removes an entry that is not marked. A marked
//! entry stays until it expires, even if Data arrives several times, so that each requester may get its own
//! Data. A caller that accepts false positives aggregates all the same
//! ([`FingerprintPit::insert_aggregating`], §5.7.1).
//!
//! Parts: [`class`] has the place of a class, [`bucket`] the layout of a bucket, [`ticks`] times in 10
//! bits, [`face_list`] and [`face_sets`] more than 16 ports, [`overflow`] names whose buckets are full,
//! [`sweep`] background work, [`insertion`] Algorithm 1.
//!
//! Cost: an operation touches d lines; for Data it touches d·s. The lines do not depend on each other and
//! can be fetched ahead ([`FingerprintPit::prefetch`]). Bytes: each of the N entries takes 8; the overflow
//! table adds its own. Limits: N, the overflow table, 16·s or 256 ports, lifetimes up to
//! [`MAX_LIFETIME_NS`]. Full: an insertion gets a named refusal. Writers: the owner.
//!
//! Deviations:
//! - A bucket is a line of 64 bytes, not 44 bytes without a gap (N.B. at [`bucket`]).
//! - N is rounded up so that the number of buckets of a subtable is a power of two, which permutations of
//!   bits need.
//! - An Interest with a shorter lifetime does not shorten the lifetime of its entry.
//! - An Interest looks for its class only in the segment of its port, Data in all segments (§5.4.3). So
//!   entries of one class in two segments collide unnoticed, and in the paper Data removes both. Here Data
//!   that finds entries of its class in more than one segment marks them, and they stay.

mod bucket;
mod class;
mod config;
mod face_list;
mod face_sets;
mod insertion;
mod overflow;
mod port_set;
mod sweep;
mod ticks;

pub use config::{
    FaceList, FingerprintPitConfig, FingerprintPitCounters, FingerprintPitRefusal, MAX_OVERFLOW_ENTRIES, MAX_SEGMENTS,
};
pub use port_set::{MAX_PORTS, PortSet};
pub use ticks::MAX_LIFETIME_NS;

use crate::pages::PageArray;
use crate::prefetch::prefetch;
use bucket::{BUCKET_ENTRIES, Bucket};
use class::{Class, Shape};
use face_list::FaceLists;
use overflow::Overflow;
use std::io;
use sweep::Sweep;
use ticks::tick_at;

/// What happened to an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It got a new entry.
    New,
    /// Its class had an entry, which now has its port too. The Interest must be forwarded all the same.
    Collided,
    /// Its class had an entry, and it is taken for the same name: only by
    /// [`FingerprintPit::insert_aggregating`].
    Aggregated,
}

/// What Data found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Satisfied {
    /// The ports that asked for the name, without ports whose face is closed.
    pub ports: PortSet,
    /// Whether an entry was or now is marked collided. Then it is still there, and the Data must say so to
    /// the next router (§5.5.1).
    pub collided: bool,
    /// Whether an entry was marked before: then more than one Interest came, as far as this router knows.
    pub was_collided: bool,
}

/// The table.
pub struct FingerprintPit {
    buckets: PageArray<Bucket>,
    shape: Shape,
    faces: FaceLists,
    overflow: Overflow,
    /// The latest time that a call gave: time never runs backwards in here.
    latest_tick: u64,
    /// Entries of buckets that are occupied.
    occupied: u64,
    sweep: Sweep,
    counters: FingerprintPitCounters,
}

/// The place of a live entry.
enum Found {
    Bucket { bucket: usize, entry: usize },
    Overflow { place: usize },
}

impl FingerprintPit {
    /// An empty table. `seed` chooses the permutations. If the hash is not keyed, `seed` must be unknown to
    /// anyone who chooses names.
    ///
    /// # Errors
    /// If a size is outside of its range, or the kernel does not map the memory.
    pub fn new(config: FingerprintPitConfig, seed: u64) -> io::Result<Self> {
        let FingerprintPitConfig { segments, fingerprint_bits, overflow_entries, pages, .. } = config;
        let in_range = matches!(config.subtables, 2 | 4)
            && (1..=MAX_SEGMENTS).contains(&segments)
            && (1..=16).contains(&fingerprint_bits)
            && overflow_entries <= MAX_OVERFLOW_ENTRIES;
        let shape = in_range.then(|| {
            let bits = u32::from(fingerprint_bits) + segments.next_power_of_two().ilog2();
            Shape::new(config.capacity_entries, config.subtables.into(), segments.into(), bits, seed)
        });
        let shape = shape.flatten().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self {
            buckets: PageArray::zeroed(shape.buckets(), pages)?,
            faces: FaceLists::new(config.faces, &shape, pages)?,
            overflow: Overflow::new(overflow_entries, pages)?,
            shape,
            latest_tick: 0,
            occupied: 0,
            sweep: Sweep::default(),
            counters: FingerprintPitCounters::default(),
        })
    }

    /// Begins to fetch the lines that Data of this hash reads: the bucket of every subtable of every
    /// segment.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        for segment in 0..self.shape.segments() {
            self.prefetch_segment(hash, segment);
        }
    }

    /// Begins to fetch the lines that an Interest of this hash from this port reads.
    #[inline]
    pub fn prefetch_for_port(&self, hash: u64, port: u16) {
        self.prefetch_segment(hash, self.shape.segment_of(port));
    }

    #[inline(always)]
    fn prefetch_segment(&self, hash: u64, segment: usize) {
        let class = self.shape.class(hash);
        for subtable in 0..self.shape.subtables() {
            prefetch(&self.buckets[self.shape.place(class, segment, subtable).bucket]);
        }
    }

    /// Records an Interest from `port` that lives until `expires_ns`; the lifetime is kept within
    /// [`MAX_LIFETIME_NS`]. Whatever the answer, which is never [`Inserted::Aggregated`], it must be
    /// forwarded. After a refusal it must not: its Data would go to no port.
    ///
    /// # Errors
    /// The refusal's name. Nothing was recorded.
    #[inline]
    pub fn insert(
        &mut self,
        hash: u64,
        port: u16,
        now_ns: u64,
        expires_ns: u64,
    ) -> Result<Inserted, FingerprintPitRefusal> {
        self.request(hash, port, now_ns, expires_ns, true)
    }

    /// [`FingerprintPit::insert`] for a caller that allows false positives (§5.7.1). If the Interest's
    /// class has an entry, the Interest joins it as [`Inserted::Aggregated`] and must not be forwarded. It
    /// does not prolong the entry, which lives as long as the Interest that was forwarded. Otherwise the
    /// entry of a lost Interest could outlive every consumer that asks again. This call marks no entry
    /// collided.
    ///
    /// [`Inserted::Collided`], which must be forwarded, means one of two things. The entry has the port
    /// already: the Interest is a repeated one. Or the entry is marked, and its Data may have been here
    /// before.
    ///
    /// # Errors
    /// As [`FingerprintPit::insert`].
    #[inline]
    pub fn insert_aggregating(
        &mut self,
        hash: u64,
        port: u16,
        now_ns: u64,
        expires_ns: u64,
    ) -> Result<Inserted, FingerprintPitRefusal> {
        self.request(hash, port, now_ns, expires_ns, false)
    }

    /// Data arrived: returns the ports to send it to, if any asked. Its entry is removed unless one of
    /// three holds: it is marked collided; the Data says that it was `collided_upstream`; another segment
    /// has an entry too. The second and third mark the entries.
    #[inline]
    pub fn satisfy(&mut self, hash: u64, now_ns: u64, collided_upstream: bool) -> Option<Satisfied> {
        self.latest_tick = self.latest_tick.max(tick_at(now_ns));
        let class = self.shape.class(hash);
        let (mut ports, mut stays, mut was_collided) = (PortSet::EMPTY, collided_upstream, false);
        // Taken last, when it is known whether another segment has one too.
        let mut found_last = None;
        for segment in 0..self.shape.segments() {
            let Some(found) = self.find(segment, class, self.latest_tick) else { continue };
            if let Some((before, found)) = found_last.replace((segment, found)) {
                stays = true;
                was_collided |= self.take(before, found, stays, &mut ports);
            }
        }
        let (segment, found) = found_last?;
        was_collided |= self.take(segment, found, stays, &mut ports);
        Some(Satisfied { ports, collided: stays || was_collided, was_collided })
    }

    /// What [`FingerprintPit::satisfy`] would find. Changes nothing.
    #[inline]
    pub fn lookup(&self, hash: u64, now_ns: u64) -> Option<Satisfied> {
        let now_tick = self.latest_tick.max(tick_at(now_ns));
        let class = self.shape.class(hash);
        let (mut ports, mut entries, mut was_collided) = (PortSet::EMPTY, 0, false);
        for segment in 0..self.shape.segments() {
            let Some(found) = self.find(segment, class, now_tick) else { continue };
            let (list, is_collided) = match found {
                Found::Bucket { bucket, entry } => {
                    let bucket = &self.buckets[bucket];
                    (bucket.faces(entry), bucket.is_collided(entry))
                }
                Found::Overflow { place } => {
                    let entry = self.overflow.entry(place);
                    (entry.faces, entry.collided != 0)
                }
            };
            entries += 1;
            was_collided |= is_collided;
            self.faces.collect(list, segment, &mut ports);
        }
        (entries > 0).then_some(Satisfied { ports, collided: was_collided || entries > 1, was_collided })
    }

    /// Entries, including those in the overflow table and expired ones that were not yet noticed.
    pub fn occupied(&self) -> u64 {
        self.occupied + self.overflow.len() as u64
    }

    /// N: entries of all buckets.
    pub fn capacity_entries(&self) -> u64 {
        (self.shape.buckets() * BUCKET_ENTRIES) as u64
    }

    /// Entries in the overflow table.
    pub fn overflow_len(&self) -> usize {
        self.overflow.len()
    }

    /// Ports are numbered below this.
    pub fn ports(&self) -> u16 {
        self.faces.ports()
    }

    /// How many upper bits of a hash the table reads: it cannot tell apart names that agree in them.
    pub fn class_bits(&self) -> u32 {
        self.shape.class_bits()
    }

    /// The counters since the table was made.
    pub fn counters(&self) -> FingerprintPitCounters {
        self.counters
    }

    /// Bytes of memory, as allocated.
    pub fn bytes(&self) -> usize {
        self.buckets.mapped_bytes() + self.overflow.bytes() + self.faces.bytes()
    }

    /// The live entry of this class.
    #[inline(always)]
    fn find(&self, segment: usize, class: Class, now_tick: u64) -> Option<Found> {
        // Does not stop at the first subtable that has it: a branch on that could not be predicted.
        let mut found = (0, 0);
        for subtable in 0..self.shape.subtables() {
            let place = self.shape.place(class, segment, subtable);
            let equal = self.buckets[place.bucket].find(place.fingerprint);
            found = if equal != 0 { (place.bucket, equal) } else { found };
        }
        let (bucket, equal) = found;
        if equal != 0 {
            let entry = equal.trailing_zeros() as usize;
            let is_live = self.buckets[bucket].is_live(entry, now_tick as u32);
            return is_live.then_some(Found::Bucket { bucket, entry });
        }
        let first = self.shape.place(class, segment, 0);
        if !self.buckets[first.bucket].may_have_overflowed(class) {
            return None;
        }
        let place = self.overflow.find(segment, class)?;
        (self.overflow.entry(place).expires_tick > now_tick).then_some(Found::Overflow { place })
    }

    /// Adds the ports of an entry. The entry stays if it is marked collided or gets marked. Returns whether
    /// it was.
    #[inline(always)]
    fn take(&mut self, segment: usize, found: Found, mark_collided: bool, ports: &mut PortSet) -> bool {
        match found {
            Found::Bucket { bucket, entry } => {
                let bucket = &mut self.buckets[bucket];
                let list = bucket.faces(entry);
                self.faces.collect(list, segment, ports);
                let was_collided = bucket.is_collided(entry);
                if mark_collided || was_collided {
                    bucket.set_collided(entry);
                    return was_collided;
                }
                bucket.vacate(entry);
                self.faces.release(list);
                self.occupied -= 1;
            }
            Found::Overflow { place } => {
                let entry = self.overflow.entry_mut(place);
                self.faces.collect(entry.faces, segment, ports);
                let was_collided = entry.collided != 0;
                if mark_collided || was_collided {
                    entry.collided = 1;
                    return was_collided;
                }
                self.remove_overflowed(place);
            }
        }
        false
    }

    /// Vacates the expired entries of this bucket.
    #[inline(always)]
    fn reset_expired(&mut self, at: usize, now_tick: u32) {
        if self.buckets[at].is_due(now_tick) {
            self.reset_due(at, now_tick);
        }
    }

    #[cold]
    fn reset_due(&mut self, at: usize, now_tick: u32) {
        let bucket = &mut self.buckets[at];
        let expired = bucket.expired(now_tick);
        for entry in (0..BUCKET_ENTRIES).filter(|entry| expired >> entry & 1 != 0) {
            self.faces.release(bucket.faces(entry));
        }
        bucket.reset(expired, now_tick);
        self.occupied -= u64::from(expired.count_ones());
        self.counters.expired_lazily += u64::from(expired.count_ones());
    }

    /// Removes an expired entry of the overflow table.
    fn expire_overflowed(&mut self, place: usize) {
        self.counters.expired_lazily += 1;
        self.remove_overflowed(place);
    }

    /// Removes an entry of the overflow table, and its count in its bucket.
    fn remove_overflowed(&mut self, place: usize) {
        let entry = *self.overflow.entry(place);
        let (segment, class) = entry.class();
        self.overflow.remove(place);
        self.faces.release(entry.faces);
        self.buckets[self.shape.place(class, segment, 0).bucket].uncount_overflowed(class);
    }
}
