//! Hostile hosts among honest ones: every packet is accounted for, and honest applications are served.
//!
//! A line of routers with a producer at its far end. Links lose, repeat and reorder frames; some are cut for a while;
//! routers pause, so that their clocks jump, or restart without their tables. At each router there is a local consumer
//! and one on another host. At one router, a hostile host with 40 faces attacks for the whole time. It sends Interests
//! with a lifetime of an hour, with and without answers; Interests and forged Data for the names that honest consumers
//! request; Nacks; and bytes that are no packet. PITs are small, so that the host could fill them many times over. No
//! honest consumer gets a forgery, and no router stores one.
//!
//! `NAMEWIRE_SIM_INTERESTS=10000000 cargo test --release -p namewire-sim --test networks hostile:: -- --nocapture` runs
//! more networks, and `NAMEWIRE_SIM_SEED=2` other ones.

use crate::from_environment;
use fastrand::Rng;
use namewire_engine::EngineConfig;
use namewire_packet::{DataBuilder, InterestBuilder, NackReason, NameBuf, Nonce, lp::LpHeaders};
use namewire_sim::{
    AppId, AppIo, Application, Consumer, ConsumerOptions, LinkOptions, Network, NodeId, NodeOptions, Producer, RunEnd,
};

const MS_NS: u64 = 1_000_000;
const PIT_CAPACITY: u32 = 512;
const FACES: u64 = 40;
/// Of each consumer; it asks for one each 5 ms.
const NAMES: u64 = 600;
const ATTACK_NS: u64 = 4_000 * MS_NS;
/// Between two packets of one of the hostile faces; together they send 20,000 a second.
const PACKET_INTERVAL_NS: u64 = 2 * MS_NS;

fn name(text: &str) -> NameBuf {
    text.parse().expect("a name")
}

/// One face of the hostile host.
struct Attacker {
    until_ns: u64,
    sent_interests: u64,
}

impl Attacker {
    fn packet(&mut self, rng: &mut Rng) -> (LpHeaders, Vec<u8>) {
        let (kind, number, nonce) = (rng.u8(..16), rng.u64(..), Nonce::from_u32(rng.u32(..)));
        let interest =
            |name: NameBuf, lifetime_ms| InterestBuilder::new(name).nonce(nonce).lifetime_ms(lifetime_ms).build();
        let bare = LpHeaders::default();
        self.sent_interests += u64::from(kind < 13);
        match kind {
            0..8 => (bare, interest(name(&format!("/dead/{number}")), 3_600_000)),
            8..10 => (bare, interest(name(&format!("/p/x/{number}")), 3_600_000)),
            10..13 => {
                // What a consumer may want just now.
                let (consumer, number) = (number % 8, number >> 32);
                (bare, interest(name(&format!("/p/{consumer}/{}", number % NAMES)), 60_000))
            }
            13 => {
                let wanted = name(&format!("/p/{}/{}", number % 8, (number >> 32) % NAMES));
                (bare, DataBuilder::new(wanted).freshness_ms(3_600_000).content(b"forged").sign_digest())
            }
            14 => {
                let nack = LpHeaders { nack: Some(NackReason::NoRoute), ..LpHeaders::default() };
                (nack, interest(name(&format!("/p/{}/{}", number % 8, number >> 54)), 4000))
            }
            _ => (bare, (0..rng.usize(1..60)).map(|_| rng.u8(..)).collect()),
        }
    }
}

impl Application for Attacker {
    fn start(&mut self, io: &mut AppIo<'_>) {
        let first_ns = io.now_ns + io.rng.u64(..PACKET_INTERVAL_NS);
        io.wake_at(first_ns);
    }

    fn receive(&mut self, _: &mut AppIo<'_>, _: &LpHeaders, _: &[u8]) {}

    fn wake(&mut self, io: &mut AppIo<'_>) {
        let (headers, packet) = self.packet(io.rng);
        io.send_at(io.now_ns, headers, packet);
        let next_ns = io.now_ns + PACKET_INTERVAL_NS;
        if next_ns < self.until_ns {
            io.wake_at(next_ns);
        }
    }
}

/// What became of the honest Interests of a network.
#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    local: [u64; 2],
    remote: [u64; 2],
    displaced: u64,
}

/// 2 to 4 routers in a row, with producers of `/p` and of the silent `/dead` at the end. Links lose, repeat and
/// reorder; some are cut, some routers stand still or start again.
fn routers_in_a_row(net: &mut Network, random: &mut Rng) -> Vec<NodeId> {
    let engine =
        EngineConfig { pit_capacity_entries: PIT_CAPACITY, cs_capacity_packets: 64, ..EngineConfig::default() };
    let size = random.usize(2..5);
    let nodes: Vec<NodeId> = (0..size)
        .map(|_| {
            net.add_node(NodeOptions { workers: random.u8(1..4), engine: engine.clone(), ..NodeOptions::default() })
        })
        .collect();
    let wire = LinkOptions {
        delay_ns: random.u64(0..5) * MS_NS,
        loss: 0.01,
        duplication: 0.02,
        reordering: 0.02,
        reordering_delay_ns: 10 * MS_NS,
        ..LinkOptions::default()
    };
    for pair in nodes.windows(2) {
        let connection = net.connect(pair[0], pair[1], wire);
        net.add_route(pair[0], "/p", connection.face_a, 10);
        net.add_route(pair[0], "/dead", connection.face_a, 10);
        if random.u8(..3) == 0 {
            let cut_ns = net.now_ns() + random.u64(500..3000) * MS_NS;
            net.at(cut_ns, move |net| net.set_link_up(connection.link, false));
            net.at(cut_ns + 100 * MS_NS, move |net| net.set_link_up(connection.link, true));
        }
    }
    for &node in &nodes {
        let at_ns = net.now_ns() + random.u64(500..3000) * MS_NS;
        match random.u8(..4) {
            0 => net.at(at_ns, move |net| net.restart(node)),
            1 => {
                let still_ns = random.u64(1..300) * MS_NS;
                net.at(at_ns, move |net| net.stand_still(node, still_ns));
            }
            _ => {}
        }
    }
    let home = nodes[size - 1];
    let producer = net.attach(home, Producer::of_content(100, 1000));
    net.add_route(home, "/p", producer.face, 0);
    let silent = net.attach(home, Producer::new(|_| None));
    net.add_route(home, "/dead", silent.face, 0);
    nodes
}

fn run(seed: u64, tally: &mut Tally) {
    let mut random = Rng::with_seed(seed);
    let mut net = Network::new(seed, 0);
    let nodes = routers_in_a_row(&mut net, &mut random);
    let options = ConsumerOptions {
        interval_ns: 5 * MS_NS,
        lifetime_ms: 2000,
        transmissions: 5,
        retransmit_after_ms: 300,
        ..ConsumerOptions::default()
    };
    let names = |consumer: usize| (0..NAMES).map(move |number| name(&format!("/p/{consumer}/{number}")));
    let mut honest: Vec<(bool, AppId)> = Vec::new();
    for (index, &node) in nodes.iter().enumerate() {
        honest.push((true, net.attach(node, Consumer::new(names(2 * index), options)).app));
        honest.push((false, net.attach_host(node, index, Consumer::new(names(2 * index + 1), options)).app));
    }
    let (target, until_ns) = (nodes[random.usize(..nodes.len())], net.now_ns() + ATTACK_NS);
    let attackers: Vec<AppId> =
        (0..FACES).map(|_| net.attach_host(target, 100, Attacker { until_ns, sent_interests: 0 }).app).collect();

    // Until the last of the Interests of an hour has ended.
    assert_eq!(net.run_for(2 * 3_600_000 * MS_NS), RunEnd::Idle, "seed {seed}");
    assert_eq!(net.audit(), Vec::<String>::new(), "seed {seed}");
    for (is_local, app) in honest {
        let consumer = net.application::<Consumer>(app);
        let of_scope = if is_local { &mut tally.local } else { &mut tally.remote };
        *of_scope = [of_scope[0] + NAMES, of_scope[1] + consumer.satisfied() as u64];
        assert_eq!((consumer.tally().damaged, consumer.tally().wrong_token), (0, 0), "seed {seed}");
        tally.sent += consumer.tally().interests;
    }
    tally.sent += attackers.iter().map(|app| net.application::<Attacker>(*app).sent_interests).sum::<u64>();
    tally.displaced += net.displaced_entries(target);
}

#[test]
fn a_hostile_host_takes_nothing_from_honest_ones() {
    let interests = from_environment("NAMEWIRE_SIM_INTERESTS", 400_000);
    let first_seed = from_environment("NAMEWIRE_SIM_SEED", 1) << 32;
    let mut tally = Tally::default();
    for seed in first_seed.. {
        if tally.sent >= interests {
            break;
        }
        run(seed, &mut tally);
    }
    let goodput = |[asked, satisfied]: [u64; 2]| satisfied as f64 / asked as f64;
    println!("{tally:?}: local {:.4}, remote {:.4}", goodput(tally.local), goodput(tally.remote));
    assert!(goodput(tally.local) >= 0.9 && goodput(tally.remote) >= 0.8, "{tally:?}");
    assert!(tally.displaced > interests / 20, "the attack is no attack: {tally:?}");
}
