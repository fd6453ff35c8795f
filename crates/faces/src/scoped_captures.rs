//! The captures of a worker that choose faces by a scope, also faces that are made later.

use namewire_packet::FaceId;

use crate::FaceInfo;
use crate::capture::{CaptureTap, FaceTap};

/// What decides which faces of a worker are captured without being named.
#[derive(Default)]
pub(crate) struct Captures {
    /// The captures that take faces by themselves, also new ones.
    pub(crate) taps: Vec<CaptureTap>,
    /// The faces of clients that capture, of all workers. They are in no capture.
    pub(crate) clients: Vec<FaceId>,
}

impl Captures {
    /// The tap of a face in this capture, if the capture takes the face.
    pub(crate) fn tap(&self, capture: &CaptureTap, face: FaceId, info: &FaceInfo) -> Option<FaceTap> {
        let is_taken = capture.options().scope.takes(info) && !self.clients.contains(&face);
        is_taken.then(|| capture.of_face(face, info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{CaptureOptions, CaptureScope, capture};
    use namewire_packet::{
        MAX_PACKET_BYTES,
        nfd::{FacePersistency, FaceScope, FaceUri, LinkType},
    };

    #[test]
    fn a_capture_of_all_faces_takes_none_of_a_client() {
        let options = CaptureOptions { id: 7, scope: CaptureScope::All, one_in: 1, snap_bytes: 10, queue_bytes: 1000 };
        let (tap, _reader) = capture(options);
        let info = FaceInfo {
            remote: FaceUri::Internal,
            local: FaceUri::Internal,
            scope: FaceScope::NonLocal,
            persistency: FacePersistency::OnDemand,
            link_type: LinkType::PointToPoint,
            mtu: MAX_PACKET_BYTES,
            credentials: None,
        };
        let captures = Captures { clients: vec![FaceId(256)], ..Captures::default() };
        let takes = |face| captures.tap(&tap, face, &info).is_some();
        assert!(takes(FaceId(300)) && !takes(FaceId(256)));
    }
}
