//! Without a Content Store, do the other copies of a satisfied Interest end?
//!
//! The story: two routers joined by two links, multicast on one. A copy was sent over the first link, and returned over
//! the second after the neighbouring producer had answered. The PIT entry was gone and no stored Data stopped the copy,
//! so 40 Interests looped for ever (120,000 reached the producer in 30 s). Hence the nonces of an entry with several
//! upstreams are kept when it is satisfied.

use namewire_engine::EngineConfig;
use namewire_sim::{Consumer, ConsumerOptions, LinkOptions, Network, NodeOptions, Producer, RunEnd};

#[test]
fn copies_of_a_satisfied_interest_do_not_loop() {
    let mut net = Network::new(1, 0);
    let engine = EngineConfig { cs_admit: false, ..EngineConfig::default() };
    let node = NodeOptions { engine, ..NodeOptions::default() };
    let [far, home] = [0, 1].map(|_| net.add_node(node.clone()));
    let wire = LinkOptions { delay_ns: 5_000_000, ..LinkOptions::default() };
    let [first, second] = [0, 1].map(|_| net.connect(far, home, wire));
    net.set_strategy(home, "/", "multicast");
    let producer = net.attach(home, Producer::of_content(100, 0));
    net.add_route(home, "/p", producer.face, 0);
    net.add_route(home, "/p", first.face_b, 50);
    net.add_route(far, "/p", first.face_a, 10);
    net.add_route(far, "/p", second.face_a, 50);
    let names = (0..40).map(|number| format!("/p/{number}").parse().expect("a name"));
    let consumer = net.attach(home, Consumer::new(names, ConsumerOptions::default()));

    assert_eq!(net.run_for(30_000_000_000), RunEnd::Idle);
    assert_eq!(net.application::<Consumer>(consumer.app).satisfied(), 40);
    assert_eq!(net.application::<Producer>(producer.app).tally().interests, 40);
    assert_eq!(net.audit(), Vec::<String>::new());
}
