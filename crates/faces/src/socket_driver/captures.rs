//! The captures that the faces of a worker are in.

use namewire_packet::FaceId;

use super::SocketDriver;
use super::face::Face;
use crate::capture::CaptureTap;
use crate::scoped_captures::Captures;

impl SocketDriver {
    /// Captures the faces that the capture's scope takes, and those that are made later.
    pub fn capture_scope(&mut self, tap: CaptureTap) {
        let captures = &self.captures;
        self.faces.each_mut(|face| offer(captures, &tap, face));
        self.captures.taps.push(tap);
    }

    /// Captures this face. The reader hears if there is no such face.
    pub fn capture_face(&mut self, id: FaceId, tap: &CaptureTap) {
        match self.faces.get_mut(id) {
            Some(face) if face.link.has_tap(tap.options().id) => {}
            Some(face) => face.link.add_tap(tap.of_face(id, &face.info)),
            None => tap.tell_gone(id),
        }
    }

    /// Captures what this worker's lane of a face carries, too.
    pub fn capture_lane(&mut self, face: FaceId, tap: &CaptureTap) {
        for link in self.lane_links(face).to_vec() {
            self.faces.change(link, |link| {
                if !link.link.has_tap(tap.options().id) {
                    link.link.add_tap(tap.of_face(face, &link.info));
                }
            });
        }
    }

    /// These are the faces of all clients that capture now. From now on they are in no capture. A face that was in the
    /// list before does not come back into a capture that is under way.
    pub fn set_capture_clients(&mut self, clients: Vec<FaceId>) {
        for id in &clients {
            if let Some(face) = self.faces.get_mut(*id) {
                face.link.leave_captures();
            }
        }
        self.captures.clients = clients;
    }

    /// Ends a capture.
    pub fn end_capture(&mut self, capture_id: u64) {
        self.captures.taps.retain(|tap| tap.options().id != capture_id);
        self.faces.each_mut(|face| face.link.end_tap(capture_id));
    }

    /// Adds a new face to the captures that take it.
    pub(super) fn tap_new_face(&self, face: &mut Face) {
        self.captures.taps.iter().for_each(|tap| offer(&self.captures, tap, face));
    }
}

/// Adds a face to a capture if the capture takes it.
fn offer(captures: &Captures, capture: &CaptureTap, face: &mut Face) {
    if let Some(tap) = captures.tap(capture, face.part_of, &face.info) {
        face.link.add_tap(tap);
    }
}
