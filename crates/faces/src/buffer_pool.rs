//! Buffer pool: spare byte buffers that all faces of one worker share.
//!
//! A face holds a buffer only while something is unfinished: bytes that the peer has not taken, or the first part of an
//! element. So an idle face costs no buffer, and a busy one does not allocate per batch.
//!
//! After a burst, [`BufferPool::rest`] gives half of the spare buffers back, again and again, down to [`KEPT`].

/// Most buffers kept.
const MAX_SPARE: usize = 64;

/// Buffers kept at rest.
const KEPT: usize = 4;

/// Larger buffers go back to the allocator.
const MAX_SPARE_BYTES: usize = 256 << 10;

#[derive(Default)]
pub(crate) struct BufferPool {
    spare: Vec<Vec<u8>>,
}

impl BufferPool {
    /// An empty buffer, with capacity if one is spare.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// True if there is something to give back at rest.
    pub(crate) fn is_large(&self) -> bool {
        self.spare.len() > KEPT
    }

    /// Gives half of the spare buffers back to the allocator. Returns how many bytes that were.
    pub(crate) fn rest(&mut self) -> usize {
        let kept = (self.spare.len() / 2).max(KEPT).min(self.spare.len());
        self.spare.drain(kept..).map(|buffer| buffer.capacity()).sum()
    }

    /// Empties `buffer` and takes its capacity as spare.
    pub(crate) fn give(&mut self, buffer: &mut Vec<u8>) {
        let mut buffer = std::mem::take(buffer);
        let is_useful = buffer.capacity() > 0 && buffer.capacity() <= MAX_SPARE_BYTES;
        if is_useful && self.spare.len() < MAX_SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_burst_left_goes_by_halves() {
        let mut pool = BufferPool::default();
        (0..40).for_each(|_| pool.give(&mut Vec::with_capacity(1000)));
        let mut freed = Vec::new();
        while pool.is_large() {
            freed.push(pool.rest() / 1000);
        }
        assert_eq!(freed, [20, 10, 5, 1]);
        assert_eq!((pool.rest(), pool.take().capacity()), (0, 1000));
    }
}
