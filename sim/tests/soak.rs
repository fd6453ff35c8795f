//! Soak: hours of churn; after each hour, the network returns to its former state.
//!
//! Three routers in a row with a producer at the end. Consumers on each of them ask at random times, some under
//! prefixes without a producer; one comes and goes each minute, with a separate face. Links lose and repeat frames and
//! are cut; routers pause and restart; a hostile host leaves long Interests behind. In the last two minutes of each
//! hour, no consumer asks. Then all counters add up ([`Network::audit`]), all pools are empty, and memory is as after
//! the second hour.
//!
//! `NAMEWIRE_SIM_HOURS=24 cargo test --release -p namewire-sim --test soak -- --nocapture` runs it for a day; without
//! the variable it is one hour.

use fastrand::Rng;
use namewire_engine::EngineConfig;
use namewire_packet::{InterestBuilder, NameBuf, Nonce, lp::LpHeaders};
use namewire_sim::{AppIo, Application, LinkId, LinkOptions, Network, NodeId, NodeOptions, Producer, RunEnd};
use namewire_testbed::counting_allocator::{CountingAllocator, live_bytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MS_NS: u64 = 1_000_000;
const MINUTE_NS: u64 = 60_000 * MS_NS;
const HOUR_NS: u64 = 60 * MINUTE_NS;

/// When nobody asks any more: the Interests that are pending then end within the hour.
const BUSY_NS: u64 = 58 * MINUTE_NS;

/// What the simulator itself may keep of an hour: the ends of links of applications that are gone.
const GROWTH_BYTES_PER_HOUR: i64 = 400_000;

/// Asks at random times, and remembers nothing but counts.
struct Asker {
    mean_interval_ns: u64,
    /// How often an Interest is for what nobody has, of 16.
    silent: u8,
    lifetime_max_ms: u64,
    until_ns: u64,
    sent: u64,
    received: u64,
}

impl Asker {
    fn new(mean_interval_ns: u64, silent: u8, lifetime_max_ms: u64, until_ns: u64) -> Self {
        Asker { mean_interval_ns, silent, lifetime_max_ms, until_ns, sent: 0, received: 0 }
    }
}

impl Application for Asker {
    fn start(&mut self, io: &mut AppIo<'_>) {
        let first_ns = io.now_ns + io.rng.u64(..self.mean_interval_ns);
        io.wake_at(first_ns);
    }

    fn receive(&mut self, _: &mut AppIo<'_>, _: &LpHeaders, _: &[u8]) {
        self.received += 1;
    }

    fn wake(&mut self, io: &mut AppIo<'_>) {
        if io.now_ns >= self.until_ns {
            return;
        }
        if io.now_ns % HOUR_NS < BUSY_NS {
            let prefix = if io.rng.u8(..16) < self.silent { "dead" } else { "p" };
            let name: NameBuf = format!("/{prefix}/{}", io.rng.u32(..20_000)).parse().unwrap();
            let lifetime_ms = io.rng.u64(1..self.lifetime_max_ms);
            let interest = InterestBuilder::new(name).nonce(Nonce::from_u32(io.rng.u32(..))).lifetime_ms(lifetime_ms);
            let wire = interest.must_be_fresh(io.rng.bool()).build();
            io.send(wire);
            self.sent += 1;
        }
        let next_ns = io.now_ns + 1 + io.rng.u64(..2 * self.mean_interval_ns);
        io.wake_at(next_ns);
    }
}

/// Something happens in this minute.
fn disturb(net: &mut Network, nodes: &[NodeId], links: &[LinkId], minute: u64, random: &mut Rng) {
    let begin_ns = net.now_ns();
    let any_ns = |random: &mut Rng| begin_ns + random.u64(..MINUTE_NS);
    let node = nodes[random.usize(..nodes.len())];
    let link = links[random.usize(..links.len())];
    match random.u8(..6) {
        0 => net.at(any_ns(random), move |net| net.restart(node)),
        1 => {
            let still_ns = random.u64(1..5_000) * MS_NS;
            net.at(any_ns(random), move |net| net.stand_still(node, still_ns));
        }
        2 => {
            let (cut_ns, cut_for_ns) = (any_ns(random), random.u64(1..10_000) * MS_NS);
            net.at(cut_ns, move |net| net.set_link_up(link, false));
            net.at(cut_ns + cut_for_ns, move |net| net.set_link_up(link, true));
        }
        _ => {}
    }
    // A consumer comes, and its face goes in the middle of what it does.
    let guest =
        net.attach_host(node, 10 + minute as usize % 50, Asker::new(200 * MS_NS, 8, 4_000, begin_ns + MINUTE_NS));
    let leaves_ns = begin_ns + random.u64(1..MINUTE_NS);
    net.at(leaves_ns, move |net| net.remove_face(node, guest.face));
}

fn assert_rest(net: &Network, nodes: &[NodeId], when: &str) {
    assert_eq!(net.audit(), Vec::<String>::new(), "{when}");
    for &node in nodes {
        for pool in net.engines(node).flat_map(|engine| engine.pools()) {
            let held: u64 = pool.holdings().map(|holding| holding.held).sum();
            assert_eq!(held, 0, "{} after {when}", pool.config().name);
        }
    }
}

#[test]
fn after_each_hour_of_churn_everything_is_as_before() {
    let hours = std::env::var("NAMEWIRE_SIM_HOURS").map_or(1, |text| text.parse().expect("hours"));
    let mut random = Rng::with_seed(24);
    let mut net = Network::new(24, 0);
    let engine = EngineConfig { pit_capacity_entries: 512, cs_capacity_packets: 256, ..EngineConfig::default() };
    let nodes: Vec<NodeId> = (1..4)
        .map(|workers| net.add_node(NodeOptions { workers, engine: engine.clone(), ..NodeOptions::default() }))
        .collect();
    let wire = LinkOptions { delay_ns: 5 * MS_NS, loss: 0.01, duplication: 0.01, ..LinkOptions::default() };
    let mut links = Vec::new();
    for pair in nodes.windows(2) {
        let connection = net.connect(pair[0], pair[1], wire);
        links.push(connection.link);
        for prefix in ["/p", "/dead"] {
            net.add_route(pair[0], prefix, connection.face_a, 10);
        }
    }
    let producer = net.attach(nodes[2], Producer::of_content(100, 1_000));
    net.add_route(nodes[2], "/p", producer.face, 0);
    let silent = net.attach(nodes[2], Producer::new(|_| None));
    net.add_route(nodes[2], "/dead", silent.face, 0);
    let end_ns = net.now_ns() + hours * HOUR_NS;
    let honest = nodes.clone().into_iter().map(|node| net.attach(node, Asker::new(250 * MS_NS, 4, 4_000, end_ns)).app);
    let honest: Vec<_> = honest.collect();
    for _ in 0..4 {
        net.attach_host(nodes[0], 0, Asker::new(100 * MS_NS, 15, 100_000, end_ns));
    }

    let mut live = Vec::new();
    let first_ns = net.now_ns();
    for hour in 0..hours {
        let begin_ns = hour * HOUR_NS;
        for minute in 0..59 {
            disturb(&mut net, &nodes, &links, minute, &mut random);
            assert_eq!(net.run_for(MINUTE_NS), RunEnd::TimeReached);
        }
        // Just before the next hour.
        let rest_ns = begin_ns + HOUR_NS - first_ns % HOUR_NS - (net.now_ns() - first_ns) - MS_NS;
        let _ = net.run_for(rest_ns);
        assert_rest(&net, &nodes, &format!("hour {hour}"));
        live.push(live_bytes());
        let of = |app| (net.application::<Asker>(app).sent, net.application::<Asker>(app).received);
        println!("hour {hour}: {} bytes, {:?}", live_bytes(), honest.iter().map(|&app| of(app)).collect::<Vec<_>>());
    }
    for &app in &honest {
        let asker = net.application::<Asker>(app);
        assert!(asker.received * 2 > asker.sent && asker.sent > hours * 10_000, "{} of {}", asker.received, asker.sent);
    }
    if let [_, second, .., last] = live[..] {
        let limit = GROWTH_BYTES_PER_HOUR * (hours as i64 - 2);
        assert!(last - second <= limit, "memory grows: {live:?}");
    }
}
