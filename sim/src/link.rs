//! Link: does a frame arrive, when, and how often?
//!
//! This is one direction of a wire between two nodes. It carries frames, not packets: a lost fragment loses its packet,
//! and the reassembler sees a repeated one. Every random choice comes from the link's own generator, so that a change
//! elsewhere in the network does not affect it.
//!
//! Each frame is lost, arrives once, or (duplicated) arrives twice. [`LinkTally`] counts so that `sent + duplicated =
//! arrived + lost + in flight` holds at any time.

use fastrand::Rng;
use namewire_packet::lp::LpHeaders;

/// What a link does to frames. All probabilities are per frame, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkOptions {
    /// Propagation delay.
    pub delay_ns: u64,
    /// Additional delay, uniform from 0 to this; frames may overtake each other.
    pub jitter_ns: u64,
    /// Probability that a frame vanishes.
    pub loss: f64,
    /// Probability that a frame arrives twice.
    pub duplication: f64,
    /// Probability that a frame is held back by [`LinkOptions::reordering_delay_ns`].
    pub reordering: f64,
    /// The delay of such a frame.
    pub reordering_delay_ns: u64,
    /// Rate at which bytes leave; `None`: at once.
    pub bandwidth_bits_per_s: Option<u64>,
    /// With a bandwidth: most bytes waiting to leave; a frame beyond that is lost.
    pub queue_bytes: u64,
    /// Largest frame, in bytes; the link service fragments larger packets.
    pub mtu: usize,
    /// Both ends acknowledge frames and retransmit lost ones.
    pub reliability: bool,
    /// Removes the header *collided* from Data, as a network of core routers without it would.
    pub drops_collided_mark: bool,
    /// Removes PIT tokens, as forwarders without them would.
    pub drops_pit_tokens: bool,
}

impl Default for LinkOptions {
    /// A perfect Ethernet-sized wire of 1 ms.
    fn default() -> Self {
        LinkOptions {
            delay_ns: 1_000_000,
            jitter_ns: 0,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            reordering_delay_ns: 0,
            bandwidth_bits_per_s: None,
            queue_bytes: 256 * 1024,
            mtu: 1452,
            reliability: false,
            drops_collided_mark: false,
            drops_pit_tokens: false,
        }
    }
}

/// Why a frame did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkLoss {
    /// By [`LinkOptions::loss`].
    Random,
    /// The link was cut when the frame was sent or on its way.
    Down,
    /// More than [`LinkOptions::queue_bytes`] were waiting.
    QueueFull,
}

/// Counts of one direction, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTally {
    /// Frames given to the link.
    pub sent: u64,
    /// How many of these were duplicated.
    pub duplicated: u64,
    /// How many of these were held back.
    pub reordered: u64,
    /// Copies that arrived at the far end.
    pub arrived: u64,
    /// Copies that did not arrive, by reason.
    pub lost: [u64; 3],
}

impl LinkTally {
    /// Copies that did not arrive, for any reason.
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().sum()
    }

    /// Copies in flight.
    pub fn in_flight(&self) -> u64 {
        self.sent + self.duplicated - self.arrived - self.lost_total()
    }
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct LinkDirection {
    options: LinkOptions,
    rng: Rng,
    /// When the last accepted byte will have left.
    busy_until_ns: u64,
    up: bool,
    tally: LinkTally,
}

impl LinkDirection {
    pub(crate) fn new(options: LinkOptions, seed: u64) -> Self {
        LinkDirection { options, rng: Rng::with_seed(seed), busy_until_ns: 0, up: true, tally: LinkTally::default() }
    }

    /// Takes a frame and returns when its copies arrive; an error if it is lost.
    pub(crate) fn send(&mut self, now_ns: u64, frame_bytes: usize) -> Result<Arrivals, LinkLoss> {
        self.tally.sent += 1;
        let left_ns = self.admit(now_ns, frame_bytes).inspect_err(|&loss| self.tally.lost[loss as usize] += 1)?;
        let first_ns = left_ns + self.travel_ns();
        let second_ns = (self.rng.f64() < self.options.duplication).then(|| left_ns + self.travel_ns());
        self.tally.duplicated += u64::from(second_ns.is_some());
        Ok(Arrivals { first_ns, second_ns })
    }

    /// A copy reaches the far end, at the time that [`LinkDirection::send`] returned; false if the link is cut.
    pub(crate) fn arrive(&mut self) -> bool {
        match self.up {
            true => self.tally.arrived += 1,
            false => self.tally.lost[LinkLoss::Down as usize] += 1,
        }
        self.up
    }

    pub(crate) fn delay_ns(&self) -> u64 {
        self.options.delay_ns
    }

    pub(crate) fn set_up(&mut self, up: bool) {
        self.up = up;
    }

    pub(crate) fn set_loss(&mut self, loss: f64) {
        self.options.loss = loss;
    }

    pub(crate) fn set_delay(&mut self, delay_ns: u64) {
        self.options.delay_ns = delay_ns;
    }

    pub(crate) fn set_bandwidth(&mut self, bits_per_s: Option<u64>) {
        self.options.bandwidth_bits_per_s = bits_per_s;
    }

    /// The headers that pass the link.
    pub(crate) fn let_through(&self, headers: &LpHeaders) -> LpHeaders {
        LpHeaders {
            collided: headers.collided && !self.options.drops_collided_mark,
            pit_token: headers.pit_token.filter(|_| !self.options.drops_pit_tokens),
            ..*headers
        }
    }

    pub(crate) fn takes_tokens(&self) -> bool {
        !self.options.drops_pit_tokens
    }

    pub(crate) fn tally(&self) -> &LinkTally {
        &self.tally
    }

    /// When the last byte of the frame leaves, or why the frame is lost.
    fn admit(&mut self, now_ns: u64, frame_bytes: usize) -> Result<u64, LinkLoss> {
        // Chosen for every frame, so that cutting the link does not shift later choices.
        let lost = self.rng.f64() < self.options.loss;
        if !self.up {
            return Err(LinkLoss::Down);
        }
        if let Some(bits_per_s) = self.options.bandwidth_bits_per_s {
            let start_ns = self.busy_until_ns.max(now_ns);
            let waiting_bytes = bytes_in(start_ns - now_ns, bits_per_s);
            if waiting_bytes + frame_bytes as u64 > self.options.queue_bytes {
                return Err(LinkLoss::QueueFull);
            }
            self.busy_until_ns = start_ns + ns_for(frame_bytes as u64, bits_per_s);
        }
        if lost { Err(LinkLoss::Random) } else { Ok(self.busy_until_ns.max(now_ns)) }
    }

    fn travel_ns(&mut self) -> u64 {
        let held = self.rng.f64() < self.options.reordering;
        self.tally.reordered += u64::from(held);
        let held_ns = if held { self.options.reordering_delay_ns } else { 0 };
        self.options.delay_ns + self.rng.u64(0..=self.options.jitter_ns) + held_ns
    }
}

/// Arrival times of the copies of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrivals {
    pub(crate) first_ns: u64,
    pub(crate) second_ns: Option<u64>,
}

fn ns_for(bytes: u64, bits_per_s: u64) -> u64 {
    (u128::from(bytes) * 8_000_000_000 / u128::from(bits_per_s.max(1))) as u64
}

fn bytes_in(ns: u64, bits_per_s: u64) -> u64 {
    (u128::from(ns) * u128::from(bits_per_s) / 8_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_spaces_frames_and_its_queue_is_bounded() {
        // 8 Mbit/s: one byte per microsecond.
        let options = LinkOptions {
            delay_ns: 5,
            bandwidth_bits_per_s: Some(8_000_000),
            queue_bytes: 2500,
            ..LinkOptions::default()
        };
        let mut link = LinkDirection::new(options, 1);
        let mut arrivals = Vec::new();
        for _ in 0..4 {
            arrivals.push(link.send(0, 1000).map(|a| a.first_ns));
        }
        assert_eq!(arrivals, [Ok(1_000_005), Ok(2_000_005), Err(LinkLoss::QueueFull), Err(LinkLoss::QueueFull)]);
        assert_eq!(link.send(1_000_000, 1000).map(|a| a.first_ns), Ok(3_000_005), "one has left, there is room again");
    }

    #[test]
    fn loss_duplication_and_reordering_happen_as_often_as_asked_and_add_up() {
        let options = LinkOptions {
            loss: 0.2,
            duplication: 0.1,
            reordering: 0.3,
            reordering_delay_ns: 7_000_000,
            ..LinkOptions::default()
        };
        let mut link = LinkDirection::new(options, 3);
        let mut copies = 0;
        for _ in 0..10_000 {
            if let Ok(arrivals) = link.send(0, 100) {
                copies += 1 + u64::from(arrivals.second_ns.is_some());
            }
        }
        assert_eq!(link.tally().in_flight(), copies);
        for _ in 0..copies {
            assert!(link.arrive());
        }
        let tally = *link.tally();
        assert_eq!((tally.in_flight(), tally.sent), (0, 10_000));
        assert!((1900..2100).contains(&tally.lost_total()), "{tally:?}");
        assert!((700..900).contains(&tally.duplicated), "{tally:?}");
        assert!((2400..2900).contains(&tally.reordered), "{tally:?}");
    }

    #[test]
    fn a_cut_link_loses_what_is_sent_and_what_is_on_its_way() {
        let mut link = LinkDirection::new(LinkOptions::default(), 3);
        assert!(link.send(0, 10).is_ok());
        link.set_up(false);
        assert!(!link.arrive());
        assert_eq!(link.send(0, 10), Err(LinkLoss::Down));
        assert_eq!(link.tally().lost[LinkLoss::Down as usize], 2);
        assert_eq!(link.tally().in_flight(), 0);
    }
}
