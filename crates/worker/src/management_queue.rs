//! The queue of messages for management. It is fair to all holders and faces, even if one application floods it with
//! commands.
//!
//! Each face has a separate queue. Holders are served in turn, one message each, and so are the faces of a holder
//! ([`namewire_shares::turns`]). So a command of a user who sends few commands waits for at most one message of every
//! other user, however many connections these have. Local holders and management have a reserve of turns.
//!
//! Places are a pool, `management-queue` ([`namewire_shares::pool`]): a holder that floods takes at most four fifths of
//! what is free for it, and newcomers find room. A face may take a place while it has fewer than its holder may still
//! take. So n faces of a holder that flood one after the other leave 1/6ⁿ of the holder's part. If a message finds no
//! place, its worker counts it (`router.management-queue-full`), and this queue counts it by face
//! (`management-cut.face-N`).
//!
//! Answers to management's own Interests have a separate queue. Limit: [`CAPACITY`]. Cost: an operation takes a lock,
//! while it inserts one message or removes one batch.

use crate::messages::ForManagement;
use namewire_engine::FacesCut;
use namewire_packet::FaceId;
use namewire_shares::{Groups, HolderId, Payer, Pool, PoolConfig, PoolReader, Turns};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// Most messages that wait, over all faces.
const CAPACITY: usize = 4096;

/// See the module documentation.
pub struct ManagementQueue {
    lines: Mutex<Lines>,
    arrived: Notify,
}

struct Lines {
    /// No line is empty.
    by_face: HashMap<FaceId, Line>,
    /// Faces with a line.
    turns: Turns<FaceId>,
    waiting: usize,
    places: Pool,
    cut: FacesCut,
}

/// The messages of a face.
struct Line {
    holder: HolderId,
    messages: VecDeque<ForManagement>,
}

impl ManagementQueue {
    /// Empty, with places for the holders of these groups.
    pub fn new(groups: &Groups) -> Self {
        let capacity = CAPACITY as u64;
        let config = PoolConfig {
            name: "management-queue",
            capacity,
            share_percent: 80,
            management_reserve: capacity / 16,
            local_reserve: capacity / 8,
        };
        let lines = Lines {
            by_face: HashMap::new(),
            turns: Turns::new(1, groups),
            waiting: 0,
            places: Pool::new(config, groups),
            cut: FacesCut::default(),
        };
        ManagementQueue { lines: Mutex::new(lines), arrived: Notify::new() }
    }

    /// The pool, for reports.
    pub fn pool(&self) -> PoolReader {
        self.lines().places.reader()
    }

    /// Appends a message to the line of the face that it came from.
    ///
    /// # Errors
    /// The message, if the face or its holder has its share already.
    pub fn push(&self, face: FaceId, holder: HolderId, message: ForManagement) -> Result<(), Box<ForManagement>> {
        let mut lines = self.lines();
        let Lines { by_face, turns, waiting, places, cut } = &mut *lines;
        let of_face = by_face.get(&face).map_or(0, |line| line.messages.len() as u64);
        let has_share = of_face >= places.room(holder);
        if has_share || places.try_take(holder, 1).is_err() {
            cut.add(face, 1);
            return Err(Box::new(message));
        }
        let line = by_face.entry(face).or_insert_with(|| {
            turns.push(Payer::Holder(holder), face);
            Line { holder, messages: VecDeque::new() }
        });
        line.messages.push_back(message);
        *waiting += 1;
        drop(lines);
        self.arrived.notify_one();
        Ok(())
    }

    /// The next messages in turn, at most `most`.
    pub fn take(&self, most: usize) -> Vec<ForManagement> {
        let mut lines = self.lines();
        let count = lines.waiting.min(most);
        (0..count).map_while(|_| lines.next()).collect()
    }

    /// Waits for the next messages in turn. Dropping the future loses nothing.
    pub async fn next(&self, most: usize) -> Vec<ForManagement> {
        loop {
            let arrived = self.arrived.notified();
            let taken = self.take(most);
            if !taken.is_empty() {
                return taken;
            }
            arrived.await;
        }
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.lines().waiting == 0
    }

    /// The faces whose messages found no place most often.
    pub fn cut(&self) -> FacesCut {
        self.lines().cut
    }

    // After a panic the lines are still whole, because only calls that cannot fail change them.
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn next(&mut self) -> Option<ForManagement> {
        let face = self.turns.begin()?;
        let line = self.by_face.get_mut(&face)?;
        let message = line.messages.pop_front()?;
        self.waiting -= 1;
        self.places.give_back(line.holder, 1);
        let has_more = !line.messages.is_empty();
        if !has_more {
            self.by_face.remove(&face);
        }
        self.turns.end(1, has_more);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> ManagementQueue {
        ManagementQueue::new(&Groups::default())
    }

    /// A message of a face, each of another host.
    fn push(queue: &ManagementQueue, face: u64) -> bool {
        push_of(queue, face, face as usize)
    }

    fn push_of(queue: &ManagementQueue, face: u64, holder: usize) -> bool {
        let (incoming, holder) = (FaceId(face), HolderId::from_index(holder).unwrap());
        queue.push(incoming, holder, ForManagement::Interest { incoming, pit_token: None, packet: Vec::new() }).is_ok()
    }

    fn faces(messages: &[ForManagement]) -> Vec<u64> {
        let face = |message: &ForManagement| match message {
            ForManagement::Interest { incoming, .. } => incoming.0,
            _ => panic!("another message"),
        };
        messages.iter().map(face).collect()
    }

    #[test]
    fn lines_are_served_in_turn() {
        let queue = queue();
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
            let queue = queue();
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

    /// The story: a user with 600 connections had 600 turns for each one of another user, and nearly all places.
    #[test]
    fn a_user_with_many_connections_leaves_room_and_turns() {
        let queue = queue();
        let (greedy, modest) = (10, 11);
        for _ in 0..20 {
            (0..600).for_each(|face| _ = push_of(&queue, 1000 + face, greedy));
        }
        assert!(queue.lines().waiting > CAPACITY / 2);
        (0..3).for_each(|_| assert!(push_of(&queue, 300, modest)));
        let turn = faces(&queue.take(6));
        assert_eq!(turn.iter().filter(|&&face| face == 300).count(), 3, "{turn:?}");
        // A user's own connections leave each other room, also if one has filled its part before the next begins.
        let queue = self::queue();
        for flooding in 301..305 {
            (0..2 * CAPACITY).for_each(|_| _ = push_of(&queue, flooding, modest));
        }
        (0..5).for_each(|_| assert!(push_of(&queue, 306, modest)));
    }

    #[tokio::test]
    async fn who_waits_is_told() {
        let queue = queue();
        let (taken, ()) = tokio::join!(queue.next(9), async { assert!(push(&queue, 300)) });
        assert_eq!(faces(&taken), [300]);
    }
}
