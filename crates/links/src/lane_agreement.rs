//! Lane agreement: when may a face use the lanes of its neighbour? (Decision 0019 has the protocol.)
//!
//! One end of the agreement, without sockets and clocks. The caller passes what comes ([`LaneAgreement::take`]), sends
//! what is due ([`LaneAgreement::due`]), and says whether all lanes hear the neighbour.
//!
//! A hello counts only if it returns our instance: then whoever sent it has heard us. All other hellos cause at most an
//! answer. Answers have pauses of [`ANSWER_PAUSE_NS`].

use namewire_packet::lane_hello::LaneHello;

const SECOND_NS: u64 = 1_000_000_000;

/// Time between hellos to a neighbour that answers, or that may not have started yet.
pub const PERIOD_NS: u64 = 5 * SECOND_NS;

/// Time between hellos to a neighbour that has not answered for [`PATIENCE_NS`].
const SILENT_PERIOD_NS: u64 = 60 * SECOND_NS;
const PATIENCE_NS: u64 = 60 * SECOND_NS;

/// What was heard counts for so long.
pub const HEARD_NS: u64 = 3 * PERIOD_NS;

/// Least time between two hellos.
const ANSWER_PAUSE_NS: u64 = SECOND_NS / 5;

/// While a new neighbour's lanes have not all been heard, the caller looks again after this, for [`HEARD_NS`].
const LOOK_PAUSE_NS: u64 = SECOND_NS / 10;

/// See the module documentation.
#[derive(Debug)]
pub struct LaneAgreement {
    ours: LaneHello,
    peer: Option<Peer>,
    /// The next hello answers this instance, which has not proved that it hears us.
    stranger: Option<u64>,
    begun_ns: u64,
    sent_ns: Option<u64>,
    due_ns: u64,
}

/// A neighbour that has heard us.
#[derive(Debug)]
struct Peer {
    hello: LaneHello,
    since_ns: u64,
    heard_ns: u64,
}

/// What a hello has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing that concerns the lanes.
    Nothing,
    /// The neighbour's lanes are others than before: see [`LaneAgreement::peer`].
    NewLanes,
}

impl LaneAgreement {
    /// Begins with lanes at these ports.
    pub fn new(now_ns: u64, instance: u64, key: [u8; 16], ports: Vec<u16>) -> Self {
        let ours = LaneHello { instance: instance.max(1), echo: 0, hears: false, key, ports };
        LaneAgreement { ours, peer: None, stranger: None, begun_ns: now_ns, sent_ns: None, due_ns: now_ns }
    }

    /// The lanes of the neighbour, if it has proved that it hears us.
    pub fn peer(&self) -> Option<&LaneHello> {
        self.peer.as_ref().map(|peer| &peer.hello)
    }

    /// Takes a hello that came.
    pub fn take(&mut self, now_ns: u64, hello: LaneHello) -> Taken {
        if hello.instance == self.ours.instance {
            return Taken::Nothing; // our own, which somebody sent back
        }
        if hello.echo != self.ours.instance {
            self.stranger = Some(hello.instance);
            self.hasten(now_ns);
            return Taken::Nothing;
        }
        let lanes = |hello: &LaneHello| (hello.instance, hello.key, hello.ports.clone());
        let before = self.peer.take();
        let is_same = before.as_ref().is_some_and(|peer| lanes(&peer.hello) == lanes(&hello));
        let since_ns = before.filter(|_| is_same).map_or(now_ns, |peer| peer.since_ns);
        self.stranger = None;
        self.peer = Some(Peer { hello, since_ns, heard_ns: now_ns });
        if is_same {
            return Taken::Nothing;
        }
        self.ours.hears = false;
        self.hasten(now_ns);
        Taken::NewLanes
    }

    /// Says whether each of our lanes has heard each of the neighbour's in the last [`HEARD_NS`].
    pub fn note_hearing(&mut self, now_ns: u64, hears: bool) {
        if std::mem::replace(&mut self.ours.hears, hears) != hears {
            self.hasten(now_ns);
        }
    }

    /// The hello to send now, if one is due. An idle packet from each lane to each lane goes with it.
    pub fn due(&mut self, now_ns: u64) -> Option<LaneHello> {
        if now_ns < self.due_ns {
            return None;
        }
        let is_heard = self.fresh_peer(now_ns).is_some();
        let is_patient = is_heard || now_ns.saturating_sub(self.begun_ns) < PATIENCE_NS;
        self.due_ns = now_ns + if is_patient { PERIOD_NS } else { SILENT_PERIOD_NS };
        self.sent_ns = Some(now_ns);
        let known = self.peer.as_ref().map(|peer| peer.hello.instance);
        // What lanes have heard is the neighbour's, not the stranger's.
        let hears = self.ours.hears && self.stranger.is_none();
        let echo = self.stranger.take().or(known).unwrap_or(0);
        Some(LaneHello { echo, hears, ..self.ours.clone() })
    }

    /// What makes a neighbour use our lanes no longer; `None` if none does. With what is due later, it begins again.
    pub fn farewell(&mut self) -> Option<LaneHello> {
        let echo = self.peer.as_ref()?.hello.instance;
        self.ours.hears = false;
        Some(LaneHello { echo, ..self.ours.clone() })
    }

    /// True while packets may take the neighbour's lanes. One lane at each end would bring nothing.
    pub fn is_usable(&self, now_ns: u64) -> bool {
        let is_worth = |hello: &LaneHello| hello.ports.len() > 1 || self.ours.ports.len() > 1;
        self.fresh_peer(now_ns).is_some_and(|peer| peer.hello.hears && is_worth(&peer.hello))
    }

    /// When the caller should look again: for a hello, and for what lanes have heard.
    pub fn next_look_ns(&self, now_ns: u64) -> u64 {
        let is_new = |peer: &Peer| !self.ours.hears && now_ns.saturating_sub(peer.since_ns) < HEARD_NS;
        match self.peer.as_ref().is_some_and(is_new) {
            true => self.due_ns.min(now_ns + LOOK_PAUSE_NS),
            false => self.due_ns,
        }
    }

    fn fresh_peer(&self, now_ns: u64) -> Option<&Peer> {
        self.peer.as_ref().filter(|peer| now_ns.saturating_sub(peer.heard_ns) < HEARD_NS)
    }

    /// The next hello goes as soon as the pause is over.
    fn hasten(&mut self, now_ns: u64) {
        let soonest_ns = self.sent_ns.map_or(now_ns, |sent_ns| now_ns.max(sent_ns + ANSWER_PAUSE_NS));
        self.due_ns = self.due_ns.min(soonest_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_NS: u64 = SECOND_NS / 20;

    fn end(instance: u64, lanes: u16) -> LaneAgreement {
        LaneAgreement::new(0, instance, [instance as u8; 16], (1..=lanes).map(|lane| 5000 + lane).collect())
    }

    /// Both ends talk without loss; lanes hear as soon as both know each other. Returns when both may use lanes.
    fn talk(a: &mut LaneAgreement, b: &mut LaneAgreement, mut now_ns: u64, until_ns: u64) -> Option<u64> {
        while now_ns < until_ns {
            let (to_b, to_a) = (a.due(now_ns), b.due(now_ns));
            to_b.into_iter().for_each(|hello| _ = b.take(now_ns, hello));
            to_a.into_iter().for_each(|hello| _ = a.take(now_ns, hello));
            let know = a.peer().is_some() && b.peer().is_some();
            a.note_hearing(now_ns, know);
            b.note_hearing(now_ns, know);
            if a.is_usable(now_ns) && b.is_usable(now_ns) {
                return Some(now_ns);
            }
            now_ns += STEP_NS;
        }
        None
    }

    #[test]
    fn two_ends_agree_within_a_second_and_stay_so() {
        let (mut a, mut b) = (end(1, 2), end(2, 3));
        let agreed_ns = talk(&mut a, &mut b, 0, 10 * SECOND_NS).expect("they agree");
        assert!(agreed_ns <= SECOND_NS, "after {agreed_ns} ns");
        assert_eq!((a.peer().unwrap().ports.len(), b.peer().unwrap().ports.len()), (3, 2));
        for later in 0..100 {
            let now_ns = agreed_ns + later * SECOND_NS;
            let (to_b, to_a) = (a.due(now_ns), b.due(now_ns));
            assert!(to_b.into_iter().all(|hello| b.take(now_ns, hello) == Taken::Nothing));
            assert!(to_a.into_iter().all(|hello| a.take(now_ns, hello) == Taken::Nothing));
            assert!(a.is_usable(now_ns) && b.is_usable(now_ns));
        }
    }

    #[test]
    fn one_lane_at_each_end_is_not_used() {
        let (mut a, mut b) = (end(1, 1), end(2, 1));
        assert_eq!(talk(&mut a, &mut b, 0, 10 * SECOND_NS), None);
        let (mut a, mut b) = (end(1, 1), end(2, 2));
        assert!(talk(&mut a, &mut b, 0, 10 * SECOND_NS).is_some());
    }

    #[test]
    fn silence_or_deaf_lanes_end_the_use() {
        let (mut a, mut b) = (end(1, 2), end(2, 2));
        let agreed_ns = talk(&mut a, &mut b, 0, 10 * SECOND_NS).unwrap();
        assert!(a.is_usable(agreed_ns + HEARD_NS - 1));
        assert!(!a.is_usable(agreed_ns + HEARD_NS));
        // A firewall closes b's lanes: b says so at once, and a hears it.
        b.note_hearing(agreed_ns + SECOND_NS, false);
        let deaf = b.due(agreed_ns + SECOND_NS).expect("news");
        a.take(agreed_ns + SECOND_NS, deaf);
        assert!(!a.is_usable(agreed_ns + SECOND_NS));
    }

    #[test]
    fn a_farewell_ends_the_use_at_once_and_it_may_begin_again() {
        let (mut a, mut b) = (end(1, 2), end(2, 2));
        assert_eq!(a.farewell(), None);
        let agreed_ns = talk(&mut a, &mut b, 0, 10 * SECOND_NS).unwrap();
        let farewell = a.farewell().unwrap();
        b.take(agreed_ns, farewell);
        assert!(!b.is_usable(agreed_ns));
        assert!(talk(&mut a, &mut b, agreed_ns, agreed_ns + SECOND_NS).is_some());
    }

    #[test]
    fn a_neighbour_that_starts_again_is_believed_once_it_returns_our_instance() {
        let (mut a, mut b) = (end(1, 2), end(2, 2));
        let agreed_ns = talk(&mut a, &mut b, 0, 10 * SECOND_NS).unwrap();
        let mut again = end(3, 4);
        let first = again.due(agreed_ns).unwrap();
        assert_eq!(a.take(agreed_ns, first), Taken::Nothing);
        assert_eq!(a.peer().unwrap().instance, 2, "it has not proved that it hears us");
        let answer = a.due(agreed_ns + ANSWER_PAUSE_NS).unwrap();
        assert_eq!((answer.echo, answer.hears), (3, false), "its lanes have heard nothing of the new one");
        again.take(agreed_ns + ANSWER_PAUSE_NS, answer);
        assert!(talk(&mut a, &mut again, agreed_ns, agreed_ns + SECOND_NS).is_some());
        assert_eq!((a.peer().unwrap().instance, a.peer().unwrap().ports.len()), (3, 4));
    }

    /// Whoever forges the neighbour's address does not see what we send there.
    #[test]
    fn forged_hellos_change_nothing_and_cause_five_answers_a_second() {
        let (mut a, mut b) = (end(1, 2), end(2, 2));
        let agreed_ns = talk(&mut a, &mut b, 0, 10 * SECOND_NS).unwrap();
        let (mut answers, end_ns) = (0, agreed_ns + SECOND_NS);
        for now_ns in (agreed_ns..end_ns).step_by(1_000_000) {
            for echo in [0, now_ns] {
                let forged = LaneHello { instance: now_ns, echo, hears: true, key: [6; 16], ports: vec![6] };
                assert_eq!(a.take(now_ns, forged), Taken::Nothing);
            }
            if let Some(answer) = a.due(now_ns) {
                answers += 1;
                b.take(now_ns, answer);
            }
            assert!(a.is_usable(now_ns) && b.is_usable(now_ns));
        }
        assert!((3..=6).contains(&answers), "{answers}");
        assert_eq!(a.peer().unwrap().instance, 2);
        // Its own hello, sent back.
        let own = a.ours.clone();
        assert_eq!(a.take(end_ns, LaneHello { echo: 1, ..own }), Taken::Nothing);
        assert_eq!(a.peer().unwrap().instance, 2);
    }

    #[test]
    fn who_never_answers_is_asked_once_a_minute() {
        let mut a = end(1, 2);
        let asked = |a: &mut LaneAgreement, seconds: std::ops::Range<u64>| {
            seconds.filter(|second| a.due(second * SECOND_NS).is_some()).count()
        };
        assert_eq!(asked(&mut a, 0..60), 12);
        assert_eq!(asked(&mut a, 60..660), 10);
    }
}
