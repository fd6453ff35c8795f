//! Faces of applications that share memory with the router ([`crate::memory`]).

use std::io::ErrorKind;

use namewire_links::LinkOptions;
use namewire_packet::FaceId;

use super::{Channel, SocketDriver};
use crate::datagram_port::DatagramPort;
use crate::datagram_socket::Peers;
use crate::frame_port::FramePort;
use crate::memory::Port;
use crate::{AddFaceError, CloseReason, FaceInfo};

/// Frames taken from the memory of an application that has left: as many as the largest ring has.
const LAST_FRAMES_MAX: usize = 1 << 14;

impl SocketDriver {
    /// Takes over the memory of a connected application as `face`.
    ///
    /// # Errors
    /// [`AddFaceError::Exists`] if the id is in use; [`AddFaceError::FaceLimit`] if the worker has no room for a face;
    /// [`AddFaceError::Io`] if its descriptors cannot be watched.
    pub fn add_memory_face(&mut self, face: FaceId, port: Port, info: FaceInfo) -> Result<(), AddFaceError> {
        self.check_room(face, &info)?;
        let port = DatagramPort::Frames(Box::new(FramePort::from(port)));
        let socket = self.watch_datagrams(port, Peers::Application { face })?;
        let options = LinkOptions {
            fragmentation: true,
            mtu: info.mtu,
            reassembly_bytes: self.config.reassembly_bytes,
            policy: self.config.link_policy,
            // A restarted router must not continue the numbers of its last run.
            first_sequence: self.now_ns,
            ..LinkOptions::default()
        };
        self.insert_face(face, Channel::Datagram { socket, destination: None }, options, info);
        Ok(())
    }

    /// The other end of a port has said something. If it leaves, its face closes once its last frames are read.
    pub(super) fn check_peer(&mut self, index: usize) {
        let Some(socket) = self.sockets.get_mut(index) else { return };
        let Err(error) = socket.port.check_peer() else { return };
        let Peers::Application { face } = socket.peers else { return };
        let reason = match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => CloseReason::PeerClosed,
            kind => CloseReason::Io(kind),
        };
        if !socket.port.has_input() || socket.port.is_broken() {
            return self.close(face, reason);
        }
        // The memory stays writable for who has left, so there is a limit.
        socket.last_frames.get_or_insert(LAST_FRAMES_MAX);
        if !std::mem::replace(&mut socket.is_ready, true) {
            self.queue_datagrams(index);
        }
    }

    /// A port has had its turn and gave so many frames. Closes its face if the other end has left and nothing more
    /// comes, or if it has written what cannot be.
    pub(super) fn note_end(&mut self, index: usize, received: usize) {
        let Some(socket) = self.sockets.get_mut(index) else { return };
        if socket.port.is_broken() {
            return self.check_peer(index);
        }
        let Some(left) = &mut socket.last_frames else { return };
        *left = left.saturating_sub(received);
        let is_over = *left == 0 || !socket.port.has_input();
        if let Peers::Application { face } = socket.peers
            && is_over
        {
            self.close(face, CloseReason::PeerClosed);
        }
    }
}
