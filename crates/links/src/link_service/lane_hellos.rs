//! The LaneHellos that come over a link: read, checked, and no more than some a second.

use namewire_packet::lane_hello::LaneHello;

use crate::LinkDrop;

/// LaneHellos that may come at once, and the time in which there is room for one more: ten a second.
const BURST: u64 = 10;
const REFILL_NS: u64 = 100_000_000;

#[derive(Default)]
pub(super) struct LaneHellos {
    /// The last one that was not taken yet.
    pub(super) last: Option<LaneHello>,
    /// When there would be room for [`BURST`] again.
    full_ns: u64,
}

impl LaneHellos {
    pub(super) fn take(&mut self, now_ns: u64, value: &[u8]) -> Result<(), LinkDrop> {
        let full_ns = self.full_ns.max(now_ns) + REFILL_NS;
        if full_ns > now_ns + BURST * REFILL_NS {
            return Err(LinkDrop::LaneHelloTooOften);
        }
        self.full_ns = full_ns;
        self.last = Some(LaneHello::parse(value).map_err(|_| LinkDrop::LaneHelloRefused)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkOptions, LinkService, Received};

    fn hello() -> LaneHello {
        LaneHello { instance: 1, echo: 2, hears: false, key: [3; 16], ports: vec![4, 5] }
    }

    #[test]
    fn hellos_are_heard_where_they_are_wanted_and_idle_packets_elsewhere() {
        let mut link = LinkService::new(LinkOptions::default());
        assert_eq!(link.receive(0, &hello().to_frame()), Ok(Received::Idle));
        assert_eq!(link.take_lane_hello(), None);
        link.hear_lane_hellos(true);
        assert_eq!(link.receive(0, &hello().to_frame()), Ok(Received::Idle));
        assert_eq!((link.take_lane_hello(), link.take_lane_hello()), (Some(hello()), None));
        let odd = LaneHello { ports: vec![4, 4], ..hello() };
        assert_eq!(link.receive(0, &odd.to_frame()), Err(LinkDrop::LaneHelloRefused));
        assert_eq!((link.take_lane_hello(), link.counters().dropped(LinkDrop::LaneHelloRefused)), (None, 1));
    }

    #[test]
    fn ten_hellos_a_second_are_heard() {
        let mut link = LinkService::new(LinkOptions::default());
        link.hear_lane_hellos(true);
        let second_ns = 1_000_000_000;
        for (from_ns, expected) in [(0, 20), (10 * second_ns, 20), (11 * second_ns, 10)] {
            let times = (0..1_000).map(|milli| from_ns + milli * 1_000_000);
            let heard = times.filter(|now_ns| link.receive(*now_ns, &hello().to_frame()).is_ok()).count();
            assert!((expected - 1..=expected + 1).contains(&heard), "{heard} at {from_ns}");
        }
    }
}
