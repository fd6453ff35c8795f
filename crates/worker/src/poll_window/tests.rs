//! A worker that sleeps and looks, in a world where a sleep has a price and packets come after given times.

use super::*;
use proptest::prelude::*;

/// What a worker has spent, and how often it did what.
#[derive(Debug, Default)]
struct World {
    window: PollWindow,
    now_ns: u64,
    /// Processor time of sleeps and looks.
    spent_ns: u64,
    /// The same of a worker that always sleeps.
    asleep_ns: u64,
    looks: u64,
    sleeps: u64,
}

impl World {
    /// In this world, a sleep costs `price_ns`, and the worker knows that.
    fn with_price(price_ns: u64) -> Self {
        let mut world = World::default();
        (0..100).for_each(|_| world.window.price(price_ns));
        world.window.price_ns = price_ns;
        world
    }

    /// The next packet comes after `gap_ns`. True if the worker found it without sleeping.
    fn packet_after(&mut self, gap_ns: u64, expects: Expects) -> bool {
        let price_ns = self.window.price_ns;
        self.asleep_ns += price_ns;
        let window_ns = self.window.window_ns(expects);
        self.looks += u64::from(window_ns > 0);
        if gap_ns < window_ns {
            self.now_ns += gap_ns;
            self.spent_ns += gap_ns;
            self.window.found(expects, gap_ns);
            return true;
        }
        if window_ns > 0 {
            self.spent_ns += window_ns;
            self.window.in_vain(window_ns);
        }
        self.sleeps += 1;
        self.spent_ns += price_ns;
        self.now_ns += gap_ns + price_ns;
        self.window.woken(self.now_ns, expects, gap_ns + price_ns);
        false
    }
}

#[test]
fn one_interest_in_flight_ends_the_sleeping() {
    for price_ns in [2_000, 15_000, 50_000] {
        let mut world = World::with_price(price_ns);
        let exchange = |world: &mut World| {
            [Expects::Data, Expects::Interest].iter().all(|&expects| world.packet_after(price_ns / 2, expects))
        };
        (0..100).for_each(|_| _ = exchange(&mut world));
        assert!((0..10_000).all(|_| exchange(&mut world)), "{world:?}");
        assert!(world.spent_ns < world.asleep_ns * 6 / 10, "{world:?}");
    }
}

#[test]
fn a_packet_a_millisecond_is_never_waited_for() {
    let mut world = World::with_price(15_000);
    (0..1_000).for_each(|_| _ = world.packet_after(1_000_000, Expects::Interest));
    assert_eq!((world.looks, world.spent_ns), (0, world.asleep_ns));
}

#[test]
fn data_is_waited_for_where_interests_are_not() {
    let mut world = World::with_price(15_000);
    let mut exchange = || {
        let found = world.packet_after(5_000, Expects::Data);
        (found, world.packet_after(900_000, Expects::Interest))
    };
    (0..100).for_each(|_| _ = exchange());
    assert!((0..100).all(|_| exchange() == (true, false)));
    assert!(world.spent_ns < world.asleep_ns, "{world:?}");
}

#[test]
fn a_window_closes_after_the_last_packet_and_opens_with_the_next_soon_one() {
    let mut world = World::with_price(15_000);
    (0..100).for_each(|_| _ = world.packet_after(5_000, Expects::Data));
    assert!(world.window.window_ns(Expects::Data) > 5_000);
    world.packet_after(1_000_000, Expects::Data);
    assert_eq!(world.window.longest_ns(), 0);
    world.packet_after(5_000, Expects::Data);
    assert_eq!(world.window.window_ns(Expects::Data), 10_000, "credit was left");
}

#[test]
fn a_window_follows_shorter_gaps() {
    let mut world = World::with_price(50_000);
    (0..100).for_each(|_| _ = world.packet_after(24_000, Expects::Data));
    assert_eq!(world.window.window_ns(Expects::Data), 48_000);
    (0..100).for_each(|_| _ = world.packet_after(3_000, Expects::Data));
    assert!(world.window.window_ns(Expects::Data) < 7_000, "{world:?}");
}

#[test]
fn looks_cease_while_another_thread_wants_the_processor() {
    let mut world = World::with_price(15_000);
    let mut closed_ns = Vec::new();
    for _ in 0..9 {
        let closed_at_ns = world.now_ns;
        world.window.close(closed_at_ns);
        let looks = world.looks;
        while world.looks == looks {
            world.packet_after(1_000, Expects::Data);
        }
        closed_ns.push(world.now_ns - closed_at_ns);
    }
    for (time, (closed_ns, least_ms)) in closed_ns.iter().zip([10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]).enumerate()
    {
        assert!((least_ms..=least_ms + 2).contains(&(closed_ns / 1_000_000)), "time {time}: {closed_ns} ns");
    }
    world.now_ns += CLOSED_NS_MAX * 6;
    world.window.close(world.now_ns);
    assert_eq!(world.window.closed_ns, CLOSED_NS_MIN, "that was long ago");
}

#[test]
fn a_price_is_learnt_and_an_absurd_one_is_cut() {
    let mut window = PollWindow::default();
    (0..100).for_each(|_| window.price(15_000));
    assert!((22_400..=22_500).contains(&window.price_ns), "{}", window.price_ns);
    (0..100).for_each(|_| window.price(u64::MAX));
    assert!(window.price_ns <= PRICE_NS_MAX);
}

proptest! {
    /// The promise of the module.
    #[test]
    fn looking_never_costs_more_than_an_eighth_of_sleeping(
        price_ns in 0u64..=PRICE_NS_MAX,
        packets in prop::collection::vec((0u64..120_000, any::<bool>(), 0u8..100), 1..2_000),
    ) {
        let mut world = World::with_price(price_ns);
        for (gap_ns, is_data, event) in packets {
            if event == 0 {
                world.window.close(world.now_ns);
                world.now_ns += CLOSED_NS_MAX;
            }
            world.packet_after(gap_ns, if is_data { Expects::Data } else { Expects::Interest });
            prop_assert!(world.spent_ns <= world.asleep_ns + world.asleep_ns / CREDIT_PART_OF_SLEEP, "{:?}", world);
        }
    }
}
