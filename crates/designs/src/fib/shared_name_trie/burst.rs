//! Bursts: which thread inserts which names, and in which order?
//!
//! Source: NameTrie18 §V-B.3. Threads insert without conflict if their names branch into different sub-tries, and a
//! thread misses the caches less if a name resembles the one before it; the paper calls two names *similar* if they
//! share at least a few starting bytes. The paper looks for the most similar name one step after another and does not
//! say how. Ours sorts: names are ordered by their bytes from the first component's value on. The order is cut into as
//! many parts of nearly equal size as there are threads. So each part is a few whole sub-tries and two cut ones, and
//! each name follows one that shares most with it.
//!
//! Where to cut follows from a sample of [`SAMPLE_PER_THREAD`] names for each thread. Each thread then goes through the
//! whole burst, keeps the names of its part and sorts them, so that no step waits for another thread.
//!
//! Equal names are in one part, in the order in which they were given: the last one's number counts, as if they were
//! inserted one after the other.
//!
//! Cost: 20 bytes of memory for a name while it is sorted; each thread reads the first bytes of every name once.

use std::cmp::Ordering;

/// Names that are looked at for each thread.
const SAMPLE_PER_THREAD: usize = 4_096;
/// Type and length of a first component that is not long.
const FIRST_HEADER_BYTES: usize = 2;

/// A prefix and its number.
pub(super) type Route<'n> = (&'n [u8], u32);

/// The part of a burst that belongs to one thread: names from `from` on, and before `to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Part<'n> {
    from: Option<&'n [u8]>,
    to: Option<&'n [u8]>,
}

/// Cuts a burst into parts of similar names, at most `threads`.
pub(super) fn parts<'n>(burst: &[Route<'n>], threads: usize) -> Vec<Part<'n>> {
    let step = (burst.len() / (threads * SAMPLE_PER_THREAD)).max(1);
    let mut sample: Vec<&[u8]> = match threads {
        0 | 1 => Vec::new(),
        _ => burst.iter().step_by(step).map(|&(prefix, _)| prefix).collect(),
    };
    sample.sort_unstable_by(|one, other| in_order(one, other));
    let mut cuts: Vec<&[u8]> =
        (1..threads).filter_map(|part| sample.get(part * sample.len() / threads)).copied().collect();
    cuts.dedup();
    let from = std::iter::once(None).chain(cuts.iter().copied().map(Some));
    let to = cuts.iter().copied().map(Some).chain([None]);
    from.zip(to).map(|(from, to)| Part { from, to }).collect()
}

/// The numbers in the burst of a part's names, in order.
pub(super) fn ordered(burst: &[Route<'_>], part: Part<'_>) -> Vec<u32> {
    let mut numbers: Vec<(u64, u32)> = (0..)
        .zip(burst)
        .filter(|(_, (prefix, _))| part.has(prefix))
        .map(|(number, (prefix, _))| (beginning(prefix), number))
        .collect();
    let prefix = |number: u32| burst[number as usize].0;
    numbers.sort_unstable_by(|one, other| {
        let by_name = || prefix(one.1).cmp(prefix(other.1));
        one.0.cmp(&other.0).then_with(by_name).then(one.1.cmp(&other.1))
    });
    numbers.into_iter().map(|(_, number)| number).collect()
}

impl Part<'_> {
    #[inline]
    fn has(self, prefix: &[u8]) -> bool {
        self.from.is_none_or(|from| in_order(from, prefix).is_le())
            && self.to.is_none_or(|to| in_order(prefix, to).is_lt())
    }
}

#[inline]
fn in_order(one: &[u8], other: &[u8]) -> Ordering {
    beginning(one).cmp(&beginning(other)).then_with(|| one.cmp(other))
}

/// The first eight bytes of a name behind the first component's header.
#[inline]
fn beginning(prefix: &[u8]) -> u64 {
    let rest = prefix.get(FIRST_HEADER_BYTES..).unwrap_or_default();
    match rest.first_chunk() {
        Some(&bytes) => u64::from_be_bytes(bytes),
        None => {
            rest.iter().zip([56, 48, 40, 32, 24, 16, 8]).fold(0, |key, (&byte, shift)| key | u64::from(byte) << shift)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name is in one part, equal ones in the same; parts are of nearly equal size and in order.
    #[test]
    fn parts_divide_a_burst_by_similarity() {
        let mut rng = fastrand::Rng::with_seed(1);
        let names: Vec<Vec<u8>> = (0..40_000)
            .map(|_| {
                // Half of the names share their first ten bytes.
                let first = if rng.bool() { "shared-by-many".to_owned() } else { format!("{:04}", rng.u32(..10_000)) };
                [&[8, first.len() as u8], first.as_bytes(), &[8, 2, rng.u8(..), rng.u8(..)]].concat()
            })
            .collect();
        let burst: Vec<Route<'_>> = names.iter().zip(0..).map(|(name, number)| (name.as_slice(), number)).collect();
        for threads in [1, 2, 3, 8] {
            let parts = parts(&burst, threads);
            assert_eq!(parts.len(), threads);
            let all: Vec<Vec<u32>> = parts.iter().map(|&part| ordered(&burst, part)).collect();
            let fair = burst.len() / threads;
            assert!(all.iter().all(|part| part.len() * 10 > fair * 8 && part.len() * 8 < fair * 10), "{threads}");
            let numbers = all.concat();
            assert!(numbers.is_sorted_by(|&one, &other| {
                in_order(burst[one as usize].0, burst[other as usize].0).then(one.cmp(&other)).is_lt()
            }));
            assert_eq!(numbers.len(), burst.len());
        }
    }

    #[test]
    fn a_burst_of_one_name_is_one_part() {
        let burst = [(&b"\x08\x01a"[..], 1); 5];
        assert_eq!(parts(&burst, 4).iter().map(|&part| ordered(&burst, part).len()).sum::<usize>(), 5);
        assert_eq!(parts(&[], 4), [Part::default()]);
        assert_eq!(beginning(b"\x08\x03abc\x08"), u64::from_be_bytes(*b"abc\x08\0\0\0\0"));
        assert_eq!(beginning(b""), 0);
    }
}
