//! A router on sockets counts the same with any number of workers.
//!
//! The same exchanges run over two routers joined by UDP (with tokens on that link) and at one of them alone (without).
//! The exchanges have exact names; CanBePrefix; both for one Data that arrives once and without a token; names without
//! a route; Nacks; loops; Interests without an answer; and unsolicited Data. The Content Store is off.

use crate::application::{Application, PATIENCE, name, start_with};
use namewire_packet::{
    DataBuilder, NackReason,
    lp::LpHeaders,
    nfd::{ControlParameters, DropCounter, ForwarderStatus},
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Exchanges of each kind, sent at once: fewer than a socket buffer holds.
const COUNT: usize = 60;

/// A worker publishes its counters when it becomes idle, and every 5 ms while busy.
const PUBLISHED: Duration = Duration::from_millis(50);

const SILENCE_MS: u64 = 300;

/// The totals of a router, without its management traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Totals {
    satisfied: u64,
    unsatisfied: u64,
    in_nacks: u64,
    out_nacks: u64,
    drops: BTreeMap<String, u64>,
}

/// Reads the counters of one router over its own connection. Every request is a satisfied Interest.
struct Observer {
    connection: Application,
    before: ForwarderStatus,
    requests: u64,
}

impl Observer {
    fn begin(mut connection: Application) -> Self {
        std::thread::sleep(PUBLISHED);
        let before = connection.status();
        Observer { connection, before, requests: 1 }
    }

    fn status(&mut self) -> ForwarderStatus {
        self.requests += 1;
        self.connection.status()
    }

    /// Waits until only the request itself is pending.
    fn end(mut self) -> Totals {
        let deadline = Instant::now() + PATIENCE;
        while self.status().n_pit_entries > 1 {
            assert!(Instant::now() < deadline, "Interests stay pending");
            std::thread::sleep(PUBLISHED);
        }
        self.requests += 1;
        let drops: Vec<DropCounter> = self.connection.dataset("/status/drops");
        std::thread::sleep(PUBLISHED);
        let after = self.connection.status();
        Totals {
            satisfied: after.n_satisfied_interests - self.before.n_satisfied_interests - self.requests,
            unsatisfied: after.n_unsatisfied_interests - self.before.n_unsatisfied_interests,
            in_nacks: after.packets.in_nacks - self.before.packets.in_nacks,
            out_nacks: after.packets.out_nacks - self.before.packets.out_nacks,
            drops: drops.into_iter().map(|drop| (drop.reason, drop.count)).collect(),
        }
    }
}

/// The applications of one set of exchanges, all under `prefix`.
struct Exchanges {
    prefix: &'static str,
    consumer: Application,
    other: Application,
    producer: Application,
}

fn uri(prefix: &str, kind: &str, number: usize) -> String {
    format!("{prefix}/{kind}/{number}")
}

fn data(uri: &str) -> Vec<u8> {
    DataBuilder::new(name(uri)).content(uri.as_bytes()).sign_digest()
}

impl Exchanges {
    /// Asks for all numbers of `kind` and lets the producer answer each with what `answer` makes of the URI. Returns
    /// how many Data and Nacks came back.
    fn exchange(&mut self, kind: &str, can_be_prefix: bool, answer: impl Fn(&str) -> Option<String>) -> (usize, usize) {
        for number in 0..COUNT {
            let interest = self.consumer.interest(name(&uri(self.prefix, kind, number)));
            self.consumer.send(&interest.can_be_prefix(can_be_prefix).build());
        }
        for _ in 0..COUNT {
            let packet = self.producer.receive().expect("an Interest");
            match answer(&packet.interest().name().to_string()) {
                Some(uri) => self.producer.send(&data(&uri)),
                None => {
                    let nack = LpHeaders { nack: Some(NackReason::Congestion), ..LpHeaders::default() };
                    self.producer.send_with(&nack, &packet.bytes);
                }
            }
        }
        self.collect()
    }

    fn collect(&mut self) -> (usize, usize) {
        let packets: Vec<bool> =
            (0..COUNT).map(|_| self.consumer.receive().expect("an answer").headers.nack.is_some()).collect();
        let nacks = packets.iter().filter(|&&is_nack| is_nack).count();
        (COUNT - nacks, nacks)
    }

    /// The exchanges that work on every path.
    fn common(&mut self) {
        assert_eq!(self.exchange("exact", false, |uri| Some(uri.to_owned())), (COUNT, 0));
        assert_eq!(self.exchange("prefix", true, |uri| Some(format!("{uri}/below/it"))), (COUNT, 0));
        assert_eq!(self.exchange("nacked", false, |_| None), (0, COUNT));
        self.silence(false);
    }

    /// Interests without an answer, until their lifetime is over.
    fn silence(&mut self, can_be_prefix: bool) {
        for number in 0..COUNT {
            let interest = self.consumer.interest(name(&uri(self.prefix, "silence", number)));
            self.consumer.send(&interest.can_be_prefix(can_be_prefix).lifetime_ms(SILENCE_MS).build());
        }
        for _ in 0..COUNT {
            self.producer.receive().expect("an Interest");
        }
    }

    /// One consumer asks by prefix, the other by name; the Data comes once, without a token.
    fn one_data_for_two(&mut self) {
        for number in 0..COUNT {
            let prefix = uri(self.prefix, "both", number);
            let by_prefix = self.consumer.interest(name(&prefix)).can_be_prefix(true).build();
            self.consumer.send(&by_prefix);
            let by_name = self.other.interest(name(&format!("{prefix}/it"))).build();
            self.other.send(&by_name);
        }
        for _ in 0..2 * COUNT {
            self.producer.receive().expect("an Interest");
        }
        for number in 0..COUNT {
            self.producer.send(&data(&format!("{}/it", uri(self.prefix, "both", number))));
        }
        for _ in 0..COUNT {
            assert!(self.consumer.receive().is_some() && self.other.receive().is_some());
        }
    }

    /// The same Interest from two faces: the second is a loop.
    fn loops(&mut self) {
        for number in 0..COUNT {
            let interest = self.consumer.interest(name(&uri(self.prefix, "loop", number))).build();
            self.consumer.send(&interest);
            self.producer.receive().expect("the first");
            self.other.send(&interest);
            assert_eq!(self.other.receive().expect("a Nack").headers.nack, Some(NackReason::Duplicate));
            self.producer.send(&data(&uri(self.prefix, "loop", number)));
            assert!(self.consumer.receive().is_some());
        }
    }

    /// Unsolicited Data while CanBePrefix Interests wait for other Data, and Interests that may go nowhere.
    fn unwanted(&mut self) {
        self.silence(true);
        for number in 0..COUNT {
            self.producer.send(&data(&uri(self.prefix, "unwanted", number)));
            let no_hops = self.other.interest(name(&uri(self.prefix, "near", number))).hop_limit(0).build();
            self.other.send(&no_hops);
        }
    }

    /// Names under `prefix`, for which a router on the way has no route.
    fn no_route(&mut self, prefix: &str) {
        for number in 0..COUNT {
            let interest = self.consumer.interest(name(&uri(prefix, "lost", number))).build();
            self.consumer.send(&interest);
        }
        assert_eq!(self.collect(), (0, COUNT));
    }
}

fn run(workers: usize) -> [Totals; 2] {
    let start = || start_with(workers, |config| config.settings.cs.admit = false);
    let ((near, _near_directory), (far, _far_directory)) = (start(), start());
    let (mut near_operator, mut far_operator) = (Application::connect(&near), Application::connect(&far));
    let link = |operator: &mut Application, remote: std::net::SocketAddr| {
        let parameters = ControlParameters { uri: Some(format!("udp4://{remote}")), ..Default::default() };
        operator.succeed("/faces/create", parameters).face_id
    };
    let to_far = link(&mut near_operator, far.udp()[0]);
    link(&mut far_operator, near.udp()[0]);
    for prefix in ["/far", "/lost"] {
        let route = ControlParameters { name: Some(name(prefix)), face_id: to_far, ..Default::default() };
        near_operator.succeed("/rib/register", route);
    }
    let exchanges = |prefix, at| {
        let mut producer = Application::connect(at);
        producer.register(prefix);
        Exchanges { prefix, consumer: Application::connect(&near), other: Application::connect(&near), producer }
    };
    let (mut across, mut alone) = (exchanges("/far", &far), exchanges("/near", &near));
    let observers = [near_operator, far_operator].map(Observer::begin);

    across.common();
    across.no_route("/lost");
    alone.common();
    alone.no_route("/nowhere");
    alone.one_data_for_two();
    alone.loops();
    alone.unwanted();
    observers.map(Observer::end)
}

#[test]
fn any_number_of_workers_comes_to_the_same_totals() {
    let count = COUNT as u64;
    let [near, far] = run(1);
    assert_eq!((near.satisfied, near.unsatisfied), (7 * count, 7 * count), "{near:?}");
    assert_eq!((near.in_nacks, near.out_nacks), (3 * count, 5 * count), "{near:?}");
    assert_eq!((far.satisfied, far.unsatisfied, far.in_nacks, far.out_nacks), (2 * count, 3 * count, count, 2 * count));
    let reasons = ["engine.duplicate-nonce", "engine.hop-limit-zero", "engine.no-route", "engine.unsolicited-data"];
    assert_eq!(near.drops, reasons.map(|reason| (reason.to_owned(), count)).into());
    assert_eq!(far.drops, [("engine.no-route".to_owned(), count)].into());
    for workers in [2, 4, 8] {
        assert_eq!(run(workers), [near.clone(), far.clone()], "{workers} workers");
    }
}
