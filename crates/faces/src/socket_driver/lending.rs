//! Passes large packets from the receive arena to the kernel without a copy.
//!
//! [`SocketDriver::send`] copies a packet into the queue of its face, because it cannot keep the slice until the next
//! flush. Within one batch, slices can be kept: [`SocketDriver::lend`] collects slices of large packets to streams.
//! [`SocketDriver::finish`] passes the slices of each face to the kernel in one vectored write, after the bytes that
//! were queued before. It copies only the bytes that the kernel does not take. So the kernel copies an 8000-byte Data
//! into the arena and out of it; the only other copy is made for the Content Store.
//!
//! ```text
//!   lent     A 8000   B 40   A 8000   C 8000   A 40      in order of lending
//!              │        └─ small and first of its face: queued
//!   writes   A: queue, 8000, 8000, 40     C: queue, 8000
//! ```
//!
//! Datagrams are always queued: they are small, and runs need them back to back.
//!
//! Limits: 128 slices to 8 faces at once. Beyond that, `lend` first finishes the slices that it has.

use std::io::IoSlice;
use std::ops::Range;

use arrayvec::ArrayVec;
use namewire_packet::FaceId;
use namewire_packet::lp::LpHeaders;

use super::sending::HolderOf;
use super::{Channel, SocketDriver};
use crate::LinkDrop;
use crate::stream::MAX_SLICES;

/// Smaller packets are copied unless they follow a lent one.
const LEAST_LENT_BYTES: usize = 2048;

/// Most slices of one packet: its link header and itself.
const SLICES_PER_PACKET: usize = 2;

/// Faces lent to at once.
const MAX_FACES: usize = 8;

/// Packets lent to streams and not yet written. The caller must pass it to [`SocketDriver::finish`].
#[derive(Default)]
pub struct Lent<'a> {
    faces: ArrayVec<LentFace, MAX_FACES>,
    /// Each with the index of its face.
    slices: ArrayVec<(u8, Slice<'a>), MAX_SLICES>,
    /// Link headers; the driver keeps their memory for the next batch.
    headers: Vec<u8>,
}

struct LentFace {
    id: FaceId,
    bytes: usize,
}

enum Slice<'a> {
    Packet(&'a [u8]),
    /// A part of [`Lent::headers`].
    Header(Range<usize>),
}

impl<'a> Lent<'a> {
    fn has_room(&self) -> bool {
        self.slices.len() + SLICES_PER_PACKET <= MAX_SLICES && self.faces.len() < MAX_FACES
    }

    fn face(&self, id: FaceId) -> Option<usize> {
        self.faces.iter().position(|face| face.id == id)
    }

    fn slices_of(&self, face: usize) -> impl Iterator<Item = IoSlice<'_>> {
        let of_face = self.slices.iter().filter(move |(owner, _)| usize::from(*owner) == face);
        of_face.map(|(_, slice)| match slice {
            Slice::Packet(bytes) => IoSlice::new(bytes),
            Slice::Header(range) => IoSlice::new(&self.headers[range.clone()]),
        })
    }
}

impl SocketDriver {
    /// Like [`SocketDriver::send_for`], but may keep `packet` in `lent` instead of copying it. Until
    /// [`SocketDriver::finish`], the caller must use only this function to send to a face in `lent`.
    ///
    /// # Errors
    /// Those of [`SocketDriver::send`].
    pub fn lend<'a>(
        &mut self,
        now_ns: u64,
        face: FaceId,
        headers: &LpHeaders,
        packet: &'a [u8],
        holder_of: HolderOf<'_>,
        lent: &mut Lent<'a>,
    ) -> Result<(), LinkDrop> {
        let lent_before = lent.face(face);
        if packet.len() < LEAST_LENT_BYTES && lent_before.is_none() {
            return self.send_for(now_ns, face, headers, packet, holder_of);
        }
        let lent_bytes = lent_before.map_or(0, |index| lent.faces[index].bytes);
        if !lent.has_room() || !self.takes_lent(face, lent_bytes) {
            self.finish(lent);
        }
        if !self.takes_lent(face, 0) {
            return self.send_for(now_ns, face, headers, packet, holder_of);
        }
        self.now_ns = now_ns;
        if lent.headers.capacity() == 0 {
            lent.headers = std::mem::take(&mut self.outlet.lent_headers);
        }
        let index = lent.face(face).unwrap_or_else(|| {
            lent.faces.push(LentFace { id: face, bytes: 0 });
            lent.faces.len() - 1
        });
        let Some(face) = self.faces.touch(face) else { return Err(LinkDrop::NoSuchFace) };
        let Lent { faces, slices, headers: header_bytes } = lent;
        let bare = headers.packet(packet);
        face.look_at_queue(now_ns, &self.sockets);
        face.link.encode(now_ns, headers, packet, |header, frame| {
            if !header.is_empty() {
                let start = header_bytes.len();
                header_bytes.extend_from_slice(header);
                slices.push((index as u8, Slice::Header(start..header_bytes.len())));
            }
            // A frame of a stream is a whole packet.
            debug_assert_eq!(frame.len(), bare.len());
            slices.push((index as u8, Slice::Packet(bare)));
            faces[index].bytes += header.len() + bare.len();
        })
    }

    /// Writes the lent packets. Queues what the kernel does not take.
    pub fn finish(&mut self, lent: &mut Lent<'_>) {
        for index in 0..lent.faces.len() {
            let id = lent.faces[index].id;
            let Some(face) = self.faces.get_mut(id) else { continue };
            let Channel::Stream(stream) = &mut face.channel else { continue };
            self.outlet.write_lent(&self.poller, id, stream, lent.slices_of(index));
        }
        lent.faces.clear();
        lent.slices.clear();
        lent.headers.clear();
        if lent.headers.capacity() > 0 {
            self.outlet.lent_headers = std::mem::take(&mut lent.headers);
        }
    }

    /// True for a stream to which `lent_bytes` and one more packet can be lent.
    fn takes_lent(&self, face: FaceId, lent_bytes: usize) -> bool {
        let Some(Channel::Stream(stream)) = self.faces.get(face).map(|face| &face.channel) else { return false };
        self.outlet.takes_lent(stream, lent_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DriverConfig, StreamSocket, unix};
    use namewire_packet::lp::PitToken;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    #[test]
    fn the_memory_of_link_headers_is_used_again() {
        let mut driver = SocketDriver::new(DriverConfig::default()).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let info = unix::face_info(&ours, Path::new("/run/nfd/nfd.sock"));
        driver.add_stream(FaceId(300), StreamSocket::Unix(ours), info).unwrap();
        let headers = LpHeaders { pit_token: PitToken::new(b"token!"), ..LpHeaders::default() };
        let mut packet = Vec::new();
        namewire_packet::tlv::write_tlv(&mut packet, 6, &[0; LEAST_LENT_BYTES]);
        let mut memory = None;
        for _ in 0..3 {
            let mut lent = Lent::default();
            driver.lend(0, FaceId(300), &headers, &packet, &|_| None, &mut lent).unwrap();
            let of_batch = lent.headers.as_ptr();
            assert_eq!(*memory.get_or_insert(of_batch), of_batch);
            driver.finish(&mut lent);
            assert_eq!(driver.outlet.lent_headers.as_ptr(), of_batch);
            theirs.read_exact(&mut vec![0; packet.len() + 14]).unwrap();
        }
    }
}
