//! A user-defined strategy in a simulated network (docs/extending.md).
//!
//! `cargo run --release -p namewire-sim --example own_strategy`

use namewire_engine::{DropReason, FaceId, Strategy, StrategyContext};
use namewire_packet::NackReason;
use namewire_sim::{Consumer, ConsumerOptions, LinkOptions, Network, NodeOptions, Outcome, Producer, RunEnd};
use std::sync::Arc;

// strategy
/// Every new Interest goes to the two cheapest next hops, so that one loss goes unnoticed.
#[derive(Debug)]
struct TwoCopies;

impl Strategy for TwoCopies {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        if context.is_any_upstream_pending() {
            return context.count_drop(DropReason::Suppressed); // every drop has a name
        }
        let [first, second]: [Option<FaceId>; 2] = {
            let mut cheapest = context.eligible(); // scope, HopLimit and the way back are looked after
            [cheapest.next(), cheapest.next()]
        };
        let Some(first) = first else {
            context.count_drop(DropReason::NoRoute);
            context.send_nack(context.ingress(), NackReason::NoRoute);
            return context.reject(); // no answer will come: the entry ends
        };
        context.send_interest(first);
        if let Some(second) = second {
            // With the same nonce, the copy would be dropped as a loop where the paths meet.
            let nonce = context.new_nonce();
            context.send_copy(second, nonce);
        }
    }

    fn after_receive_nack(&self, context: &mut StrategyContext<'_, '_, '_>, reason: NackReason) {
        if !context.is_any_upstream_pending() {
            context.send_nack_to_all(reason);
        }
    }
}
// end

// network
/// Names of a thousand that came without a second Interest of their consumer, over two paths that lose one frame in ten
/// on each link:
///
/// ```text
///           ┌── wireless ──┐
///   home ───┤              ├─── server
///           └──── wire ────┘
/// ```
fn at_the_first_try(set_strategy: impl FnOnce(&mut Network, namewire_sim::NodeId)) -> usize {
    let mut net = Network::new(1, 0);
    let [home, wireless, wire, server] = [(); 4].map(|()| net.add_node(NodeOptions::default()));
    for (middle, cost) in [(wireless, 10), (wire, 20)] {
        let lossy = LinkOptions { delay_ns: 2_000_000, loss: 0.1, ..LinkOptions::default() };
        let (near, far) = (net.connect(home, middle, lossy), net.connect(middle, server, lossy));
        net.add_route(home, "/video", near.face_a, cost);
        net.add_route(middle, "/video", far.face_a, 0);
    }
    set_strategy(&mut net, home);

    let producer = net.attach(server, Producer::of_content(1000, 0));
    net.add_route(server, "/video", producer.face, 0);
    let names = (0..1000).map(|segment| format!("/video/{segment}").parse().expect("a name"));
    let options = ConsumerOptions { transmissions: 10, retransmit_after_ms: 300, ..ConsumerOptions::default() };
    let consumer = net.attach(home, Consumer::new(names, options));

    assert_eq!(net.run_for(60_000_000_000), RunEnd::Idle); // simulated nanoseconds
    let outcomes = net.application::<Consumer>(consumer.app).outcomes();
    outcomes.values().filter(|outcome| matches!(outcome, Outcome::Satisfied { transmissions: 1, .. })).count()
}
// end

/// With best-route, and with ours.
fn compare() -> [usize; 2] {
    let ours = |net: &mut Network, home| {
        net.set_own_strategy(home, "/video", "/localhost/nfd/strategy/two-copies/v=1", Arc::new(TwoCopies));
    };
    [at_the_first_try(|net, home| net.set_strategy(home, "/video", "best-route")), at_the_first_try(ours)]
}

fn main() {
    let [best_route, two_copies] = compare();
    println!("names of 1000 that came at the first try: best-route {best_route}, two-copies {two_copies}");
}

/// A path loses 1 - 0.9⁴ = 34 % of the exchanges, both paths together 12 %.
#[test]
fn two_copies_hide_one_loss() {
    let [best_route, two_copies] = compare();
    assert!((600..720).contains(&best_route), "{best_route}");
    assert!((840..920).contains(&two_copies), "{two_copies}");
}
