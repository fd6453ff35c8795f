//! best-route with next hops that fall silent: no error shows that their link delivers nothing.
//!
//! The story: the cheapest next hop's link was silent. Each new Interest went there first and was answered only when
//! its consumer asked again, so a fetch advanced by one window per time-out, for ever.

use namewire_engine::FaceId;
use namewire_testbed::*;

/// Interests one after the other, each for a new name, repeated after 200 ms.
struct Asking {
    node: Forwarder,
    ms: u64,
    number: u32,
}

impl Asking {
    fn new(next_hops: &[FaceId]) -> Self {
        Asking { node: Forwarder::routing("/a", next_hops), ms: 0, number: 0 }
    }

    fn wait(&mut self, ms: u64) {
        self.ms += ms;
        self.node.at(self.ms).run_timers();
    }

    fn send(&mut self, name: &str) -> Vec<FaceId> {
        self.number += 1;
        let sent = self.node.receive(A, interest(name, self.number));
        sent.iter().map(|sent| sent.face).collect()
    }

    /// Fetches a new name; the `alive` next hops answer after 10 ms. Returns the faces it was sent to, in order, probes
    /// included.
    fn fetch(&mut self, alive: &[FaceId]) -> Vec<FaceId> {
        let name = format!("/a/{}", self.number);
        let foreseen = self.node.foresee(&name);
        let mut asked = self.send(&name);
        assert_eq!(foreseen.chosen.first(), asked.first(), "what `explain` tells is what happens");
        assert!(foreseen.silent.len() != 1 || foreseen.silent[..1] != asked[..1], "{foreseen:?}");
        for _ in 0..10 {
            self.wait(10);
            let answering: Vec<FaceId> = asked.iter().copied().filter(|face| alive.contains(face)).collect();
            for &face in &answering {
                let probes = self.node.receive(face, data(&name));
                for probed in probes.iter().map(|sent| sent.face).filter(|&face| face != A) {
                    asked.push(probed);
                    self.wait(10);
                    if alive.contains(&probed) {
                        assert_eq!(self.node.receive(probed, data(&name)), NOTHING, "it was answered before");
                    }
                }
            }
            if !answering.is_empty() {
                return asked;
            }
            self.wait(200);
            asked.extend(self.send(&name));
        }
        asked
    }

    /// Asks once for a name that does not exist: no next hop answers.
    fn ask_in_vain(&mut self) -> Vec<FaceId> {
        let name = format!("/a/nothing/{}", self.number);
        self.send(&name)
    }

    fn firsts(&mut self, count: usize, alive: &[FaceId]) -> Vec<FaceId> {
        (0..count).map(|_| self.fetch(alive)[0]).collect()
    }
}

#[test]
fn a_silent_next_hop_comes_last_until_it_answers_again() {
    let mut asking = Asking::new(&[B, C]);
    assert_eq!(asking.firsts(20, &[B, C]), [B; 20]);
    assert_eq!(asking.node.engine().measurements_len(), 0, "nothing is measured while nothing is lost");
    // Four unanswered in a row, and a second.
    let firsts = asking.firsts(20, &[C]);
    let lost = firsts.iter().filter(|&&face| face == B).count();
    assert!((4..=7).contains(&lost) && firsts[lost..].iter().all(|&face| face == C), "{firsts:?}");
    // Probes at growing intervals, each beside an Interest that was answered.
    let probed = |asking: &mut Asking, alive: &[FaceId]| {
        let asked: Vec<Vec<FaceId>> = (0..3000).map(|_| asking.fetch(alive)).collect();
        assert!(asked.iter().all(|asked| asked[0] == C), "none waits for it");
        asked.iter().filter(|asked| asked.len() > 1).count()
    };
    let probes = probed(&mut asking, &[C]);
    assert!((5..=9).contains(&probes), "{probes} in 30 s");
    // It answers a probe, 8 s later at most, and is the first again.
    let firsts = asking.firsts(1000, &[B, C]);
    let late = firsts.iter().filter(|&&face| face == C).count();
    assert!(late <= 810 && firsts[late..].iter().all(|&face| face == B), "{late}");
    asking.wait(400_000);
    assert_eq!(asking.node.engine().measurements_len(), 0);
}

/// A consumer that never asks again: its Interests only expire.
#[test]
fn expiry_is_evidence_too() {
    let mut asking = Asking::new(&[B, C]);
    let firsts: Vec<FaceId> = (0..6)
        .map(|number| {
            asking.number += 1;
            let asked = interest(&format!("/a/{number}"), asking.number).lifetime_ms(500);
            let sent = asking.node.receive(A, asked);
            asking.wait(600);
            sent[0].face
        })
        .collect();
    assert_eq!(firsts, [B, B, B, B, C, C]);
}

/// One answer in a second keeps a next hop in its place, however many Interests go unanswered.
#[test]
fn names_that_do_not_exist_do_not_move_those_that_do() {
    let mut asking = Asking::new(&[B, C]);
    for _ in 0..60 {
        for _ in 0..200 {
            assert_eq!(asking.ask_in_vain(), [B]);
            asking.wait(4);
        }
        assert_eq!(asking.fetch(&[B, C])[0], B, "at {} ms", asking.ms);
    }
}

/// Names that do not exist can demote a next hop; the first Interest that exists restores it.
#[test]
fn the_first_real_answer_ends_a_silence_caused_by_names_that_do_not_exist() {
    let mut asking = Asking::new(&[B, C]);
    for _ in 0..3000 {
        asking.ask_in_vain();
        asking.wait(10);
    }
    let asked = asking.fetch(&[B, C]);
    assert!(asked.contains(&B), "asked first, or probed beside: {asked:?}");
    assert_eq!(asking.fetch(&[B, C])[0], B);
}

/// If all next hops are silent, the cheapest is first as usual, and one answer restores all.
#[test]
fn if_all_are_silent_the_cheapest_is_first() {
    let mut asking = Asking::new(&[B, C]);
    (0..20).for_each(|_| drop(asking.fetch(&[])));
    let asked = asking.fetch(&[]);
    assert_eq!(asked[..3], [B, C, B], "{asked:?}");
    assert_eq!(asking.fetch(&[B, C])[0], B);
    assert_eq!(asking.fetch(&[B, C])[0], B);
}

/// A prefix with one next hop is not measured: there is no choice.
#[test]
fn one_next_hop_is_never_measured() {
    let mut asking = Asking::new(&[B]);
    for _ in 0..100 {
        assert!(asking.fetch(&[]).iter().all(|&face| face == B));
        assert_eq!(asking.node.engine().measurements_len(), 0);
    }
}

/// A Nack is a reason, and so is a link that is down: neither is silence.
#[test]
fn nacks_and_lost_links_are_not_silence() {
    let mut asking = Asking::new(&[B, C]);
    for number in 0..10 {
        let name = format!("/a/{number}");
        asking.send(&name);
        asking.node.receive(B, nack(namewire_packet::NackReason::NoRoute, &name, asking.number));
        asking.wait(300);
        asking.send(&format!("/a/x{number}"));
        asking.node.face_down(B);
        asking.node.receive(C, data(&format!("/a/x{number}")));
        asking.node.face_up(B);
        asking.wait(5000);
        assert_eq!(asking.node.engine().measurements_len(), 0);
    }
}
