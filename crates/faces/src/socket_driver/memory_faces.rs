//! Faces of applications that share memory with the router ([`crate::memory`]).

use namewire_packet::FaceId;

use super::{Channel, SocketDriver};
use crate::datagram_port::DatagramPort;
use crate::datagram_socket::Peers;
use crate::frame_port::FramePort;
use crate::memory::Port;
use crate::{AddFaceError, CloseReason, FaceInfo, LinkOptions};

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

    /// The other end of a port has said something. If it leaves, its face closes.
    pub(super) fn check_peer(&mut self, index: usize) {
        let Some(socket) = self.sockets.get_mut(index) else { return };
        let Err(error) = socket.port.check_peer() else { return };
        let Peers::Application { face } = socket.peers else { return };
        let reason = match error.kind() {
            std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::ConnectionAborted => CloseReason::PeerClosed,
            kind => CloseReason::Io(kind),
        };
        self.close(face, reason);
    }
}
