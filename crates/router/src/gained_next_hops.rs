//! Next hops that prefixes have gained, and that pending Interests are still to be shown: how many looks at the PIT
//! do a hundred thousand registrations cost?
//!
//! A look is a walk over the whole PIT. Where many Interests are pending, one per registration would leave a worker
//! no time for packets while a routing daemon starts. So one look serves all that came since the last, and the
//! next one waits [`PAUSE_PER_LOOK`] times as long as the last one took: where few Interests are pending that is
//! no time at all.
//!
//! Limit: beyond [`MAX_WAITING`] there is no pause.

use namewire_packet::{FaceId, NameBuf};

/// How much longer than a look the pause behind it is: at most a fifth of a worker's time is spent on looks.
const PAUSE_PER_LOOK: u64 = 4;

/// Prefixes that wait for the end of a pause.
const MAX_WAITING: usize = 65_536;

/// See the module.
#[derive(Default)]
pub(crate) struct GainedNextHops {
    waiting: Vec<(NameBuf, FaceId)>,
    not_before_ns: u64,
}

impl GainedNextHops {
    pub(crate) fn add(&mut self, gained: &[(NameBuf, FaceId)]) {
        self.waiting.extend_from_slice(gained);
    }

    /// When to look.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        match self.waiting.len() {
            0 => None,
            MAX_WAITING.. => Some(0),
            _ => Some(self.not_before_ns),
        }
    }

    /// All that wait, in ascending order, each once, if it is time to look.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<Vec<(NameBuf, FaceId)>> {
        self.deadline_ns().filter(|at_ns| *at_ns <= now_ns)?;
        let mut due = std::mem::take(&mut self.waiting);
        due.sort_unstable();
        due.dedup();
        Some(due)
    }

    /// After a look.
    pub(crate) fn note_look(&mut self, began_ns: u64, ended_ns: u64) {
        let took_ns = ended_ns.saturating_sub(began_ns);
        self.not_before_ns = ended_ns.saturating_add(took_ns.saturating_mul(PAUSE_PER_LOOK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gained(uri: &str, face: u64) -> (NameBuf, FaceId) {
        (uri.parse().expect("a name"), FaceId(face))
    }

    #[test]
    fn one_look_serves_all_that_came_during_the_pause() {
        let mut news = GainedNextHops::default();
        assert_eq!((news.deadline_ns(), news.take_due(5)), (None, None));
        news.add(&[gained("/b", 1)]);
        assert_eq!(news.take_due(5), Some(vec![gained("/b", 1)]), "nothing to wait for");
        news.note_look(5, 15);
        news.add(&[gained("/b", 2), gained("/b", 1)]);
        news.add(&[gained("/a", 1), gained("/b", 1)]);
        assert_eq!((news.deadline_ns(), news.take_due(54)), (Some(55), None));
        assert_eq!(news.take_due(55), Some(vec![gained("/a", 1), gained("/b", 1), gained("/b", 2)]));
        assert_eq!(news.deadline_ns(), None);
    }

    #[test]
    fn too_many_do_not_wait() {
        let mut news = GainedNextHops::default();
        news.note_look(0, 1_000_000_000);
        news.add(&vec![gained("/a", 1); MAX_WAITING - 1]);
        assert_eq!(news.take_due(1_000_000_001), None);
        news.add(&[gained("/b", 1)]);
        assert_eq!(news.take_due(1_000_000_001), Some(vec![gained("/a", 1), gained("/b", 1)]));
    }
}
