//! The options of a port, and its counters.

use std::io;

use crate::BURST_FRAMES_MAX;

/// Bytes before a frame in its buffer, which drivers may use (`RTE_PKTMBUF_HEADROOM`).
const HEADROOM_BYTES: usize = 128;

/// Bytes of a buffer's description: `struct rte_mbuf`, and the header of a mempool's object.
const DESCRIPTION_BYTES: usize = 128 + 64;

/// Buffers that a thread keeps near it, so that most bursts need no atomic operation (mempool cache). DPDK lets a cache
/// grow to one and a half times this size.
pub(crate) const CACHE_BUFFERS: u32 = 256;

/// Smallest and largest room for a frame. Cards want 2 KB. Offsets in a buffer have 16 bits.
const FRAME_BYTES: std::ops::RangeInclusive<usize> = 2_048..=u16::MAX as usize - HEADROOM_BYTES;

/// What a [`Port`](crate::Port) is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortOptions {
    /// Frames that the device can hold until [`receive`](crate::Port::receive) takes them. The driver may round it.
    /// Default 1,024.
    pub receive_descriptors: u16,
    /// Frames that the device can hold until they have left. The driver may round it. Default 1,024.
    pub transmit_descriptors: u16,
    /// Buffers of the port's pool. Must exceed both numbers of descriptors by 1,024 at least. Best is a power of two
    /// less one. Default 8,191.
    pub buffers: u32,
    /// Bytes of the largest frame, with its Ethernet header: 2,048 to 65,407. Default 9,216, which holds an MTU of
    /// 9,000 with tags.
    pub frame_bytes_max: usize,
    /// MTU to set, in bytes of payload. `None` (default): the driver's, mostly 1,500.
    pub mtu: Option<u16>,
    /// Receive frames for other addresses, too. Default false. Devices without a filter receive everything anyway.
    pub promiscuous: bool,
}

impl Default for PortOptions {
    fn default() -> Self {
        PortOptions {
            receive_descriptors: 1_024,
            transmit_descriptors: 1_024,
            buffers: 8_191,
            frame_bytes_max: 9_216,
            mtu: None,
            promiscuous: false,
        }
    }
}

impl PortOptions {
    /// About how many bytes of DPDK's memory a port with these options takes. A virtual device may take more.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.buffers as usize * (self.room_bytes() + DESCRIPTION_BYTES)
    }

    /// Bytes of one buffer, without its description.
    pub(crate) fn room_bytes(&self) -> usize {
        HEADROOM_BYTES + self.frame_bytes_max
    }

    /// # Errors
    /// `InvalidInput` if an option is out of its range.
    pub(crate) fn check(&self) -> io::Result<()> {
        let wrong = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if self.receive_descriptors == 0 || self.transmit_descriptors == 0 {
            return wrong("a port needs at least one descriptor to receive and one to send".into());
        }
        // The device holds its descriptors. The rest: a burst to receive, two to send (filled and spare), and caches.
        let spare = 4 * BURST_FRAMES_MAX as u32 + 3 * CACHE_BUFFERS;
        let buffers_min = u32::from(self.receive_descriptors) + u32::from(self.transmit_descriptors) + spare;
        if self.buffers < buffers_min {
            return wrong(format!("{} buffers: this port needs at least {buffers_min}", self.buffers));
        }
        if !FRAME_BYTES.contains(&self.frame_bytes_max) {
            let (min, max) = (FRAME_BYTES.start(), FRAME_BYTES.end());
            return wrong(format!("frames of {} bytes: must be {min} to {max}", self.frame_bytes_max));
        }
        if self.mtu.is_some_and(|mtu| mtu == 0 || usize::from(mtu) + ETHERNET_BYTES > self.frame_bytes_max) {
            let mtu_max = self.frame_bytes_max - ETHERNET_BYTES;
            return wrong(format!("an MTU of {} bytes: must be 1 to {mtu_max}", self.mtu.unwrap_or(0)));
        }
        Ok(())
    }
}

/// Bytes around the payload of an Ethernet frame that a card may write: header, two tags, checksum.
const ETHERNET_BYTES: usize = 14 + 2 * 4 + 4;

/// What a port counted since its device was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames that the device dropped because [`receive`](crate::Port::receive) came too late (`imissed`).
    pub receive_missed: u64,
    /// Frames that the device received with an error (`ierrors`).
    pub receive_errors: u64,
    /// Frames, or tries to receive, for which the pool had no buffer (`rx_nombuf`).
    pub receive_no_buffer: u64,
    /// Frames that this crate dropped: in several pieces which one buffer cannot hold, or with impossible lengths.
    pub receive_malformed: u64,
    /// Frames that the device failed to send (`oerrors`). Some drivers also count what
    /// [`flush`](crate::Port::flush) keeps for later.
    pub transmit_errors: u64,
    /// Frames that [`send`](crate::Port::send) refused because the pool had no buffer.
    pub transmit_no_buffer: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_good_and_takes_78_megabytes() {
        let options = PortOptions::default();
        options.check().expect("good");
        assert_eq!(options.bytes() / 1_000_000, 78);
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let good = PortOptions::default();
        let wrong = [
            PortOptions { receive_descriptors: 0, ..good },
            PortOptions { buffers: 3_071, ..good },
            PortOptions { frame_bytes_max: 2_047, ..good },
            PortOptions { frame_bytes_max: 65_408, ..good },
            PortOptions { mtu: Some(9_191), ..good },
            PortOptions { mtu: Some(0), ..good },
        ];
        for options in wrong {
            let error = options.check().expect_err("out of range");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{options:?}");
        }
        PortOptions { buffers: 3_072, mtu: Some(9_190), ..good }.check().expect("the limits");
    }
}
