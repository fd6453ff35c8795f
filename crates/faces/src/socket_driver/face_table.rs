//! The faces of a worker, by number and by remote.

use hashbrown::HashMap;
use namewire_packet::FaceId;

use super::face::{Channel, Face};
use crate::LinkPolicy;
use crate::remote::{Destination, Remote};

#[derive(Default)]
pub(super) struct FaceTable {
    // N.B. boxed: a face takes about 700 bytes, and the map moves its values as it grows.
    faces: HashMap<FaceId, Box<Face>>,
    /// Faces on shared sockets, by socket (index of the socket table) and remote.
    remotes: HashMap<(usize, Remote), FaceId>,
    /// Faces with something to publish or flush.
    touched: Vec<FaceId>,
    /// Faces with reliability on.
    reliable_faces: usize,
}

impl FaceTable {
    pub(super) fn len(&self) -> usize {
        self.faces.len()
    }

    #[inline]
    pub(super) fn get(&self, id: FaceId) -> Option<&Face> {
        self.faces.get(&id).map(|face| &**face)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: FaceId) -> Option<&mut Face> {
        self.faces.get_mut(&id).map(|face| &mut **face)
    }

    /// All faces, in arbitrary order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Face> {
        self.faces.values().map(|face| &**face)
    }

    /// Calls `change` with each face, in arbitrary order.
    pub(super) fn each_mut(&mut self, change: impl FnMut(&mut Face)) {
        self.faces.values_mut().map(|face| &mut **face).for_each(change);
    }

    /// The face, marked to be published and flushed at the end of the turn.
    #[inline]
    pub(super) fn touch(&mut self, id: FaceId) -> Option<&mut Face> {
        let face = self.faces.get_mut(&id)?;
        if !face.is_touched {
            face.is_touched = true;
            self.touched.push(id);
        }
        Some(face)
    }

    /// The face for a remote of a shared socket.
    #[inline]
    pub(super) fn of_remote(&self, socket: usize, remote: Remote) -> Option<FaceId> {
        self.remotes.get(&(socket, remote)).copied()
    }

    /// All faces of a socket.
    pub(super) fn of_socket(&self, index: usize) -> Vec<FaceId> {
        let is_of = |channel: &Channel| matches!(channel, Channel::Datagram { socket, .. } if *socket == index);
        self.faces.iter().filter(|(_, face)| is_of(&face.channel)).map(|(id, _)| *id).collect()
    }

    pub(super) fn insert(&mut self, face: Face) {
        self.reliable_faces += usize::from(face.link.is_reliable());
        if let Channel::Datagram { socket, destination: Some(Destination { remote, .. }) } = face.channel {
            self.remotes.insert((socket, remote), face.id);
        }
        self.faces.insert(face.id, Box::new(face));
    }

    pub(super) fn remove(&mut self, id: FaceId) -> Option<Box<Face>> {
        let face = self.faces.remove(&id)?;
        self.reliable_faces -= usize::from(face.link.is_reliable());
        if let Channel::Datagram { socket, destination: Some(Destination { remote, .. }) } = face.channel {
            self.remotes.remove(&(socket, remote));
        }
        Some(face)
    }

    /// Changes a face; false if there is none.
    pub(super) fn change(&mut self, id: FaceId, change: impl FnOnce(&mut Face)) -> bool {
        self.get_mut(id).map(change).is_some()
    }

    pub(super) fn set_policy(&mut self, id: FaceId, policy: LinkPolicy) -> bool {
        let Some(face) = self.faces.get_mut(&id) else { return false };
        self.reliable_faces -= usize::from(face.link.is_reliable());
        face.link.set_policy(policy);
        self.reliable_faces += usize::from(face.link.is_reliable());
        true
    }

    /// Gives memory back that many more faces needed.
    pub(super) fn rest(&mut self) {
        if self.faces.len() * 8 < self.faces.capacity() {
            self.faces.shrink_to(2 * self.faces.len());
            self.remotes.shrink_to(2 * self.remotes.len());
            self.touched.shrink_to(2 * self.faces.len());
        }
    }

    /// The touched faces with reliability on, by their place in the list. Looks at none while no face has it on.
    pub(super) fn reliable_touched(&self, from: usize) -> Option<(usize, FaceId)> {
        if self.reliable_faces == 0 {
            return None;
        }
        let is_reliable = |id: &FaceId| self.faces.get(id).is_some_and(|face| face.link.is_reliable());
        let place = from + self.touched.get(from..)?.iter().position(is_reliable)?;
        Some((place, self.touched[place]))
    }

    /// Takes the list of touched faces, leaving it empty. [`FaceTable::keep_list`] takes its memory back.
    pub(super) fn take_touched(&mut self) -> Vec<FaceId> {
        std::mem::take(&mut self.touched)
    }

    /// Keeps the memory of an empty list.
    pub(super) fn keep_list(&mut self, empty: Vec<FaceId>) {
        self.touched = empty;
    }
}
