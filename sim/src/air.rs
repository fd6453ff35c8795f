//! Air: a medium that several nodes share, as a radio channel or an Ethernet segment.
//!
//! Whatever a node sends reaches all nodes in range. The model is that of IEEE 802.11 for frames to everybody, which
//! nobody acknowledges:
//!
//! ```text
//!   frame of A  ──gap──slots──▓▓▓▓▓▓▓▓▓▓──gap──slots──     A waits until it hears nobody, then `gap` and
//!   frame of B  ──gap──slots……waits………………──gap──slots──▓▓   a random number of slots; B goes on counting
//! ```
//!
//! A node notices a frame of another after one slot: two nodes whose slots end together send together. A node that
//! hears two frames at once receives neither, and one that sends receives nothing. Two senders that do not hear each
//! other (hidden terminals) collide at those who hear both. A frame reaches a node at a distance d with the probability
//!
//! ```text
//!   1 − loss                                       d ≤ sure
//!   (1 − loss) · (range − d) / (range − sure)      sure < d < range
//!   0                                              range ≤ d
//! ```
//!
//! Without a range, all nodes hear each other and frames do not collide: that is an Ethernet segment.
//!
//! Left out: propagation time (1 µs per 300 m), capture of the stronger frame, rates that adapt, and frames to one node
//! with acknowledgement. Cost: one distance per node and frame.

use crate::trace::NodeId;
use fastrand::Rng;
use namewire_packet::NameBuf;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// What a shared medium does to frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AirOptions {
    /// How far frames reach; `None`: to all nodes, and without collisions.
    pub range: Option<AirRange>,
    /// Probability that a frame does not reach one of the nodes in range.
    pub loss: f64,
    /// Rate of a frame's bytes.
    pub bandwidth_bits_per_s: u64,
    /// Time before a frame's first byte.
    pub preamble_ns: u64,
    /// How long the air must be free.
    pub gap_ns: u64,
    /// After that, a sender waits for 0 to this many slots.
    pub slots: u64,
    /// Length of a slot.
    pub slot_ns: u64,
    /// Most bytes that wait at a node; a frame beyond that is lost.
    pub queue_bytes: u64,
    /// Largest frame, in bytes; the link service fragments larger packets.
    pub mtu: usize,
}

/// How far frames reach, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AirRange {
    /// Up to this distance, frames are not lost by it.
    pub sure_m: f64,
    /// From this distance on, frames are neither received nor noticed.
    pub range_m: f64,
}

impl Default for AirOptions {
    /// IEEE 802.11a at its lowest rate, 6 Mbit/s, over 100 m, half of them without loss.
    fn default() -> Self {
        AirOptions {
            range: Some(AirRange { sure_m: 50.0, range_m: 100.0 }),
            loss: 0.0,
            bandwidth_bits_per_s: 6_000_000,
            preamble_ns: 20_000,
            gap_ns: 34_000,
            slots: 15,
            slot_ns: 9_000,
            queue_bytes: 256 * 1024,
            mtu: 1452,
        }
    }
}

/// Why a frame did not reach a node, or did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AirLoss {
    /// The node heard two frames at once, or sent itself.
    Collision,
    /// By distance or [`AirOptions::loss`].
    Faded,
    /// More than [`AirOptions::queue_bytes`] were waiting at the sender.
    QueueFull,
}

/// Counts of one node on a medium, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirTally {
    /// Frames that left.
    pub sent: u64,
    /// Frames of others that arrived.
    pub received: u64,
    /// Frames of others in range that did not arrive, and own frames that did not leave, by [`AirLoss`].
    pub lost: [u64; 3],
}

/// Where a node is at what time: straight lines between the points of a track.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// Time in nanoseconds, and place in metres; in the order of time.
    points: Vec<(u64, [f64; 2])>,
}

impl Track {
    /// A node that stays where it is.
    pub fn still(x_m: f64, y_m: f64) -> Self {
        Track { points: vec![(0, [x_m, y_m])] }
    }

    /// A node that is at these places at these times, and moves evenly from one to the next. Before the first time it
    /// is at the first place, after the last at the last.
    pub fn through(mut points: Vec<(u64, [f64; 2])>) -> Self {
        points.sort_by_key(|point| point.0);
        Track { points }
    }

    /// The same track, but its times count from this one.
    pub fn from_ns(mut self, origin_ns: u64) -> Self {
        self.points.iter_mut().for_each(|point| point.0 = point.0.saturating_add(origin_ns));
        self
    }

    /// The place at a time.
    pub fn at(&self, now_ns: u64) -> [f64; 2] {
        let next = self.points.partition_point(|point| point.0 <= now_ns);
        match (next.checked_sub(1).and_then(|last| self.points.get(last)), self.points.get(next)) {
            (Some(&(from_ns, [x, y])), Some(&(to_ns, [to_x, to_y]))) => {
                let part = (now_ns - from_ns) as f64 / (to_ns - from_ns) as f64;
                [x + (to_x - x) * part, y + (to_y - y) * part]
            }
            (Some(&(_, place)), None) | (None, Some(&(_, place))) => place,
            (None, None) => [0.0, 0.0],
        }
    }
}

/// A frame that waits or is on its way.
pub(crate) struct AirFrame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) name: Option<Rc<NameBuf>>,
}

/// The state of a medium.
pub(crate) struct Air {
    options: AirOptions,
    rng: Rng,
    members: Vec<Member>,
    transmissions: BTreeMap<u64, Transmission>,
    next_transmission: u64,
}

struct Member {
    node: NodeId,
    queue: VecDeque<AirFrame>,
    queued_bytes: u64,
    /// When it tries to send; `u64::MAX`: nothing waits.
    try_at_ns: u64,
    /// Slots before that, of which none has passed while others send.
    slots_left: u64,
    sends_until_ns: u64,
    /// The transmissions that it hears.
    hears: Vec<Heard>,
    tally: AirTally,
}

struct Heard {
    transmission: u64,
    ends_ns: u64,
}

struct Transmission {
    sender: usize,
    frame: AirFrame,
    receivers: Vec<Receiver>,
}

struct Receiver {
    member: usize,
    distance_m: f64,
    is_damaged: bool,
}

/// A frame leaves.
#[derive(Debug, PartialEq)]
pub(crate) struct Leaves {
    pub(crate) transmission: u64,
    pub(crate) ends_ns: u64,
    /// Those who hear it and wait for the air, and when they try now.
    pub(crate) later: Vec<(usize, u64)>,
}

/// A transmission that has ended.
pub(crate) struct Ended {
    pub(crate) sender: usize,
    pub(crate) frame: AirFrame,
    /// By receiver: whether the frame arrived, or why not.
    pub(crate) outcomes: Vec<(usize, Result<(), AirLoss>)>,
    /// When the sender tries again, if more waits.
    pub(crate) try_at_ns: Option<u64>,
}

impl Air {
    pub(crate) fn new(options: AirOptions, seed: u64) -> Self {
        Air {
            options,
            rng: Rng::with_seed(seed),
            members: Vec::new(),
            transmissions: BTreeMap::new(),
            next_transmission: 0,
        }
    }

    pub(crate) fn options(&self) -> &AirOptions {
        &self.options
    }

    /// A node joins; returns its number on this medium.
    pub(crate) fn join(&mut self, node: NodeId) -> usize {
        self.members.push(Member {
            node,
            queue: VecDeque::new(),
            queued_bytes: 0,
            try_at_ns: u64::MAX,
            slots_left: 0,
            sends_until_ns: 0,
            hears: Vec::new(),
            tally: AirTally::default(),
        });
        self.members.len() - 1
    }

    pub(crate) fn tally_of(&self, node: NodeId) -> Option<AirTally> {
        self.members.iter().find(|member| member.node == node).map(|member| member.tally)
    }

    /// A frame waits for the air. Returns when to try, if no attempt is scheduled.
    pub(crate) fn push(&mut self, member: usize, frame: AirFrame, now_ns: u64) -> Result<Option<u64>, AirLoss> {
        let state = &mut self.members[member];
        let bytes = frame.bytes.len() as u64;
        if state.queued_bytes + bytes > self.options.queue_bytes {
            state.tally.lost[AirLoss::QueueFull as usize] += 1;
            return Err(AirLoss::QueueFull);
        }
        state.queued_bytes += bytes;
        state.queue.push_back(frame);
        let waits_already = state.try_at_ns != u64::MAX || state.sends_until_ns > now_ns;
        Ok((!waits_already).then(|| self.wait(member, now_ns)))
    }

    /// Begins to wait for the air; returns when to try.
    fn wait(&mut self, member: usize, now_ns: u64) -> u64 {
        let slots = self.rng.u64(0..=self.options.slots);
        let AirOptions { gap_ns, slot_ns, .. } = self.options;
        let state = &mut self.members[member];
        let heard_until_ns = state.hears.iter().map(|heard| heard.ends_ns).max().unwrap_or(0);
        state.slots_left = slots;
        state.try_at_ns = now_ns.max(heard_until_ns) + gap_ns + slots * slot_ns;
        state.try_at_ns
    }

    /// The node sends its first frame, unless it tries at another time by now. `place_of` tells where a node is.
    pub(crate) fn attempt(
        &mut self,
        member: usize,
        now_ns: u64,
        place_of: impl Fn(NodeId) -> [f64; 2],
    ) -> Option<Leaves> {
        let state = &mut self.members[member];
        if state.try_at_ns != now_ns {
            return None;
        }
        state.try_at_ns = u64::MAX;
        let frame = state.queue.pop_front()?;
        state.queued_bytes -= frame.bytes.len() as u64;
        state.tally.sent += 1;
        let bits = frame.bytes.len() as u128 * 8;
        let bytes_ns = (bits * 1_000_000_000 / u128::from(self.options.bandwidth_bits_per_s.max(1))) as u64;
        let ends_ns = now_ns + self.options.preamble_ns + bytes_ns;
        state.sends_until_ns = ends_ns;
        Some(self.begin(member, frame, (now_ns, ends_ns), place_of))
    }

    /// A transmission begins: who hears it, what does it damage, and who waits for its end?
    fn begin(
        &mut self,
        sender: usize,
        frame: AirFrame,
        (now_ns, ends_ns): (u64, u64),
        place_of: impl Fn(NodeId) -> [f64; 2],
    ) -> Leaves {
        let transmission = self.next_transmission;
        self.next_transmission += 1;
        let [x, y] = place_of(self.members[sender].node);
        let (mut receivers, mut later) = (Vec::new(), Vec::new());
        for member in (0..self.members.len()).filter(|member| *member != sender) {
            let distance_m = match self.options.range {
                None => 0.0,
                Some(_) => {
                    let [other_x, other_y] = place_of(self.members[member].node);
                    ((other_x - x).powi(2) + (other_y - y).powi(2)).sqrt()
                }
            };
            if self.options.range.is_some_and(|range| distance_m >= range.range_m) {
                continue;
            }
            let is_damaged = self.is_damaged(member, now_ns);
            self.members[member].hears.push(Heard { transmission, ends_ns });
            receivers.push(Receiver { member, distance_m, is_damaged });
            later.extend(self.put_off(member, now_ns).map(|at_ns| (member, at_ns)));
        }
        // Who sends does not hear.
        self.damage_what_is_heard(sender, now_ns);
        self.transmissions.insert(transmission, Transmission { sender, frame, receivers });
        Leaves { transmission, ends_ns, later }
    }

    /// A member that waits hears a frame begin: it keeps the slots that have not passed, and tries after the frame. It
    /// does not notice a frame within the slot in which it sends itself.
    fn put_off(&mut self, member: usize, now_ns: u64) -> Option<u64> {
        let AirOptions { gap_ns, slot_ns, range, .. } = self.options;
        let unnoticed_ns = if range.is_some() { slot_ns } else { 0 };
        let state = &mut self.members[member];
        if state.try_at_ns == u64::MAX || state.try_at_ns < now_ns + unnoticed_ns {
            return None;
        }
        let counts_from_ns = state.try_at_ns - state.slots_left * slot_ns;
        let passed = now_ns.saturating_sub(counts_from_ns).checked_div(slot_ns).unwrap_or(0);
        state.slots_left = state.slots_left.saturating_sub(passed);
        let heard_until_ns = state.hears.iter().map(|heard| heard.ends_ns).max().unwrap_or(now_ns);
        state.try_at_ns = heard_until_ns + gap_ns + state.slots_left * slot_ns;
        Some(state.try_at_ns)
    }

    /// Whether a frame that begins now is damaged at a member; those that the member hears are then damaged too.
    fn is_damaged(&mut self, member: usize, now_ns: u64) -> bool {
        if self.options.range.is_none() {
            return false;
        }
        self.damage_what_is_heard(member, now_ns) || self.members[member].sends_until_ns > now_ns
    }

    /// Damages what a member hears; true if there is such a thing.
    fn damage_what_is_heard(&mut self, member: usize, now_ns: u64) -> bool {
        if self.options.range.is_none() {
            return false;
        }
        let mut is_any = false;
        for heard in self.members[member].hears.iter().filter(|heard| heard.ends_ns > now_ns) {
            is_any = true;
            let other = self.transmissions.get_mut(&heard.transmission);
            let receiver = other.and_then(|other| other.receivers.iter_mut().find(|found| found.member == member));
            receiver.into_iter().for_each(|receiver| receiver.is_damaged = true);
        }
        is_any
    }

    /// A transmission ends.
    pub(crate) fn end(&mut self, transmission: u64, now_ns: u64) -> Ended {
        let ended = self.transmissions.remove(&transmission).expect("a transmission ends once");
        let Transmission { sender, frame, receivers } = ended;
        let mut outcomes = Vec::with_capacity(receivers.len());
        for Receiver { member, distance_m, is_damaged } in receivers {
            let fades = self.rng.f64() < self.options.loss_at(distance_m);
            let outcome = match (is_damaged, fades) {
                (true, _) => Err(AirLoss::Collision),
                (false, true) => Err(AirLoss::Faded),
                (false, false) => Ok(()),
            };
            let state = &mut self.members[member];
            state.hears.retain(|heard| heard.transmission != transmission);
            match outcome {
                Ok(()) => state.tally.received += 1,
                Err(loss) => state.tally.lost[loss as usize] += 1,
            }
            outcomes.push((member, outcome));
        }
        let try_at_ns = (!self.members[sender].queue.is_empty()).then(|| self.wait(sender, now_ns));
        Ended { sender, frame, outcomes, try_at_ns }
    }
}

impl AirOptions {
    fn loss_at(&self, distance_m: f64) -> f64 {
        let reached = match self.range {
            Some(AirRange { sure_m, range_m }) if distance_m > sure_m => (range_m - distance_m) / (range_m - sure_m),
            _ => 1.0,
        };
        1.0 - (1.0 - self.loss) * reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> AirFrame {
        AirFrame { bytes: vec![0; 750], name: None }
    }

    /// Nodes at these places (in metres on a line), each with a frame to send.
    fn air(places: &[f64], options: AirOptions) -> (Air, Vec<f64>) {
        let mut air = Air::new(options, 1);
        for node in 0..places.len() {
            air.join(NodeId(node));
        }
        (air, places.to_vec())
    }

    /// A frame of a member waits from `from_ns` on; returns when it tries.
    fn push(air: &mut Air, member: usize, from_ns: u64) -> u64 {
        air.push(member, frame(), from_ns).expect("room").expect("it did not wait before")
    }

    fn sends(air: &mut Air, places: &[f64], member: usize, now_ns: u64) -> Leaves {
        air.attempt(member, now_ns, |node| [places[node.0], 0.0]).expect("it is its time")
    }

    #[test]
    fn a_frame_takes_its_time_and_reaches_those_in_range() {
        let (mut air, places) = air(&[0.0, 40.0, 200.0], AirOptions::default());
        let at_ns = push(&mut air, 0, 0);
        assert!((34_000..=34_000 + 15 * 9_000).contains(&at_ns));
        let Leaves { transmission, ends_ns, later } = sends(&mut air, &places, 0, at_ns);
        assert_eq!((ends_ns, later), (at_ns + 20_000 + 1_000_000, vec![]), "750 bytes at 6 Mbit/s");
        let ended = air.end(transmission, ends_ns);
        assert_eq!((ended.outcomes, ended.try_at_ns), (vec![(1, Ok(()))], None));
    }

    #[test]
    fn a_node_waits_while_it_hears_another_and_then_for_the_slots_that_were_left() {
        let options = AirOptions { slots: 1_000, ..AirOptions::default() };
        let (mut air, places) = air(&[0.0, 40.0], options);
        let mut times = [push(&mut air, 0, 0), push(&mut air, 1, 0)];
        let first = usize::from(times[1] < times[0]);
        let Leaves { ends_ns, later, .. } = sends(&mut air, &places, first, times[first]);
        let left_ns = times[1 - first] - times[first];
        assert_eq!(later, [(1 - first, ends_ns + 34_000 + left_ns)], "{times:?}");
        assert!(air.attempt(1 - first, times[1 - first], |_| [0.0; 2]).is_none(), "not any more");
        times[1 - first] = later[0].1;
        assert!(air.attempt(1 - first, times[1 - first], |_| [0.0; 2]).is_some());
    }

    #[test]
    fn frames_collide_where_both_are_heard() {
        // 0 and 2 do not hear each other; 1 hears both; 3 hears 2 alone.
        let (mut air, places) = air(&[0.0, 80.0, 160.0, 200.0], AirOptions::default());
        let (at_0_ns, at_2_ns) = (push(&mut air, 0, 0), push(&mut air, 2, 500_000));
        let first = sends(&mut air, &places, 0, at_0_ns);
        let second = sends(&mut air, &places, 2, at_2_ns);
        assert_eq!(air.end(first.transmission, first.ends_ns).outcomes, [(1, Err(AirLoss::Collision))]);
        let outcomes = air.end(second.transmission, second.ends_ns).outcomes;
        assert_eq!(outcomes, [(1, Err(AirLoss::Collision)), (3, Ok(()))]);
        assert_eq!(air.tally_of(NodeId(1)).map(|tally| tally.lost), Some([2, 0, 0]));
    }

    #[test]
    fn nodes_that_begin_within_a_slot_collide_and_receive_nothing() {
        let (mut air, places) = air(&[0.0, 10.0], AirOptions { slots: 0, ..AirOptions::default() });
        let (at_0_ns, at_1_ns) = (push(&mut air, 0, 0), push(&mut air, 1, 8_999));
        let first = sends(&mut air, &places, 0, at_0_ns);
        let second = sends(&mut air, &places, 1, at_1_ns);
        assert_eq!(air.end(first.transmission, first.ends_ns).outcomes, [(1, Err(AirLoss::Collision))]);
        assert_eq!(air.end(second.transmission, second.ends_ns).outcomes, [(0, Err(AirLoss::Collision))]);
    }

    #[test]
    fn on_a_segment_nobody_collides() {
        let options = AirOptions { range: None, slots: 0, ..AirOptions::default() };
        let (mut air, places) = air(&[0.0, 9e9], options);
        let (at_0_ns, at_1_ns) = (push(&mut air, 0, 0), push(&mut air, 1, 0));
        assert_eq!(at_0_ns, at_1_ns);
        let first = sends(&mut air, &places, 0, at_0_ns);
        assert_eq!(first.later, [(1, first.ends_ns + 34_000)]);
        assert_eq!(air.end(first.transmission, first.ends_ns).outcomes, [(1, Ok(()))]);
    }

    /// Bianchi 2000, for a window that does not grow: a station with frames without end sends in a slot with the
    /// probability τ = 2 / (W + 1). Of n stations that hear each other, a frame collides with 1 − (1 − τ)^(n − 1).
    #[test]
    fn as_many_frames_collide_as_theory_says() {
        for stations in [2_usize, 5, 10] {
            let (mut air, places) = air(&vec![0.0; stations], AirOptions::default());
            let mut agenda = std::collections::BTreeSet::new();
            for member in 0..stations {
                air.push(member, frame(), 0).expect("room");
                agenda.insert((
                    air.push(member, frame(), 0).map_or(0, |_| air.members[member].try_at_ns),
                    1,
                    member,
                    0,
                ));
            }
            while let Some((now_ns, kind, member, transmission)) = agenda.pop_first() {
                if now_ns > 60_000_000_000 {
                    break;
                }
                if kind == 0 {
                    let ended = air.end(transmission, now_ns);
                    // There is always one more.
                    let _ = air.push(ended.sender, frame(), now_ns);
                    agenda.extend(ended.try_at_ns.map(|at_ns| (at_ns, 1, ended.sender, 0)));
                } else if let Some(leaves) = air.attempt(member, now_ns, |node| [places[node.0], 0.0]) {
                    agenda.insert((leaves.ends_ns, 0, member, leaves.transmission));
                    agenda.extend(leaves.later.iter().map(|&(member, at_ns)| (at_ns, 1, member, 0)));
                }
            }
            let sum = |count: fn(&AirTally) -> u64| air.members.iter().map(|member| count(&member.tally)).sum::<u64>();
            // Each frame reaches all others, or is lost at all others.
            let sent = sum(|tally| tally.sent) as f64 * (stations - 1) as f64;
            let collided = sum(|tally| tally.lost[AirLoss::Collision as usize]) as f64 / sent;
            let theory = 1.0 - (1.0 - 2.0 / 17.0_f64).powi(stations as i32 - 1);
            assert!((collided - theory).abs() < 0.03, "{stations} stations: {collided} where theory has {theory}");
        }
    }

    #[test]
    fn loss_grows_with_the_distance() {
        let options = AirOptions { loss: 0.1, ..AirOptions::default() };
        let at = [0.0, 50.0, 75.0, 100.0].map(|distance_m| options.loss_at(distance_m));
        assert!((at[0] - 0.1).abs() < 1e-12 && at[0] == at[1], "{at:?}");
        assert!((at[2] - 0.55).abs() < 1e-12 && at[3] == 1.0, "{at:?}");
    }

    #[test]
    fn a_track_leads_through_its_points() {
        let track = Track::through(vec![(20, [10.0, 0.0]), (10, [0.0, 0.0]), (40, [10.0, 40.0])]);
        let at = [0, 15, 20, 30, 99].map(|now_ns| track.at(now_ns));
        assert_eq!(at, [[0.0, 0.0], [5.0, 0.0], [10.0, 0.0], [10.0, 20.0], [10.0, 40.0]]);
        assert_eq!(Track::still(3.0, 4.0).at(7), [3.0, 4.0]);
    }
}
