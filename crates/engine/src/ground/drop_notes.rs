//! Drop notes: which packet of a batch was dropped, and why?
//!
//! [`Counters`] count how often a reason occurred. The notes name the dropped frames, so that the caller can show the
//! last dropped packets with their names. They are kept until the next call of the engine.
//!
//! Cost: one store for each packet, and one for each drop.
//!
//! Limit: [`DROP_NOTES_MAX`] notes of one call. Further drops of that call are only counted.

use crate::{Counters, DropReason, ground::order::BATCH_PACKETS};
use arrayvec::ArrayVec;
use namewire_packet::FaceId;
use std::ops::{Deref, DerefMut};

/// Most drops that one call notes: as many as a batch has packets.
const DROP_NOTES_MAX: usize = BATCH_PACKETS;

/// A packet that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropNote {
    /// Its frame in the batch, by index. `None`: a timer or a change of faces dropped a packet that had come earlier.
    pub frame: Option<u16>,
    /// Why.
    pub reason: DropReason,
}

/// The counters of an engine, with notes of what they count.
#[derive(Default)]
pub(crate) struct Counting {
    counters: Counters,
    /// The frame that is processed now.
    frame: Option<u16>,
    notes: ArrayVec<DropNote, DROP_NOTES_MAX>,
}

impl Counting {
    /// Forgets the notes: a new call begins, and no frame is processed yet.
    pub(crate) fn begin(&mut self) {
        self.frame = None;
        self.notes.clear();
    }

    /// What is dropped from now on is this frame.
    #[inline(always)]
    pub(crate) fn begin_frame(&mut self, frame: u16) {
        self.frame = Some(frame);
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.counters.drops[reason as usize] += 1;
        let _ = self.notes.try_push(DropNote { frame: self.frame, reason }); // beyond the limit it is only counted
    }

    pub(crate) fn cut(&mut self, face: FaceId) {
        self.drop(DropReason::FaceShareUsed);
        self.counters.faces_cut.add(face, 1);
    }

    pub(crate) fn notes(&self) -> &[DropNote] {
        &self.notes
    }
}

impl Deref for Counting {
    type Target = Counters;

    fn deref(&self) -> &Counters {
        &self.counters
    }
}

impl DerefMut for Counting {
    fn deref_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }
}
