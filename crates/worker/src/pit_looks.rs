//! Looks at the PIT: pending Interests must use the new next hops of prefixes, and react to links that went down or
//! came up.
//!
//! A look is a walk over the whole PIT. If many Interests are pending, one look per registration would leave a worker
//! no time for packets while a routing daemon registers a hundred thousand routes, or while a link flaps. So one look
//! serves all next hops and links that changed since the last look. The next look waits [`PAUSE_PER_LOOK`] times as
//! long as the last one took. If few Interests are pending, this pause is very short.
//!
//! Limit: with more than [`MAX_WAITING`] prefixes and faces waiting, there is no pause.

use namewire_packet::{FaceId, NameBuf};

/// The pause after a look, as a multiple of the look's time: a worker spends at most a fifth of its time on looks.
const PAUSE_PER_LOOK: u64 = 4;

/// Prefixes and faces that wait for the end of a pause.
const MAX_WAITING: usize = 65_536;

/// See the module documentation.
#[derive(Default)]
pub(crate) struct PitLooks {
    waiting: News,
    not_before_ns: u64,
}

/// What one look is for. When it is due, each list is in ascending order, without repetition.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Links that went down. A link that came up again is in both lists: what was sent into it is lost.
    pub(crate) down: Vec<FaceId>,
    /// Links that came up.
    pub(crate) up: Vec<FaceId>,
    /// Next hops that prefixes have gained.
    pub(crate) gained: Vec<(NameBuf, FaceId)>,
}

impl PitLooks {
    pub(crate) fn add_gained(&mut self, gained: &[(NameBuf, FaceId)]) {
        self.waiting.gained.extend_from_slice(gained);
    }

    pub(crate) fn add_down(&mut self, faces: &[FaceId]) {
        self.waiting.down.extend_from_slice(faces);
    }

    pub(crate) fn add_up(&mut self, faces: &[FaceId]) {
        self.waiting.up.extend_from_slice(faces);
    }

    /// The time of the next look.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        let News { down, up, gained } = &self.waiting;
        match down.len() + up.len() + gained.len() {
            0 => None,
            MAX_WAITING.. => Some(0),
            _ => Some(self.not_before_ns),
        }
    }

    /// Everything that waits, if it is time to look.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<News> {
        self.deadline_ns().filter(|at_ns| *at_ns <= now_ns)?;
        let mut due = std::mem::take(&mut self.waiting);
        put_in_order(&mut due.down);
        put_in_order(&mut due.up);
        put_in_order(&mut due.gained);
        Some(due)
    }

    /// Records a look that was made.
    pub(crate) fn note_look(&mut self, began_ns: u64, ended_ns: u64) {
        let took_ns = ended_ns.saturating_sub(began_ns);
        self.not_before_ns = ended_ns.saturating_add(took_ns.saturating_mul(PAUSE_PER_LOOK));
    }
}

fn put_in_order<T: Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    list.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gained(uri: &str, face: u64) -> (NameBuf, FaceId) {
        (uri.parse().expect("a name"), FaceId(face))
    }

    fn news(gained: Vec<(NameBuf, FaceId)>) -> News {
        News { gained, ..News::default() }
    }

    #[test]
    fn one_look_serves_all_that_came_during_the_pause() {
        let mut looks = PitLooks::default();
        assert_eq!((looks.deadline_ns(), looks.take_due(5)), (None, None));
        looks.add_gained(&[gained("/b", 1)]);
        assert_eq!(looks.take_due(5), Some(news(vec![gained("/b", 1)])), "nothing to wait for");
        looks.note_look(5, 15);
        looks.add_gained(&[gained("/b", 2), gained("/b", 1)]);
        looks.add_gained(&[gained("/a", 1), gained("/b", 1)]);
        for face in [5, 4, 5] {
            looks.add_down(&[FaceId(face)]);
        }
        looks.add_up(&[FaceId(5)]);
        assert_eq!((looks.deadline_ns(), looks.take_due(54)), (Some(55), None));
        let due = News {
            down: vec![FaceId(4), FaceId(5)],
            up: vec![FaceId(5)],
            gained: vec![gained("/a", 1), gained("/b", 1), gained("/b", 2)],
        };
        assert_eq!(looks.take_due(55), Some(due));
        assert_eq!(looks.deadline_ns(), None);
    }

    #[test]
    fn too_many_do_not_wait() {
        let mut looks = PitLooks::default();
        looks.note_look(0, 1_000_000_000);
        looks.add_gained(&vec![gained("/a", 1); MAX_WAITING - 1]);
        assert_eq!(looks.take_due(1_000_000_001), None);
        looks.add_gained(&[gained("/b", 1)]);
        assert_eq!(looks.take_due(1_000_000_001), Some(news(vec![gained("/a", 1), gained("/b", 1)])));
    }
}
