//! A port for whole Ethernet frames. A worker reads and writes frames in memory that it shares with a device, with the
//! kernel or with another process.
//!
//! This file has the common part of all such ports: the Ethernet header, which they write and read themselves, and the
//! place of frames in the receive arena. The drivers are AF_XDP ([`xdp`]), DPDK ([`crate::dpdk`]), and memif for
//! applications ([`crate::memory`]).
//!
//! While a worker is busy with a port, it looks at the memory and wants no event: [`FramePort::begin_polling`].
//!
//! A frame may have a priority tag (IEEE 802.1Q), which belongs to no VLAN. It is skipped, as by the kernel's packet
//! sockets. Frames of VLANs are not ours, and frames to send have no tag.
//!
//! A frame is copied once between shared memory and the arena, and once on its way out. The other side may change the
//! shared memory at any time, so the port decides only by bytes that it has copied. Received frames are close together:
//!
//! ```text
//!   arena   │ header 14 │ packet │ … │ header 14 │ packet │ …      each frame at a cache line
//! ```
//!
//! Cost: two copies of each frame, no allocation; system calls are the driver's.

pub(crate) mod xdp;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use namewire_packet::nfd::MacAddress;

use crate::memory;
use crate::remote::{LinkAddress, Remote};
use crate::rx_arena::MESSAGE_SLOT_BYTES;
use crate::sys::{Addressee, ETHERTYPE_NDN, MAX_BATCH, Outgoing, ReceivedBatch};
use xdp::XdpQueue;

/// Two addresses and the type of a frame.
pub(crate) const HEADER_BYTES: usize = 14;

/// The EtherType of a VLAN tag, and the bytes from there to the next EtherType.
const ETHERTYPE_VLAN: u16 = 0x8100;
const TAG_BYTES: usize = 4;

/// The VLAN id in a tag. 0 means that the tag has only a priority.
const VLAN_ID: u16 = 0x0FFF;

/// Received frames start at multiples of this many bytes.
const ALIGNMENT_BYTES: usize = 64;

/// See the module.
pub(crate) struct FramePort {
    queue: Queue,
    own: LinkAddress,
    /// The station to which frames without a destination go.
    peer: Option<MacAddress>,
    /// The group whose frames are for us.
    group: Option<MacAddress>,
    /// The driver did not send what it has; the next call says why before it takes more.
    is_stuck: bool,
    refused: RefusedFrames,
}

/// Frames received and not passed on, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RefusedFrames {
    /// Shorter than their header, or too long.
    pub(crate) malformed: u64,
    /// Not NDN.
    pub(crate) foreign: u64,
}

/// Whose memory holds the frames.
enum Queue {
    /// The kernel's driver.
    Xdp(Box<XdpQueue>),
    /// An application.
    Memif(Box<namewire_memif::Port>),
    /// A device.
    Dpdk(Box<namewire_dpdk::Port>),
}

impl FramePort {
    fn new(queue: Queue, own: LinkAddress, peer: Option<MacAddress>) -> Self {
        FramePort { queue, own, peer, group: None, is_stuck: false, refused: RefusedFrames::default() }
    }

    /// Most bytes of a frame after its header.
    pub(crate) fn payload_bytes_max(&self) -> usize {
        self.frame_bytes_max().saturating_sub(HEADER_BYTES)
    }

    fn frame_bytes_max(&self) -> usize {
        match &self.queue {
            Queue::Xdp(queue) => queue.socket.frame_bytes_max(),
            Queue::Memif(port) => port.frame_bytes_max(),
            Queue::Dpdk(port) => port.frame_bytes_max(),
        }
    }

    /// Bytes of the arena that a received frame may take.
    pub(crate) fn slot_bytes(&self) -> usize {
        match &self.queue {
            // What an application sends has nothing to do with the buffers that it gave us.
            Queue::Memif(_) => MESSAGE_SLOT_BYTES,
            _ => self.frame_bytes_max().next_multiple_of(ALIGNMENT_BYTES),
        }
    }

    /// Bytes that are not sent yet, at most: frames are not counted by their length.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        let frames = match &self.queue {
            Queue::Xdp(queue) => queue.socket.unsent(),
            Queue::Memif(port) => port.waiting(),
            Queue::Dpdk(port) => port.waiting(),
        };
        (frames * self.frame_bytes_max()) as u64
    }

    /// Makes the interface hear a group. Only frames to this group are for us from now on.
    pub(crate) fn join(&mut self, group: MacAddress) -> io::Result<()> {
        match &mut self.queue {
            Queue::Xdp(queue) => queue.join(self.own.interface, group)?,
            Queue::Memif(_) => return Err(io::ErrorKind::Unsupported.into()),
            Queue::Dpdk(port) => port.hear_group(group.0)?,
        }
        self.hear(group);
        Ok(())
    }

    /// Frames to this group are for us, if another port has joined it.
    pub(crate) fn hear(&mut self, group: MacAddress) {
        self.group = Some(group);
    }

    /// Whether a frame waits to be received. No system call.
    pub(crate) fn has_input(&self) -> bool {
        match &self.queue {
            Queue::Xdp(queue) => queue.socket.has_received(),
            Queue::Memif(port) => port.has_input(),
            Queue::Dpdk(_) => true, // to look is to receive
        }
    }

    /// The descriptor has reported input. From now on the caller asks [`FramePort::has_input`].
    pub(crate) fn begin_polling(&self) {
        if let Queue::Memif(port) = &self.queue {
            port.mask_interrupts();
            port.clear_doorbell();
        }
    }

    /// The caller is about to sleep. False if something has come: then it should not.
    pub(crate) fn end_polling(&self) -> bool {
        match &self.queue {
            Queue::Xdp(_) => true, // its descriptor is readable as long as there is input
            Queue::Memif(port) => !port.unmask_interrupts(),
            Queue::Dpdk(_) => false, // nothing reports its frames
        }
    }

    /// The descriptor that reports input; `None` if nothing does.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.queue {
            Queue::Xdp(queue) => Some(queue.socket.as_fd()),
            Queue::Memif(port) => Some(port.doorbell()),
            Queue::Dpdk(_) => None,
        }
    }

    /// The descriptor on which the other end says that it leaves, if there is one.
    pub(crate) fn peer(&self) -> Option<BorrowedFd<'_>> {
        match &self.queue {
            Queue::Xdp(_) | Queue::Dpdk(_) => None,
            Queue::Memif(port) => Some(port.control()),
        }
    }

    /// Hears what the other end says.
    ///
    /// # Errors
    ///
    /// It has left, or has broken the rules.
    pub(crate) fn check_peer(&mut self) -> io::Result<()> {
        match &mut self.queue {
            Queue::Xdp(_) | Queue::Dpdk(_) => Ok(()),
            Queue::Memif(port) => port.check_peer(),
        }
    }

    /// Whether the other end has written what cannot be. Then [`FramePort::check_peer`] says so.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(&self.queue, Queue::Memif(port) if port.is_broken())
    }

    /// Whether frames wait that only [`FramePort::kick`] sends.
    pub(crate) fn needs_kick(&self) -> bool {
        self.is_stuck
            || match &self.queue {
                Queue::Xdp(queue) => queue.socket.has_waiting(),
                Queue::Memif(_) => false,
                Queue::Dpdk(port) => port.waiting() > 0,
            }
    }

    /// Sends what the driver has.
    pub(crate) fn kick(&mut self) -> io::Result<()> {
        match &mut self.queue {
            Queue::Xdp(queue) => queue.socket.flush()?,
            Queue::Memif(port) => port.flush()?,
            Queue::Dpdk(port) => {
                port.flush();
            }
        }
        self.is_stuck = false;
        Ok(())
    }

    /// Frames that the driver dropped instead of sending them.
    pub(crate) fn dropped(&self) -> u64 {
        match &self.queue {
            Queue::Xdp(queue) => queue.socket.dropped(),
            Queue::Memif(_) => 0,
            Queue::Dpdk(port) => port.counters().transmit_errors,
        }
    }

    /// Frames received and refused since the last call.
    pub(crate) fn take_refused(&mut self) -> RefusedFrames {
        std::mem::take(&mut self.refused)
    }

    /// Receives at most `at_most` frames into `buffer`, and returns how many. Each may take [`FramePort::slot_bytes`].
    pub(crate) fn receive(&mut self, messages: &mut ReceivedBatch, buffer: &mut [u8], at_most: usize) -> usize {
        let at_most = at_most.min(MAX_BATCH);
        let mut arrivals = Arrivals {
            messages,
            buffer,
            used: 0,
            received: 0,
            own: self.own,
            group: self.group,
            refused: &mut self.refused,
        };
        match &mut self.queue {
            Queue::Xdp(queue) => {
                queue.socket.receive(at_most, |frame| arrivals.add(frame.len(), |slot| slot.copy_from_slice(frame)));
            }
            Queue::Memif(port) => {
                let malformed = port.malformed();
                port.receive(at_most, |frame| {
                    arrivals.add(frame.len(), |slot| {
                        frame.copy_to(slot);
                    });
                });
                arrivals.refused.malformed += port.malformed() - malformed;
            }
            Queue::Dpdk(port) => {
                port.receive(at_most, |frame| arrivals.add(frame.len(), |slot| slot.copy_from_slice(frame)));
            }
        }
        arrivals.received
    }

    /// Takes one frame to send, in two parts; false if there is no room now, or the port must say first why it sends
    /// nothing. [`FramePort::kick`] sends it.
    #[inline]
    pub(crate) fn put(&mut self, destination: Option<Remote>, header: &[u8], slice: &[u8], padding: &[u8]) -> bool {
        let to = match destination {
            Some(Remote::Ethernet(LinkAddress { address, .. })) => address,
            Some(Remote::Udp(_)) => return false,
            None => match self.peer {
                Some(peer) => peer,
                None => return false,
            },
        };
        if self.is_stuck || header.len() + slice.len() > self.payload_bytes_max() {
            return false;
        }
        let parts = [&to.0, &self.own.address.0, &ETHERTYPE_NDN.to_be_bytes()[..], header, slice, padding];
        match &mut self.queue {
            Queue::Xdp(queue) => queue.socket.send(&parts),
            Queue::Memif(port) => port.send(&parts),
            Queue::Dpdk(port) => port.send(&parts),
        }
    }

    /// Sends frames as far as there is room, and returns how many.
    ///
    /// # Errors
    ///
    /// The interface sends nothing. What the call before took may still leave when it is up again.
    pub(crate) fn send<'a>(&mut self, outgoing: impl Iterator<Item = Outgoing<'a>>) -> io::Result<usize> {
        if self.needs_kick() {
            self.kick()?;
        }
        let mut sent = 0;
        for Outgoing { bytes, destination, .. } in outgoing.take(MAX_BATCH) {
            if bytes.len() > self.payload_bytes_max() {
                if sent == 0 {
                    return Err(rustix::io::Errno::MSGSIZE.into());
                }
                break;
            }
            if !self.put(destination.map(|to| to.remote), bytes, &[], &[]) {
                break;
            }
            sent += 1;
        }
        match self.kick() {
            Ok(()) => Ok(sent),
            Err(error) if sent == 0 => Err(error),
            Err(_) => {
                self.is_stuck = true;
                Ok(sent)
            }
        }
    }

    /// Sends what [`FramePort::put`] took. If that fails, the next [`FramePort::send`] says why.
    pub(crate) fn send_put(&mut self) {
        self.is_stuck = self.kick().is_err();
    }
}

impl FramePort {
    /// A device of DPDK, as the interface of this number.
    pub(crate) fn of_device(port: namewire_dpdk::Port, interface: u32) -> Self {
        let own = LinkAddress { interface, address: MacAddress(port.address()) };
        FramePort::new(Queue::Dpdk(Box::new(port)), own, None)
    }
}

impl From<namewire_memif::Port> for FramePort {
    fn from(port: namewire_memif::Port) -> Self {
        let own = LinkAddress { interface: 0, address: memory::ROUTER };
        FramePort::new(Queue::Memif(Box::new(port)), own, Some(memory::APPLICATION))
    }
}

/// The frames of one call, as they come.
struct Arrivals<'a> {
    messages: &'a mut ReceivedBatch,
    buffer: &'a mut [u8],
    used: usize,
    received: usize,
    own: LinkAddress,
    group: Option<MacAddress>,
    refused: &'a mut RefusedFrames,
}

impl Arrivals<'_> {
    /// Copies a frame of this many bytes, if it can be NDN's.
    #[inline]
    fn add(&mut self, bytes: usize, copy: impl FnOnce(&mut [u8])) {
        let Some(slot) = self.buffer.get_mut(self.used..self.used + bytes) else {
            self.refused.malformed += 1;
            return;
        };
        copy(slot);
        let Some((header, payload)) = slot.split_first_chunk::<HEADER_BYTES>() else {
            self.refused.malformed += 1;
            return;
        };
        let [a, b, c, d, e, f, g, h, i, j, k, l, type_high, type_low] = *header;
        let tag_bytes = match u16::from_be_bytes([type_high, type_low]) {
            ETHERTYPE_NDN => 0,
            ETHERTYPE_VLAN if is_ndn_behind_priority(payload) => TAG_BYTES,
            _ => {
                self.refused.foreign += 1;
                return;
            }
        };
        let (to, from) = (MacAddress([a, b, c, d, e, f]), MacAddress([g, h, i, j, k, l]));
        let from = LinkAddress { interface: self.own.interface, address: from };
        let start = self.used + HEADER_BYTES + tag_bytes;
        self.messages.note_frame(
            self.received,
            start,
            payload.len() - tag_bytes,
            from,
            addressee(to, self.own.address, self.group),
        );
        self.used = (self.used + bytes).next_multiple_of(ALIGNMENT_BYTES);
        self.received += 1;
    }
}

/// Whether the rest of a tag says that the frame belongs to no VLAN, and NDN follows.
fn is_ndn_behind_priority(rest: &[u8]) -> bool {
    let Some(([tci_high, tci_low, type_high, type_low], _)) = rest.split_first_chunk::<TAG_BYTES>() else {
        return false;
    };
    u16::from_be_bytes([*tci_high, *tci_low]) & VLAN_ID == 0
        && u16::from_be_bytes([*type_high, *type_low]) == ETHERTYPE_NDN
}

fn addressee(to: MacAddress, own: MacAddress, group: Option<MacAddress>) -> Addressee {
    if to == own {
        Addressee::Us
    } else if group == Some(to) || to == MacAddress([0xff; 6]) {
        Addressee::Group
    } else {
        Addressee::Others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_to_other_stations_and_groups_are_not_for_us() {
        let [own, other, group, foreign] =
            [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [1, 0, 0x5e, 0, 0x17, 0xaa], [1, 0, 0x5e, 0, 0, 1]]
                .map(MacAddress);
        for (to, joined, expected) in [
            (own, None, Addressee::Us),
            (other, Some(group), Addressee::Others),
            (group, Some(group), Addressee::Group),
            (group, None, Addressee::Others),
            (foreign, Some(group), Addressee::Others),
            (MacAddress([0xff; 6]), None, Addressee::Group),
        ] {
            assert_eq!(addressee(to, own, joined), expected, "{to}, {joined:?}");
        }
    }

    /// A port's address, and a station's.
    const OWN: LinkAddress = LinkAddress { interface: 3, address: MacAddress([2, 0, 0, 0, 0, 1]) };
    const FROM: [u8; 6] = [2, 0, 0, 0, 0, 7];

    /// What comes of these frames: the buffer, the messages in it, and what was refused.
    fn arrive(frames: &[Vec<u8>], buffer: &mut [u8], messages: &mut ReceivedBatch) -> (usize, RefusedFrames) {
        let mut refused = RefusedFrames::default();
        let mut arrivals =
            Arrivals { messages, buffer, used: 0, received: 0, own: OWN, group: None, refused: &mut refused };
        frames.iter().for_each(|frame| arrivals.add(frame.len(), |slot| slot.copy_from_slice(frame)));
        (arrivals.received, refused)
    }

    /// The tags are written as IEEE 802.1Q has them: priority 3 bits, eligibility to be dropped 1, VLAN id 12.
    #[test]
    fn a_priority_tag_is_skipped_and_a_vlan_is_foreign() {
        let frame = |tag: &[u8], rest: &[u8]| [&OWN.address.0, &FROM, tag, rest].concat();
        let ndn = [&[0x86, 0x24][..], &[5; 46]].concat();
        let frames = [
            frame(&[0x81, 0, 0, 0], &ndn),
            frame(&[0x81, 0, 0xF0, 0], &ndn),
            frame(&[0x81, 0, 0, 1], &ndn),
            frame(&[0x81, 0, 0xE1, 0], &ndn),
            frame(&[0x81, 0, 0, 0, 0x81, 0, 0, 0], &ndn), // two tags
            frame(&[0x81, 0, 0, 0], &[0x08, 0]),          // IPv4
            frame(&[0x81, 0, 0, 0], &[0x86]),
            frame(&[0x81, 0], &[]),
            frame(&[0x81, 0, 0, 0], &ndn[..2]), // nothing behind it
        ];
        let (mut messages, mut buffer) = (ReceivedBatch::new(), vec![0; 1_000]);
        assert_eq!(arrive(&frames, &mut buffer, &mut messages), (3, RefusedFrames { malformed: 0, foreign: 6 }));
        let packets: Vec<&[u8]> = (0..3).map(|i| &buffer[messages.start(i)..][..messages.len(i)]).collect();
        assert_eq!(packets, [&[5; 46][..], &[5; 46], &[]]);
    }

    #[test]
    fn frames_stand_close_together_and_others_leave_no_trace() {
        let frame = |kind: u16, packet: &[u8]| [&OWN.address.0, &FROM, &kind.to_be_bytes()[..], packet].concat();
        let frames = [
            frame(ETHERTYPE_NDN, &[1; 46]),
            frame(0x0800, &[2; 46]),
            frame(0x8100, &[3; 46]),
            vec![4; HEADER_BYTES - 1],
            Vec::new(),
            frame(ETHERTYPE_NDN, &[]),
            frame(ETHERTYPE_NDN, &[5; 300]),
            frame(ETHERTYPE_NDN, &[6; 1_000]), // no room is left
        ];
        let (mut messages, mut buffer) = (ReceivedBatch::new(), vec![0; 500]);
        assert_eq!(arrive(&frames, &mut buffer, &mut messages), (3, RefusedFrames { malformed: 3, foreign: 2 }));
        let packets: Vec<&[u8]> = (0..3).map(|i| &buffer[messages.start(i)..][..messages.len(i)]).collect();
        assert_eq!(packets, [&[1; 46][..], &[], &[5; 300]]);
        assert_eq!([0, 1, 2].map(|i| messages.start(i)), [14, 64 + 14, 128 + 14]);
        let expected = Remote::Ethernet(LinkAddress { interface: 3, address: MacAddress(FROM) });
        assert!((0..3).all(|i| messages.source(i) == Some(expected) && messages.addressee(i) == Addressee::Us));
    }
}
