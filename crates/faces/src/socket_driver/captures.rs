//! The captures that the faces of a worker are in.

use namewire_packet::FaceId;

use super::SocketDriver;
use super::face::Face;
use crate::capture::CaptureTap;

impl SocketDriver {
    /// Captures the faces that the capture's scope takes, and those that are made later.
    pub fn capture_scope(&mut self, tap: CaptureTap) {
        self.faces.each_mut(|face| add_tap(&tap, face));
        self.captures.push(tap);
    }

    /// Captures this face. The reader hears if there is no such face.
    pub fn capture_face(&mut self, id: FaceId, tap: &CaptureTap) {
        match self.faces.get_mut(id) {
            Some(face) if face.link.has_tap(tap.options().id) => {}
            Some(face) => face.link.add_tap(tap.of_face(id, &face.info)),
            None => tap.tell_gone(id),
        }
    }

    /// Ends a capture.
    pub fn end_capture(&mut self, capture_id: u64) {
        self.captures.retain(|tap| tap.options().id != capture_id);
        self.faces.each_mut(|face| face.link.end_tap(capture_id));
    }

    /// Adds a new face to the captures that take it.
    pub(super) fn tap_new_face(&self, face: &mut Face) {
        self.captures.iter().for_each(|tap| add_tap(tap, face));
    }
}

fn add_tap(tap: &CaptureTap, face: &mut Face) {
    if tap.takes(face.id, &face.info) {
        face.link.add_tap(tap.of_face(face.id, &face.info));
    }
}
