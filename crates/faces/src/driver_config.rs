//! Settings of the sockets of one worker, with their defaults and units.

use std::time::Duration;

use namewire_links::reassembly::DEFAULT_REASSEMBLY_BYTES;
use namewire_packet::MAX_PACKET_BYTES;
use namewire_shares::{HolderTable, Pool, PoolConfig};

use crate::{FaceIdAllocator, LinkPolicy};

/// Settings of one worker's sockets.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// Memory for input that streams keep for later batches, in bytes, on all faces together. Beyond it a stream reads
    /// only an element's worth at a time, so that it keeps no more than an unfinished element. Default 16 MiB: 128
    /// faces in the middle of a full read.
    pub kept_input_bytes: usize,
    /// Bytes that may wait on one stream face before packets are refused. Default 8 MiB: a thousand of the largest
    /// packets. With 1 MiB, a consumer with a window of a few hundred large Data lost some at its own socket.
    pub stream_queue_bytes: usize,
    /// Bytes that may wait on one UDP socket, which all faces of a listener share. Default 1 MiB.
    pub udp_queue_bytes: usize,
    /// Bytes that may wait on all faces together, shared among holders; beyond it, only an empty queue takes another
    /// packet. Default 256 MiB.
    pub total_queue_bytes: usize,
    /// An on-demand UDP face closes when nothing was received for this long. Default 600 s.
    pub udp_idle_timeout: Duration,
    /// A TCP or WebSocket connection from elsewhere closes if it brings no packet for this long. Default 600 s.
    pub first_packet_timeout: Duration,
    /// MTU of on-demand UDP faces, in bytes. Default 8800.
    pub udp_mtu: usize,
    /// Send and receive datagrams of equal size as one message where the kernel can. Bytes on
    /// the wire are the same; only a faulty device gives a reason to turn it off. Default true.
    pub udp_offload: bool,
    /// Bytes of unfinished fragmented packets per face. Default 64 KiB.
    pub reassembly_bytes: usize,
    /// Memory for unfinished fragmented packets of all faces together, in bytes. Default 64 MiB.
    pub total_reassembly_bytes: usize,
    /// Memory for unacknowledged frames of all faces with reliability, in bytes. Default 64 MiB.
    pub total_unacknowledged_bytes: usize,
    /// Reliability and congestion marks of new stream and UDP faces. Default none.
    pub link_policy: LinkPolicy,
    /// Most faces of this worker. Default 16384.
    pub max_faces: usize,
    /// Where ids of on-demand UDP faces come from: one sequence for the whole router.
    pub face_ids: FaceIdAllocator,
    /// The holders of faces: one table for the whole router.
    pub holders: HolderTable,
}

/// Part of each pool that one holder may have if no other has any, in percent.
const SHARE_PERCENT: u32 = 80;

impl DriverConfig {
    /// A pool of this driver, with a reserve for local applications.
    pub(crate) fn pool(&self, name: &'static str, capacity: usize) -> Pool {
        let capacity = capacity as u64;
        let config = PoolConfig {
            name,
            capacity,
            share_percent: SHARE_PERCENT,
            management_reserve: capacity / 16,
            local_reserve: capacity / 8,
        };
        Pool::new(config, self.holders.groups())
    }
}

impl Default for DriverConfig {
    fn default() -> Self {
        DriverConfig {
            kept_input_bytes: 16 << 20,
            stream_queue_bytes: 8 << 20,
            udp_queue_bytes: 1 << 20,
            total_queue_bytes: 256 << 20,
            udp_idle_timeout: Duration::from_secs(600),
            first_packet_timeout: Duration::from_secs(600),
            udp_mtu: MAX_PACKET_BYTES,
            udp_offload: true,
            reassembly_bytes: DEFAULT_REASSEMBLY_BYTES,
            total_reassembly_bytes: 64 << 20,
            total_unacknowledged_bytes: 64 << 20,
            link_policy: LinkPolicy::default(),
            max_faces: 16384,
            face_ids: FaceIdAllocator::new(),
            holders: HolderTable::default(),
        }
    }
}
