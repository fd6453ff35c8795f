//! Head room: is there memory for allocations that would otherwise end the process?
//!
//! Much of a router uses an allocator that ends the process when the system has no memory: hash tables that
//! double, lists of changes, answers, thread stacks. So tables that grow with routes ask this module first,
//! while a refusal is still possible. They leave a reserve of [`RESERVE_BYTES`] for everything else. The
//! test is a trial mapping: would the kernel map this many bytes?
//!
//! The kernel refuses a mapping under a limit of address space (`ulimit -v`), and where memory is not
//! overcommitted. With overcommit, the default, it maps the memory, and ends a process when memory runs
//! out.
//!
//! Cost: the test takes two or three system calls. It does not hold the memory: another thread may take it
//! before the caller does.

use crate::pages::can_map;

/// The reserve for everything that does not ask. The C library's allocator takes address space for threads
/// in pieces of 64 MiB. Where it gets no piece, it takes a page for each small allocation. So: two such
/// pieces, and 32 MiB for stacks, sockets and answers.
pub const RESERVE_BYTES: usize = 160 << 20;

/// Changes between two trial mappings. With the longest names they take some MiB of the reserve.
const CHANGES_PER_LOOK: u32 = 256;

/// Whether the kernel would map `bytes` more, and the reserve, now.
pub fn is_there(bytes: usize) -> bool {
    can_map(bytes.saturating_add(RESERVE_BYTES))
}

/// Whether a table whose parts grow by doubling may grow.
///
/// The next change may copy any part to one of twice its size. If there is room for twice all the parts
/// that have grown, no copy fails. Measuring may visit every entry of the table, so it is done so rarely
/// that its cost is negligible.
#[derive(Debug)]
pub struct GrowthGuard {
    empty_bytes: usize,
    grown_bytes: usize,
    changes_until_measured: usize,
    changes_until_look: u32,
}

impl GrowthGuard {
    /// For a table that takes `empty_bytes` before its first entry.
    pub fn new(empty_bytes: usize) -> Self {
        Self { empty_bytes, grown_bytes: 0, changes_until_measured: 0, changes_until_look: 0 }
    }

    /// The most that the table may take with its next change.
    pub fn wanted_bytes(&self) -> usize {
        self.grown_bytes.saturating_mul(2)
    }

    /// Whether an entry may be added to a table of `len` entries that takes `bytes`.
    pub fn allows_change(&mut self, len: usize, bytes: impl FnOnce() -> usize) -> bool {
        if self.changes_until_measured == 0 {
            self.grown_bytes = bytes().saturating_sub(self.empty_bytes);
            self.changes_until_measured = len / 16 + CHANGES_PER_LOOK as usize;
        }
        if self.changes_until_look == 0 {
            if !is_there(self.wanted_bytes()) {
                return false;
            }
            self.changes_until_look = CHANGES_PER_LOOK;
        }
        self.changes_until_measured -= 1;
        self.changes_until_look -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_a_little_and_none_for_everything() {
        assert!(is_there(0) && !is_there(usize::MAX));
        let mut guard = GrowthGuard::new(1000);
        assert!(guard.allows_change(0, || 1500));
        assert_eq!(guard.wanted_bytes(), 1000);
        let measured = (0..1000).filter(|_| {
            let mut is_measured = false;
            assert!(guard.allows_change(1600, || {
                is_measured = true;
                3000
            }));
            is_measured
        });
        assert_eq!(measured.count(), 3, "after 256 changes, then each 356th");
        assert_eq!(guard.wanted_bytes(), 4000);
    }

    #[test]
    fn a_table_that_could_not_be_copied_does_not_grow() {
        let mut guard = GrowthGuard::new(0);
        assert!(!guard.allows_change(0, || usize::MAX / 4));
        assert!(!guard.allows_change(0, || usize::MAX / 4), "nor later");
    }
}
