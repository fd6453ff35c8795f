//! Insertion: gives an Interest an entry.
//!
//! Source: Yuan15 Algorithm 1, in all d subtables (§5.4.2). The algorithm vacates expired entries of each
//! bucket that it visits. If the class has an entry, this entry gains the port. Otherwise the least loaded
//! bucket gets a new entry. If all buckets are full, the overflow table gets it.

use super::bucket::BUCKET_ENTRIES;
use super::class::{Class, Place};
use super::config::FingerprintPitRefusal;
use super::overflow::RECLAIMED_PER_INSERT;
use super::ticks::{lifetime_ticks, tick_at};
use super::{FingerprintPit, Inserted};

impl FingerprintPit {
    /// Algorithm 1, in all subtables.
    #[inline(always)]
    pub(super) fn request(
        &mut self,
        hash: u64,
        port: u16,
        now_ns: u64,
        expires_ns: u64,
        marks_collided: bool,
    ) -> Result<Inserted, FingerprintPitRefusal> {
        self.latest_tick = self.latest_tick.max(tick_at(now_ns));
        let answer = self.check_port(port).and_then(|()| {
            let segment = self.shape.segment_of(port);
            let class = self.shape.class(hash);
            self.request_in(segment, class, port, lifetime_ticks(self.latest_tick, expires_ns), marks_collided)
        });
        match answer {
            Ok(Inserted::Collided | Inserted::Aggregated) => self.counters.collisions += 1,
            Ok(Inserted::New) => {}
            Err(_) => self.counters.refused += 1,
        }
        answer
    }

    #[inline(always)]
    fn request_in(
        &mut self,
        segment: usize,
        class: Class,
        port: u16,
        lifetime_ticks: u16,
        marks_collided: bool,
    ) -> Result<Inserted, FingerprintPitRefusal> {
        let now_tick = self.latest_tick as u32;
        let first = self.shape.place(class, segment, 0);
        let mut least = (u32::MAX, first);
        for subtable in 0..self.shape.subtables() {
            let place = self.shape.place(class, segment, subtable);
            self.reset_expired(place.bucket, now_tick);
            let bucket = &mut self.buckets[place.bucket];
            let equal = bucket.find(place.fingerprint);
            if equal != 0 {
                let entry = equal.trailing_zeros() as usize;
                let had_port = self.faces.contains(bucket.faces(entry), port);
                let list = self.faces.with(bucket.faces(entry), port)?;
                bucket.set_faces(entry, list);
                if !(marks_collided || had_port || bucket.is_collided(entry)) {
                    return Ok(Inserted::Aggregated);
                }
                bucket.prolong(entry, now_tick, lifetime_ticks);
                if marks_collided {
                    bucket.set_collided(entry);
                }
                return Ok(Inserted::Collided);
            }
            if bucket.load() < least.0 {
                least = (bucket.load(), place);
            }
        }
        let expires_tick = self.latest_tick + u64::from(lifetime_ticks);
        if self.buckets[first.bucket].may_have_overflowed(class)
            && let Some(place) = self.overflow.find(segment, class)
        {
            if self.overflow.entry(place).expires_tick > self.latest_tick {
                let entry = self.overflow.entry_mut(place);
                let had_port = self.faces.contains(entry.faces, port);
                entry.faces = self.faces.with(entry.faces, port)?;
                if !(marks_collided || had_port || entry.collided != 0) {
                    return Ok(Inserted::Aggregated);
                }
                entry.expires_tick = entry.expires_tick.max(expires_tick);
                entry.collided |= u8::from(marks_collided);
                return Ok(Inserted::Collided);
            }
            self.expire_overflowed(place);
        }
        let (load, Place { bucket, fingerprint }) = least;
        if load as usize == BUCKET_ENTRIES {
            return self.overflow(segment, class, first, port, expires_tick);
        }
        let list = self.faces.with(0, port)?;
        self.buckets[bucket].put(fingerprint, list, now_tick, lifetime_ticks);
        self.occupied += 1;
        Ok(Inserted::New)
    }

    /// Makes an entry in the overflow table for a class whose buckets are full.
    #[cold]
    fn overflow(
        &mut self,
        segment: usize,
        class: Class,
        first: Place,
        port: u16,
        expires_tick: u64,
    ) -> Result<Inserted, FingerprintPitRefusal> {
        if self.overflow.is_full() {
            self.reclaim_overflowed(RECLAIMED_PER_INSERT);
        }
        if self.overflow.is_full() {
            return Err(FingerprintPitRefusal::OverflowFull);
        }
        let list = self.faces.with(0, port)?;
        if !self.buckets[first.bucket].count_overflowed(class) {
            self.faces.release(list);
            return Err(FingerprintPitRefusal::OverflowFull);
        }
        self.overflow.insert(segment, class, list, expires_tick);
        self.counters.overflows += 1;
        Ok(Inserted::New)
    }
}
