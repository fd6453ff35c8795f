//! Frame memory (*UMEM*): who owns each frame?
//!
//! Source: Documentation/networking/af_xdp.rst of Linux. The memory is one mapping, divided into frames of equal size.
//! The first half receives, the second half sends:
//!
//! ```text
//!   │ frame 0 │ … │ frame n/2−1 │ frame n/2 │ … │ frame n−1 │      each `frame_bytes` long, a power of two
//!    ◄──────── receive ────────► ◄────────── send ─────────►
//!
//!   frame to receive:  │ headroom of the kernel (256) │ what came, from the address in its descriptor │ … │
//!   frame to send:     │ what goes, from the start │ … │
//! ```
//!
//! A frame has one owner at any time. `Owner::Kernel` of a frame to receive: it is in the fill ring, in the kernel or
//! in the RX ring. `Owner::Kernel` of a frame to send: it is in the TX ring, in the kernel or in the completion ring.
//! `Owner::Us`: it is being read, is being written or is in the list of free frames. Only functions of this file change
//! owners. An address from the kernel counts only if it is within a frame of the right half that the kernel owns. An
//! address that the kernel gives twice, or invents, is refused.
//!
//! Cost: one byte per frame, in addition to the frame itself; to send, one entry of a stack. Limits: the number of
//! frames is fixed; without a free frame nothing is sent.
#![allow(unsafe_code, reason = "leaf: memory that the kernel writes")]

use std::io;

use crate::mapping::Mapping;

/// Bytes that the kernel leaves free at the start of a frame that it receives into (`XDP_PACKET_HEADROOM`).
pub(crate) const HEADROOM_BYTES: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Us,
    Kernel,
}

/// A frame that came and that is ours until [`Umem::lend`].
#[derive(Debug)]
pub(crate) struct Received {
    frame: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Umem {
    memory: Mapping,
    frame_bytes: u32,
    owners: Box<[Owner]>,
    /// Frames to send that are ours.
    free: Vec<u32>,
}

impl Umem {
    /// `frames` and `frame_bytes` are powers of two, and `frames` is at least two.
    pub(crate) fn new(frames: u32, frame_bytes: u32) -> io::Result<Self> {
        let bytes = (frames as usize).checked_mul(frame_bytes as usize).ok_or(io::ErrorKind::OutOfMemory)?;
        debug_assert!(frames.is_power_of_two() && frames > 1 && frame_bytes.is_power_of_two());
        Ok(Umem {
            memory: Mapping::anonymous(bytes)?,
            frame_bytes,
            owners: vec![Owner::Us; frames as usize].into(),
            free: (frames / 2..frames).rev().collect(),
        })
    }

    /// The memory, to register it.
    pub(crate) fn memory(&self) -> &Mapping {
        &self.memory
    }

    pub(crate) fn frame_bytes(&self) -> u32 {
        self.frame_bytes
    }

    /// Most bytes of one packet: what the kernel can receive into one frame.
    pub(crate) fn packet_bytes_max(&self) -> usize {
        self.frame_bytes.saturating_sub(HEADROOM_BYTES) as usize
    }

    /// Frames of one half.
    fn half(&self) -> u32 {
        self.owners.len() as u32 / 2
    }

    /// How many frames to send the kernel owns.
    pub(crate) fn sending(&self) -> usize {
        self.half() as usize - self.free.len()
    }

    /// All frames to receive, ours at the start.
    pub(crate) fn to_receive(&self) -> impl Iterator<Item = Received> + use<> {
        (0..self.half()).map(|frame| Received { frame })
    }

    /// The address for the fill ring.
    pub(crate) fn address(&self, received: &Received) -> u64 {
        u64::from(received.frame) * u64::from(self.frame_bytes)
    }

    /// Makes the kernel the owner of a frame whose address was put on the fill ring.
    pub(crate) fn lend(&mut self, received: Received) {
        if let Some(owner) = self.owners.get_mut(received.frame as usize) {
            *owner = Owner::Kernel;
        }
    }

    /// Takes back the frame to receive that this address is in. `None` if the kernel may not give this address.
    pub(crate) fn take_back(&mut self, address: u64) -> Option<Received> {
        let frame = u32::try_from(address / u64::from(self.frame_bytes)).ok()?;
        let is_to_receive = frame < self.half();
        let owner = self.owners.get_mut(frame as usize)?;
        if !is_to_receive || *owner != Owner::Kernel {
            return None;
        }
        *owner = Owner::Us;
        Some(Received { frame })
    }

    /// What the kernel received into a frame. `None` if the descriptor names bytes outside of it.
    pub(crate) fn content(&self, received: &Received, descriptor: libc::xdp_desc) -> Option<&[u8]> {
        let start = descriptor.addr.checked_sub(self.address(received))?;
        let end = start.checked_add(u64::from(descriptor.len))?;
        if end > u64::from(self.frame_bytes) {
            return None;
        }
        let place = self.memory.place::<u8>(descriptor.addr, descriptor.len as usize)?;
        // SAFETY:
        // - `place` checked that the bytes are within the mapping, which lives as long as `self`; it is initialized,
        //   because fresh pages are zeroes;
        // - nothing writes them while the slice is alive: the frame is ours (a `Received` exists only for such a frame,
        //   and `lend` consumes it), and the kernel writes only frames that it owns.
        Some(unsafe { std::slice::from_raw_parts(place.as_ptr(), descriptor.len as usize) })
    }

    /// Writes one packet, made of these parts, into a free frame; the kernel owns the frame from now on. `None` if no
    /// frame is free or the packet is too long.
    pub(crate) fn write(&mut self, parts: &[&[u8]]) -> Option<libc::xdp_desc> {
        let bytes = parts.iter().try_fold(0usize, |bytes, part| bytes.checked_add(part.len()))?;
        if bytes > self.packet_bytes_max() {
            return None;
        }
        let frame = *self.free.last()?;
        let address = u64::from(frame) * u64::from(self.frame_bytes);
        let mut place = self.memory.place::<u8>(address, bytes)?;
        for part in parts {
            // SAFETY:
            // - `place` and what follows it up to `bytes` is within the mapping, and the parts have `bytes` bytes
            //   together;
            // - the frame is ours, so nothing else reads or writes it; no slice of the mapping exists while `self` is
            //   borrowed mutably, so no part lies in it.
            unsafe {
                place.as_ptr().copy_from_nonoverlapping(part.as_ptr(), part.len());
                place = place.add(part.len());
            }
        }
        self.free.pop();
        *self.owners.get_mut(frame as usize)? = Owner::Kernel;
        Some(libc::xdp_desc { addr: address, len: bytes as u32, options: 0 })
    }

    /// Takes back a frame that was sent. False if the kernel may not give this address.
    #[must_use]
    pub(crate) fn sent(&mut self, address: u64) -> bool {
        let Ok(frame) = u32::try_from(address / u64::from(self.frame_bytes)) else { return false };
        let is_to_send = frame >= self.half();
        let Some(owner) = self.owners.get_mut(frame as usize) else { return false };
        if !is_to_send || *owner != Owner::Kernel {
            return false;
        }
        *owner = Owner::Us;
        self.free.push(frame); // Has room: it had all frames at the start.
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: u32 = 8;
    const FRAME_BYTES: u32 = 2_048;

    fn umem() -> Umem {
        let mut umem = Umem::new(FRAMES, FRAME_BYTES).expect("memory");
        umem.to_receive().for_each(|frame| umem.lend(frame));
        umem
    }

    #[test]
    fn the_kernel_gives_a_frame_back_once() {
        let mut umem = umem();
        let received = umem.take_back(2_048 + 256).expect("the second frame");
        assert!(umem.take_back(2_048).is_none(), "it is ours");
        umem.lend(received);
        assert!(umem.take_back(2_048).is_some());

        let sent = umem.write(&[b"ab", b"", b"c"]).expect("a free frame");
        assert_eq!((sent.addr, sent.len), (4 * 2_048, 3));
        assert!(umem.sent(sent.addr) && !umem.sent(sent.addr));
    }

    #[test]
    fn addresses_of_the_other_half_and_beyond_are_refused() {
        let mut umem = umem();
        umem.write(&[b"a"]).expect("a free frame");
        assert!(umem.take_back(4 * 2_048).is_none(), "a frame to send");
        assert!(!umem.sent(0), "a frame to receive");
        for address in [8 * 2_048, 1 << 44, u64::MAX] {
            assert!(umem.take_back(address).is_none() && !umem.sent(address), "{address}");
        }
    }

    #[test]
    fn descriptors_that_leave_their_frame_are_refused() {
        let mut umem = umem();
        let received = umem.take_back(2_048 + 256).expect("the second frame");
        let content = |addr, len| umem.content(&received, libc::xdp_desc { addr, len, options: 0 }).map(<[u8]>::len);
        assert_eq!(content(2_048 + 256, 1_792), Some(1_792));
        assert_eq!(content(2_048 + 256, 1_793), None);
        assert_eq!(content(2_047, 1), None);
        assert_eq!(content(4_096, 0), Some(0));
        assert_eq!(content(u64::MAX, u32::MAX), None);
    }

    #[test]
    fn all_frames_are_sent_and_come_back() {
        let mut umem = umem();
        for _ in 0..3 {
            let sent: Vec<_> = std::iter::from_fn(|| umem.write(&[&[7; 1_792]])).collect();
            assert_eq!((sent.len(), umem.sending()), (4, 4));
            assert!(sent.iter().all(|descriptor| umem.sent(descriptor.addr)));
            assert_eq!(umem.sending(), 0);
        }
        assert!(umem.write(&[&[7; 1_793]]).is_none(), "longer than a frame");
    }
}
