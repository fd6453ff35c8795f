//! What does the machine cost right now: a line of memory, a page walk, a step of arithmetic?
//!
//! A ratio of two programs depends on the machine: one that waits for memory gains from every trick against waiting,
//! one that counts instructions does not. Two machines of one name differ, and one machine differs by the hour, because
//! a host of virtual machines gives a processor to others, too. So each record holds what was measured at its start, in
//! half a second:
//!
//! | field | measured by |
//! | --- | --- |
//! | [`Host::line_ns`] | reads of random lines of an array far larger than the caches, in large pages, each waiting for the one before |
//! | [`Host::page_walk_ns`] | what the same reads take longer in pages of 4 KiB |
//! | [`Host::read_gb_per_s`] | the array read from its begin to its end by one processor |
//! | [`Host::core_mhz`] | a loop whose steps each take four cycles, in its fastest of [`SPINS`] runs |
//! | [`Host::slow_percent`] | how much longer the same loop takes on average: time that others had |
//! | [`Host::load`] | the mean number of waiting threads over the last minute, as the kernel counts |
//!
//! Limits: the array has [`array_bytes`]; a cache of that size hides its lines. Where the kernel has no large pages to
//! give, both reads are in small ones, and the walk seems to cost nothing. On a processor whose multiplication does not
//! take three cycles, `core_mhz` is off by that factor.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use namewire_tables::{PageArray, PageSize};
use serde::{Deserialize, Serialize};

use crate::experiment::Scale;

/// What was measured at the start of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Latency of a random line of memory in large pages, in nanoseconds; `None`: no memory for it.
    pub line_ns: Option<f64>,
    /// What a page walk adds to that, in nanoseconds.
    pub page_walk_ns: Option<f64>,
    /// Bytes that one processor reads in order, in 10⁹ a second.
    pub read_gb_per_s: Option<f64>,
    /// Clock of the processor, in MHz.
    pub core_mhz: f64,
    /// How much longer than its fastest run a loop without memory accesses takes on average, in percent.
    pub slow_percent: f64,
    /// Of the last minute; `None`: not available.
    pub load: Option<f64>,
}

const WORDS_PER_LINE: usize = 8;
/// Words of a small page.
const WORDS_PER_PAGE: usize = 512;
/// Dependent reads.
const READS: usize = 100_000;
/// Runs of the loop, and its steps: a multiplication of three cycles and a rotation of one, each of which waits.
const SPINS: usize = 200;
const STEPS: u32 = 16_384;
const CYCLES_PER_STEP: f64 = 4.0;

/// Bytes of the array.
const fn array_bytes(scale: Scale) -> usize {
    match scale {
        Scale::Smoke => 8 << 20,
        Scale::Quick | Scale::Full => 256 << 20,
    }
}

impl Host {
    /// Measures the machine with the calling thread.
    pub fn measure(scale: Scale) -> Self {
        let array = |pages| array(array_bytes(scale) / size_of::<u64>(), pages);
        let (small, large) = (array(PageSize::Base), array(PageSize::Transparent));
        let in_large = large.as_deref().map(line_ns);
        let in_small = small.as_deref().map(line_ns);
        let (core_mhz, slow_percent) = spins();
        Self {
            line_ns: in_large,
            page_walk_ns: in_small.zip(in_large).map(|(small, large)| (small - large).max(0.0)),
            read_gb_per_s: large.as_deref().map(read_gb_per_s),
            core_mhz,
            slow_percent,
            load: load(),
        }
    }

    /// In one line.
    pub fn text(&self) -> String {
        let number = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| format!("{value:.0}"));
        format!(
            "At the start a random line took {} ns and a page walk {} ns more, one processor read {} GB/s at {:.0} MHz, a loop \
             took {:.0} % longer than its fastest run, and the load was {}.",
            number(self.line_ns),
            number(self.page_walk_ns),
            number(self.read_gb_per_s),
            self.core_mhz,
            self.slow_percent,
            self.load.map_or_else(|| "?".to_owned(), |load| format!("{load:.1}"))
        )
    }
}

/// An array whose pages all exist.
fn array(words: usize, pages: PageSize) -> Option<PageArray<AtomicU64>> {
    let array = PageArray::<AtomicU64>::zeroed(words, pages).ok()?;
    array.iter().step_by(WORDS_PER_PAGE).for_each(|word| word.store(0, Ordering::Relaxed));
    Some(array)
}

/// Every word is 0, which the processor learns only by reading it.
fn line_ns(array: &[AtomicU64]) -> f64 {
    let lines = array.len() / WORDS_PER_LINE;
    let mut state = 1_u64;
    let started = Instant::now();
    for _ in 0..READS {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let line = ((u128::from(state) * lines as u128) >> 64) as usize;
        state ^= array[line * WORDS_PER_LINE].load(Ordering::Relaxed);
    }
    black_box(state);
    started.elapsed().as_nanos() as f64 / READS as f64
}

fn read_gb_per_s(array: &[AtomicU64]) -> f64 {
    let pass = || {
        let started = Instant::now();
        let sum = array.iter().fold(0_u64, |sum, word| sum.wrapping_add(word.load(Ordering::Relaxed)));
        black_box(sum);
        size_of_val(array) as f64 / started.elapsed().as_nanos() as f64
    };
    (0..3).map(|_| pass()).fold(0.0, f64::max)
}

/// The clock in MHz, and how much longer the loop takes on average than in its fastest run, in percent.
fn spins() -> (f64, f64) {
    let took_ns = (0..SPINS).map(|_| {
        let started = Instant::now();
        let mut state = black_box(1_u64);
        for _ in 0..STEPS {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(7);
        }
        black_box(state);
        started.elapsed().as_nanos() as f64
    });
    let (fastest, sum) = took_ns.fold((f64::INFINITY, 0.0), |(fastest, sum), took| (took.min(fastest), sum + took));
    let mean = sum / SPINS as f64;
    (f64::from(STEPS) * CYCLES_PER_STEP * 1e3 / fastest, (mean / fastest - 1.0) * 100.0)
}

fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_memory_and_a_clock() {
        let host = Host::measure(Scale::Smoke);
        assert!(host.line_ns.is_some_and(|ns| (0.1..1e6).contains(&ns)), "{host:?}");
        assert!(host.page_walk_ns.is_some_and(|ns| ns >= 0.0) && host.read_gb_per_s.is_some_and(|gb| gb > 0.0));
        assert!(host.core_mhz > 1.0 && host.slow_percent >= 0.0, "{host:?}");
        assert!(host.text().starts_with("At the start a random line took"));
    }

    #[test]
    fn what_is_not_known_is_said() {
        assert!(Host::default().text().contains("a random line took ? ns and a page walk ? ns more"));
    }
}
