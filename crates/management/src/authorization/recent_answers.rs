//! The last answers to commands from other hosts. If an answer is lost on its way, the client sends the same Interest
//! again. This is a replay, and the command must not be carried out twice. So the Interest gets the same answer again.
//!
//! (In NFD the Content Store does this; here, answers of management are not cached.)
//!
//! Limits: at most [`MAX_ANSWERS`] are kept, each for [`LIFETIME_NS`]; beyond that the oldest is dropped.

use namewire_packet::{FaceId, Name, NameBuf};
use std::collections::VecDeque;

/// Answers kept.
const MAX_ANSWERS: usize = 64;
/// How long an answer is useful: twice the usual InterestLifetime.
const LIFETIME_NS: u64 = 8_000_000_000;

#[derive(Debug)]
struct Answer {
    name: NameBuf,
    face: FaceId,
    packet: Vec<u8>,
    until_ns: u64,
}

#[derive(Debug, Default)]
pub(crate) struct RecentAnswers {
    answers: VecDeque<Answer>,
}

impl RecentAnswers {
    /// Keeps the answer to a command that was carried out.
    pub(crate) fn add(&mut self, name: Name<'_>, face: FaceId, packet: Vec<u8>, now_ns: u64) {
        if self.answers.len() >= MAX_ANSWERS {
            self.answers.pop_front();
        }
        let until_ns = now_ns.saturating_add(LIFETIME_NS);
        self.answers.push_back(Answer { name: name.to_buf(), face, packet, until_ns });
    }

    /// The answer that this face got to this very command.
    pub(crate) fn find(&self, name: Name<'_>, face: FaceId, now_ns: u64) -> Option<&[u8]> {
        let is_it = |answer: &&Answer| answer.face == face && answer.until_ns > now_ns && answer.name.as_name() == name;
        self.answers.iter().rev().find(is_it).map(|answer| &answer.packet[..])
    }
}
