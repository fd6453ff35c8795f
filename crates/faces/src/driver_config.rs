//! Settings of the sockets of one worker, with their defaults and units.

use std::time::Duration;

use namewire_packet::MAX_PACKET_BYTES;

use crate::reassembly::DEFAULT_REASSEMBLY_OCTETS;
use crate::{FaceIdAllocator, LinkPolicy};

/// Settings of one worker's sockets.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// Memory for input that streams keep for later batches, in octets, on all faces together.
    /// Beyond it a stream reads an element's worth at a time, so that it keeps no more than the
    /// start of one. Default 16 MiB: 128 faces in the midst of a full read.
    pub kept_input_octets: usize,
    /// Octets that may wait on one stream face before packets are refused. Default 8 MiB:
    /// a thousand of the largest packets. With 1 MiB, a consumer with a window of a few
    /// hundred large Data lost some of them at its own socket.
    pub stream_queue_octets: usize,
    /// Octets that may wait on one UDP socket, which a listener's faces share. Default 1 MiB.
    pub udp_queue_octets: usize,
    /// Octets that may wait on all faces together; beyond it a queue takes a packet only if none
    /// waits there. Default 256 MiB.
    pub total_queue_octets: usize,
    /// An on-demand UDP face closes when nothing was received for so long. Default 600 s.
    pub udp_idle_timeout: Duration,
    /// MTU of on-demand UDP faces, in octets. Default 8800.
    pub udp_mtu: usize,
    /// Send and receive datagrams of equal size as one message where the kernel can. Octets on
    /// the wire are the same; only a faulty device gives a reason to turn it off. Default true.
    pub udp_offload: bool,
    /// Octets of unfinished fragmented packets per face. Default 64 KiB.
    pub reassembly_octets: usize,
    /// Reliability and congestion marks of new stream and UDP faces. Default none.
    pub link_policy: LinkPolicy,
    /// Faces of this worker at most. Default 16384.
    pub max_faces: usize,
    /// Where ids of on-demand UDP faces come from: one sequence for the whole router.
    pub face_ids: FaceIdAllocator,
}

impl Default for DriverConfig {
    fn default() -> Self {
        DriverConfig {
            kept_input_octets: 16 << 20,
            stream_queue_octets: 8 << 20,
            udp_queue_octets: 1 << 20,
            total_queue_octets: 256 << 20,
            udp_idle_timeout: Duration::from_secs(600),
            udp_mtu: MAX_PACKET_BYTES,
            udp_offload: true,
            reassembly_octets: DEFAULT_REASSEMBLY_OCTETS,
            link_policy: LinkPolicy::default(),
            max_faces: 16384,
            face_ids: FaceIdAllocator::new(),
        }
    }
}
