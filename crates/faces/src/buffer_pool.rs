//! Buffer pool: spare byte buffers that all faces of one worker share.
//!
//! A face holds a buffer only while something is unfinished: bytes that the peer has not taken, or the first part of an
//! element. So an idle face costs no buffer, and a busy one does not allocate per batch.

/// Most buffers kept.
const MAX_SPARE: usize = 64;

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
