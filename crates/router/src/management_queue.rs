//! The queue of messages for management, fair to all faces even if one application sends commands without end.
//!
//! Each face has a queue of its own, and these queues are served in turn, one message each. So a command of a face that
//! sends few commands waits for at most one message of every other face. The messages of one face that may wait are at
//! most:
//!
//! ```text
//! 4 · free places
//! ```
//!
//! So one face that floods takes at most four fifths of the queue, n such faces take 4/(1 + 4 n) each, and newcomers
//! find room (the rule of the PIT, [`namewire_engine::face_share`]). If a message finds no place, the worker that
//! brought it counts it (`router.management-queue-full`), and this queue counts it by face (`management-cut.face-N`).
//!
//! Answers to management's own Interests have a queue of their own. Limit: [`CAPACITY`]. Cost: an operation takes a
//! lock, while it inserts one message or removes one batch.

use crate::messages::ToControl;
use namewire_engine::FacesCut;
use namewire_packet::FaceId;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// Most messages that wait, over all faces.
const CAPACITY: usize = 4096;

/// Places that a face may take for each free place.
const PLACES_PER_FREE: usize = 4;

/// See the module documentation.
#[derive(Default)]
pub(crate) struct ManagementQueue {
    lines: Mutex<Lines>,
    arrived: Notify,
}

#[derive(Default)]
struct Lines {
    /// No line is empty.
    by_face: HashMap<FaceId, VecDeque<ToControl>>,
    /// Faces with a line, in the order of their turns.
    turns: VecDeque<FaceId>,
    waiting: usize,
    cut: FacesCut,
}

impl ManagementQueue {
    /// Appends a message to the line of the face that it came from, or gives it back: the face has its share already.
    pub(crate) fn push(&self, face: FaceId, message: ToControl) -> Result<(), Box<ToControl>> {
        let mut lines = self.lines();
        let Lines { by_face, turns, waiting, cut } = &mut *lines;
        let free = CAPACITY - *waiting;
        if by_face.get(&face).map_or(0, VecDeque::len) >= free * PLACES_PER_FREE {
            cut.add(face, 1);
            return Err(Box::new(message));
        }
        let line = by_face.entry(face).or_insert_with(|| {
            turns.push_back(face);
            VecDeque::new()
        });
        line.push_back(message);
        *waiting += 1;
        drop(lines);
        self.arrived.notify_one();
        Ok(())
    }

    /// The next messages in turn, at most `most`.
    pub(crate) fn take(&self, most: usize) -> Vec<ToControl> {
        let mut lines = self.lines();
        let count = lines.waiting.min(most);
        (0..count).map_while(|_| lines.next()).collect()
    }

    /// Waits for the next messages in turn. Dropping the future loses nothing.
    pub(crate) async fn next(&self, most: usize) -> Vec<ToControl> {
        loop {
            let arrived = self.arrived.notified();
            let taken = self.take(most);
            if !taken.is_empty() {
                return taken;
            }
            arrived.await;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines().waiting == 0
    }

    /// The faces whose messages found no place most often.
    pub(crate) fn cut(&self) -> FacesCut {
        self.lines().cut
    }

    // After a panic the lines are still whole, because only calls that cannot fail change them.
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn next(&mut self) -> Option<ToControl> {
        let face = self.turns.pop_front()?;
        let line = self.by_face.get_mut(&face)?;
        let message = line.pop_front();
        if line.is_empty() {
            self.by_face.remove(&face);
        } else {
            self.turns.push_back(face);
        }
        self.waiting -= usize::from(message.is_some());
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &ManagementQueue, face: u64) -> bool {
        let incoming = FaceId(face);
        queue.push(incoming, ToControl::Interest { incoming, pit_token: None, packet: Vec::new() }).is_ok()
    }

    fn faces(messages: &[ToControl]) -> Vec<u64> {
        let face = |message: &ToControl| match message {
            ToControl::Interest { incoming, .. } => incoming.0,
            _ => panic!("another message"),
        };
        messages.iter().map(face).collect()
    }

    #[test]
    fn lines_are_served_in_turn() {
        let queue = ManagementQueue::default();
        for face in [300, 300, 300, 300, 301, 302, 301] {
            assert!(push(&queue, face));
        }
        assert_eq!(faces(&queue.take(5)), [300, 301, 302, 300, 301]);
        assert!(push(&queue, 303));
        assert_eq!(faces(&queue.take(9)), [300, 303, 300]);
        assert!(queue.is_empty() && queue.take(9).is_empty() && queue.lines().by_face.is_empty());
    }

    /// The story: one application's commands filled the one queue for all, so that other applications' commands were
    /// dropped.
    #[test]
    fn faces_that_flood_leave_room_for_others_and_are_named() {
        for flooding in 1..=20 {
            let queue = ManagementQueue::default();
            for _ in 0..2 * CAPACITY {
                (0..flooding).for_each(|face| _ = push(&queue, 300 + face));
            }
            for newcomer in 0..10 {
                assert!(push(&queue, 400 + newcomer), "{flooding} flood");
            }
            let turn = faces(&queue.take(flooding as usize + 10));
            assert!((400..410).all(|newcomer| turn.contains(&newcomer)), "each within one round: {turn:?}");
            assert!(queue.lines().waiting <= CAPACITY);
            let mut most = queue.cut().iter().max_by_key(|cut| cut.interests).into_iter();
            assert!(most.all(|cut| (300..300 + flooding).contains(&cut.face.0) && cut.interests > 1000));
        }
    }

    #[tokio::test]
    async fn who_waits_is_told() {
        let queue = ManagementQueue::default();
        let (taken, ()) = tokio::join!(queue.next(9), async { assert!(push(&queue, 300)) });
        assert_eq!(faces(&taken), [300]);
    }
}
