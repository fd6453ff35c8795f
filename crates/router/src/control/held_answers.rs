//! Held answers: answers to commands that wait until the state file is on disk.
//!
//! Management counts its changes in a revision. With `state.sync = "always"`, the answer 200 to a command waits until a
//! file with its revision or a later one is on disk. One write serves all commands that were received before the write
//! began. Refusals and datasets never wait; forwarding never waits either.
//!
//! If a write fails, or takes longer than [`PATIENCE_NS`], the answer is 507: the change is in force, but would not
//! survive a restart now. The writer keeps trying.
//!
//! Limits: [`MAX_HELD`] answers of [`MAX_HELD_BYTES`] in all; further ones are answered 507 at once. Writers: control.

use crate::requests::StateWritten;
use namewire_packet::{Data, DataBuilder, lp::PitToken, nfd::ControlResponse};
use std::collections::VecDeque;

/// Longest wait for a write: shorter than the usual lifetime of a command, 4 s.
const PATIENCE_NS: u64 = 3_000_000_000;

/// Most answers that wait.
const MAX_HELD: usize = 65_536;

/// Most bytes of answers that wait.
const MAX_HELD_BYTES: usize = 16 << 20;

/// The freshness that management gives to other answers to commands.
const FRESHNESS_MS: u64 = 1000;

/// The change was made but is not on disk.
const NOT_ON_DISK: u64 = 507;

/// Data for the sender of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) packet: Vec<u8>,
    pub(crate) pit_token: Option<PitToken>,
}

struct Held {
    answer: Answer,
    revision: u64,
    due_ns: u64,
}

/// The waiting answers, and the state of the file.
#[derive(Default)]
pub(crate) struct HeldAnswers {
    is_on: bool,
    /// Oldest first, so that revisions and deadlines ascend.
    waiting: VecDeque<Held>,
    waiting_bytes: usize,
    /// Revision of the last file on disk.
    on_disk: u64,
    is_failing: bool,
    failures: u64,
    answered_late: u64,
    /// Management's present revision.
    pub(crate) revision: u64,
}

impl HeldAnswers {
    /// Turns the waiting on or off. Returns the answers that need not wait any longer.
    pub(crate) fn turn(&mut self, is_on: bool) -> Vec<Answer> {
        self.is_on = is_on;
        if is_on { Vec::new() } else { self.release_up_to(u64::MAX) }
    }

    /// What to send now for an answer that management gave at `revision`.
    pub(crate) fn offer(&mut self, now_ns: u64, revision: u64, answer: Answer) -> Option<Answer> {
        if !self.is_on || revision <= self.on_disk || !is_success(&answer.packet) {
            return Some(answer);
        }
        if self.waiting.len() >= MAX_HELD || self.waiting_bytes + answer.packet.len() > MAX_HELD_BYTES {
            self.answered_late += 1;
            return refused(&answer, "too many commands wait for it");
        }
        self.waiting_bytes += answer.packet.len();
        self.waiting.push_back(Held { answer, revision, due_ns: now_ns + PATIENCE_NS });
        None
    }

    /// The answers to send after an attempt to write the file.
    pub(crate) fn state_written(&mut self, written: StateWritten) -> Vec<Answer> {
        self.is_failing = written.failure.is_some();
        let Some(failure) = written.failure else {
            self.on_disk = self.on_disk.max(written.revision);
            return self.release_up_to(written.revision);
        };
        self.failures += 1;
        let answers = self.release_up_to(written.revision);
        self.answered_late += answers.len() as u64;
        answers.iter().filter_map(|answer| refused(answer, &failure)).collect()
    }

    /// Refusals for the answers that have waited too long.
    pub(crate) fn expire(&mut self, now_ns: u64) -> Vec<Answer> {
        let late: Vec<Answer> = std::iter::from_fn(|| self.pop_if(|held| held.due_ns <= now_ns)).collect();
        self.answered_late += late.len() as u64;
        late.iter().filter_map(|answer| refused(answer, "writing takes long")).collect()
    }

    /// When [`HeldAnswers::expire`] has work next.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.waiting.front().map(|held| held.due_ns)
    }

    /// Failed attempts, changes that are not on disk because the last attempt failed, and answers that could not wait
    /// any longer.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 3] {
        let behind = if self.is_failing { self.revision.saturating_sub(self.on_disk) } else { 0 };
        [
            // The state file could not be written.
            ("write-failed", self.failures),
            // Changes that the state file lacks, while writing fails.
            ("changes-not-on-disk", behind),
            // Answers to commands that did not wait for a write that hangs.
            ("answered-before-disk", self.answered_late),
        ]
    }

    fn release_up_to(&mut self, revision: u64) -> Vec<Answer> {
        std::iter::from_fn(|| self.pop_if(|held| held.revision <= revision)).collect()
    }

    fn pop_if(&mut self, is_it: impl FnOnce(&Held) -> bool) -> Option<Answer> {
        let held = self.waiting.pop_front_if(|held| is_it(held))?;
        self.waiting_bytes -= held.answer.packet.len();
        Some(held.answer)
    }
}

/// True if this packet says that a command was carried out.
fn is_success(packet: &[u8]) -> bool {
    let response = Data::parse(packet).ok().and_then(|data| ControlResponse::decode(data.content()).ok());
    response.is_some_and(|response| response.code == 200)
}

fn refused(answer: &Answer, why: &str) -> Option<Answer> {
    let name = Data::parse(&answer.packet).ok()?.name().to_buf();
    let text = format!("The change is in force, but the state could not be written: {why}");
    let response = ControlResponse::new(NOT_ON_DISK, text);
    let packet = DataBuilder::new(&name).freshness_ms(FRESHNESS_MS).content(&response.to_wire()).sign_digest();
    Some(Answer { packet, pit_token: answer.pit_token })
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{NameBuf, nfd::ControlParameters};

    fn answer(number: u64) -> Answer {
        packet(number, &ControlResponse::ok(ControlParameters::default()).to_wire())
    }

    fn packet(number: u64, content: &[u8]) -> Answer {
        let name: NameBuf = format!("/localhost/nfd/rib/register/{number}").parse().expect("a name");
        Answer { packet: DataBuilder::new(&name).content(content).sign_digest(), pit_token: None }
    }

    fn code(answer: &Answer) -> u64 {
        let data = Data::parse(&answer.packet).expect("Data");
        ControlResponse::decode(data.content()).expect("a response").code
    }

    fn written(revision: u64, failure: Option<&str>) -> StateWritten {
        StateWritten { revision, failure: failure.map(str::to_owned) }
    }

    #[test]
    fn an_answer_comes_when_its_change_is_on_disk_and_one_write_serves_many() {
        let mut held = HeldAnswers::default();
        assert_eq!(held.offer(0, 1, answer(1)), Some(answer(1)), "not turned on");
        held.turn(true);
        for number in 1..=3 {
            assert_eq!(held.offer(0, number, answer(number)), None);
        }
        let refusal = || packet(4, &ControlResponse::new(404, "no").to_wire());
        let dataset = || packet(4, b"\x80\x00");
        assert_eq!([refusal(), dataset()].map(|answer| held.offer(0, 3, answer).is_some()), [true, true]);
        assert_eq!(held.state_written(written(2, None)), [answer(1), answer(2)]);
        assert_eq!(held.offer(0, 2, answer(2)), Some(answer(2)), "said again");
        assert_eq!(held.turn(false), [answer(3)]);
        assert_eq!(held.counts().map(|(_, count)| count), [0, 0, 0]);
    }

    #[test]
    fn a_write_that_fails_or_hangs_refuses_those_that_wait_for_it() {
        let mut held = HeldAnswers::default();
        held.turn(true);
        for number in 1..=3 {
            assert_eq!(held.offer(number, number, answer(number)), None);
        }
        held.revision = 3;
        let refused = held.state_written(written(2, Some("disk full")));
        assert_eq!(refused.iter().map(code).collect::<Vec<_>>(), [507, 507]);
        assert_eq!(held.counts().map(|(_, count)| count), [1, 3, 2]);
        assert_eq!(held.next_deadline_ns(), Some(3 + PATIENCE_NS));
        assert_eq!(held.expire(2 + PATIENCE_NS), []);
        assert_eq!(held.expire(3 + PATIENCE_NS).iter().map(code).collect::<Vec<_>>(), [507]);
        assert_eq!(held.state_written(written(3, None)), []);
        assert_eq!(held.counts().map(|(_, count)| count), [1, 0, 3]);
        assert_eq!(held.waiting_bytes, 0);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut held = HeldAnswers::default();
        held.turn(true);
        let large = || {
            let text = ControlResponse { text: "x".repeat(8000), ..ControlResponse::ok(ControlParameters::default()) };
            packet(1, &text.to_wire())
        };
        let waiting = (0..3000).filter(|&number| held.offer(0, number + 1, large()).is_none()).count();
        assert!((2000..2100).contains(&waiting) && held.waiting_bytes <= MAX_HELD_BYTES, "{waiting}");
    }
}
