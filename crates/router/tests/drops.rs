//! Each way to lose a packet, provoked from outside, and found by an operator: in the last drops with its name, in the
//! metrics, and on the live page.

use crate::application::{Application, PATIENCE, eventually, name, start_with};
use namewire_configuration::Configuration;
use namewire_engine::DropReason;
use namewire_packet::{
    DataBuilder, FaceId, InterestBuilder, MAX_PACKET_BYTES, NackReason, NameBuf, Nonce,
    lp::{LinkFields, LpHeaders, write_headers},
    nfd::{ControlParameters, DroppedPacket, FacePersistency},
    path_label::{PathLabel, PathMode},
    tlv,
};
use namewire_router::RouterHandle;
use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
};

/// Reasons that need more than a few packets from outside: full tables of records, a face that closes in the same turn,
/// a link with several peers, 16 MiB of Nacks. Tests of the engine provoke them, and the property tests there compare
/// the notes of all reasons.
const ELSEWHERE: [DropReason; 7] = [
    DropReason::UnknownFace,
    DropReason::InRecordsFull,
    DropReason::OutRecordsFull,
    DropReason::RewrittenFull,
    DropReason::NackOnMultiAccess,
    DropReason::NackNotPassedOn,
    DropReason::DataSentAlready,
];

/// A router under observation, and who saw which reason.
struct Bench {
    router: RouterHandle,
    http: SocketAddr,
    _directory: tempfile::TempDir,
    seen: BTreeSet<&'static str>,
}

impl Bench {
    fn start(change: impl FnOnce(&mut Configuration)) -> Bench {
        let (router, directory) = start_with(1, |config| {
            config.settings.observe.listen = vec!["127.0.0.1:0".parse().unwrap()];
            change(config);
        });
        let http = router.observed_at()[0];
        Bench { router, http, _directory: directory, seen: BTreeSet::new() }
    }

    fn application(&self) -> Application {
        Application::connect(&self.router)
    }

    /// A producer of this prefix that answers nothing.
    fn silent(&self, prefix: &str) -> Application {
        let mut producer = self.application();
        producer.register(prefix);
        producer
    }

    /// Waits until the drop is found in all places. The packet that was dropped has a name under `of`.
    fn find(&mut self, reason: DropReason, of: Option<&str>) {
        let full = format!("engine.{}", reason.name());
        let mut operator = self.application();
        eventually(&format!("{full} of {of:?} is among the last drops"), || {
            let drops: Vec<DroppedPacket> = operator.dataset("/status/dropped");
            let is_it = |drop: &DroppedPacket| match (&drop.name, of.map(name)) {
                (Some(name), Some(prefix)) => prefix.as_name().is_prefix_of(&name.as_name()),
                (found, wanted) => found.is_none() && wanted.is_none(),
            };
            drops.iter().any(|drop| drop.reason == full && drop.time_ms > 0 && is_it(drop))
        });
        eventually(&format!("{full} is in the metrics"), || {
            let metrics = self.get("/metrics");
            metrics
                .lines()
                .any(|line| line.starts_with("namewire_drops_total") && line.contains(&format!("\"{full}\"")))
        });
        eventually(&format!("{full} is on the page"), || self.event().contains(&format!("\"reason\":\"{full}\"")));
        self.seen.insert(reason.name());
    }

    /// The body of an answer.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
    }

    /// The first thing that a page gets to draw.
    fn event(&self) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let (mut text, mut chunk) = (Vec::new(), [0; 65_536]);
        while !String::from_utf8_lossy(&text).contains("\n\n") {
            let size = stream.read(&mut chunk).unwrap();
            assert!(size > 0, "the stream ended");
            text.extend_from_slice(&chunk[..size]);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// An Interest that no builder makes: without a nonce.
fn without_nonce(of: &NameBuf) -> Vec<u8> {
    let (mut inner, mut packet) = (Vec::new(), Vec::new());
    of.as_name().write_tlv(&mut inner);
    tlv::write_tlv(&mut packet, tlv::types::INTEREST, &inner);
    packet
}

#[test]
fn every_reason_is_found_with_its_name() {
    let mut seen = packets_that_are_wrong();
    seen.extend(interests_that_go_nowhere());
    seen.extend(tables_that_are_full());
    let elsewhere: BTreeSet<&str> = ELSEWHERE.iter().map(|reason| reason.name()).collect();
    let missing: Vec<&str> = DropReason::ALL
        .iter()
        .map(|reason| reason.name())
        .filter(|reason| !seen.contains(reason) && !elsewhere.contains(reason))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "a new reason needs a test here, or a place in ELSEWHERE");
}

fn packets_that_are_wrong() -> BTreeSet<&'static str> {
    let mut bench = Bench::start(|_| ());
    let mut one = bench.application();
    one.send(&[5, 4, 7, 9, 8, 1]);
    bench.find(DropReason::Malformed, None);

    let long = "/a".repeat(257);
    one = bench.application();
    let interest = one.interest(name(&long)).build();
    one.send(&interest);
    bench.find(DropReason::NameTooLong, Some(&"/a".repeat(170))); // as much as the log keeps

    let large = without_nonce(&name(&format!("/large/{}", "l".repeat(8779))));
    assert_eq!(large.len(), MAX_PACKET_BYTES - 2, "a nonce takes 6");
    one.send(&large);
    bench.find(DropReason::TooLargeWithNonce, Some("/large")); // the log keeps no component in part

    let interest = one.interest(name("/far")).hop_limit(0).build();
    one.send(&interest);
    bench.find(DropReason::HopLimitZero, Some("/far"));

    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let here = one.interest(name("/localhost/secret")).build();
    let (mut operator, udp) = (bench.application(), bench.router.udp()[0]);
    eventually("the datagram arrived", || {
        stranger.send_to(&here, udp).unwrap();
        operator.drops("engine.scope-violation") > 0
    });
    bench.find(DropReason::ScopeViolation, Some("/localhost/secret"));

    let _producer = bench.silent("/loop");
    let mut other = bench.application();
    let interest = InterestBuilder::new(name("/loop/1")).nonce(Nonce::from_u32(7)).build();
    one.send(&interest);
    eventually("it is pending", || operator.status().n_pit_entries > 0);
    other.send(&interest);
    bench.find(DropReason::DuplicateNonce, Some("/loop/1"));

    one.send(&DataBuilder::new(name("/unasked")).content(b"x").sign_digest());
    bench.find(DropReason::UnsolicitedData, Some("/unasked"));

    one.send(&DataBuilder::new(name("/localhost/nfd/status/general")).content(b"x").sign_digest());
    bench.find(DropReason::ForgedManagement, Some("/localhost/nfd/status/general"));

    // Another application answers what the producer of `/loop` was asked.
    let mut forger = bench.application();
    forger.send(&DataBuilder::new(name("/loop/1")).content(b"x").sign_digest());
    bench.find(DropReason::DataNotAsked, Some("/loop/1"));

    let interest = one.interest(name("/never/asked")).build();
    one.send_with(&LpHeaders { nack: Some(NackReason::NoRoute), ..LpHeaders::default() }, &interest);
    bench.find(DropReason::UnmatchedNack, Some("/never/asked"));
    bench.seen
}

fn interests_that_go_nowhere() -> BTreeSet<&'static str> {
    let mut bench = Bench::start(|_| ());
    let mut one = bench.application();
    one.express("/nowhere/1").expect("a Nack");
    bench.find(DropReason::NoRoute, Some("/nowhere/1"));

    one.turn_on_local_fields();
    let interest = one.interest(name("/chosen")).build();
    one.send_with(&LpHeaders { next_hop_face_id: Some(FaceId(9999)), ..LpHeaders::default() }, &interest);
    bench.find(DropReason::NextHopFaceMissing, Some("/chosen"));

    let (mut frame, mut label) = (Vec::new(), Vec::new());
    PathLabel::of(PathMode::Strict, &[7]).write_tlv(&mut label);
    let probe = one.interest(name("/steered/1/32=ping")).must_be_fresh(true).build();
    let headers = LpHeaders { lead_bytes: label.len() as u16, ..LpHeaders::default() };
    write_headers(&mut frame, &headers, &LinkFields { lead: Some(&label), ..LinkFields::default() }, probe.len());
    frame.extend(probe);
    one.send(&frame);
    bench.find(DropReason::PathLabelVoid, Some("/steered/1/32=ping"));

    let _producer = bench.silent("/again");
    for _ in 0..2 {
        let interest = one.interest(name("/again/1")).build(); // another nonce each time
        one.send(&interest);
    }
    bench.find(DropReason::Suppressed, Some("/again/1"));

    // A permanent face whose connection is gone.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = Some(format!("tcp4://{}", listener.local_addr().unwrap()));
    let mut operator = bench.application();
    let face_persistency = Some(FacePersistency::Permanent.code());
    let created = operator.succeed("/faces/create", ControlParameters { uri, face_persistency, ..Default::default() });
    let route = ControlParameters { name: Some(name("/down")), face_id: created.face_id, ..Default::default() };
    operator.succeed("/rib/register", route);
    drop(listener);
    eventually("an Interest finds the link down", || {
        let interest = one.interest(name("/down/1")).build();
        one.send(&interest);
        operator.drops("engine.next-hop-down") > 0
    });
    bench.find(DropReason::NextHopDown, Some("/down/1"));

    // More pending Interests than one scan offers to a new next hop.
    let _first = bench.silent("/many");
    let strategy = Some(name("/localhost/nfd/strategy/multicast"));
    operator.succeed(
        "/strategy-choice/set",
        ControlParameters { name: Some(name("/many")), strategy, ..Default::default() },
    );
    let before = operator.status().n_pit_entries;
    for number in 0..1100 {
        let interest = one.interest(name(&format!("/many/{number}"))).lifetime_ms(60_000).build();
        one.send(&interest);
    }
    eventually("they are pending", || operator.status().n_pit_entries >= before + 1000);
    let _second = bench.silent("/many");
    let mut operator = bench.application();
    eventually("the scan is over", || operator.drops("engine.next-hop-scan-full") > 0);
    let drops: Vec<DroppedPacket> = operator.dataset("/status/dropped");
    assert!(drops.iter().any(|drop| drop.reason == "engine.next-hop-scan-full" && drop.face.is_none()), "no packet");
    bench.find(DropReason::NextHopScanFull, None);
    bench.seen
}

fn tables_that_are_full() -> BTreeSet<&'static str> {
    let mut bench = Bench::start(|config| config.settings.tables.pit_capacity = 64);
    let _producer = bench.silent("/full");
    let mut flooder = bench.application();
    for number in 0..200 {
        let interest = flooder.interest(name(&format!("/full/{number}"))).lifetime_ms(60_000).build();
        flooder.send(&interest);
    }
    let mut operator = bench.application();
    let reasons = [DropReason::FaceShareUsed, DropReason::PitShareUsed, DropReason::PitFull];
    eventually("the flood meets a limit", || {
        reasons.iter().map(|reason| operator.drops(&format!("engine.{}", reason.name()))).sum::<u64>() > 100
    });
    bench.find(DropReason::FaceShareUsed, Some("/full"));

    let mut bench_all = Bench::start(|config| {
        (config.settings.tables.pit_capacity, config.settings.tables.pit_face_share) = (64, 100);
    });
    let _producer = bench_all.silent("/full");
    let mut flooder = bench_all.application();
    for number in 0..200 {
        let interest = flooder.interest(name(&format!("/full/{number}"))).lifetime_ms(1000).build();
        flooder.send(&interest);
    }
    // The PIT is full for the operator, too, until the flood has expired.
    let mut operator = bench_all.application();
    let mut answers = || {
        let request = operator.interest(name("/localhost/nfd/status/general"));
        operator.send(&request.can_be_prefix(true).must_be_fresh(true).build());
        operator.receive_within(std::time::Duration::from_millis(200)).is_some()
    };
    eventually("the operator is answered", &mut answers);
    let mut operator = bench_all.application();
    let full = [DropReason::PitFull, DropReason::PitShareUsed];
    let mut met = None;
    eventually("the flood meets the capacity", || {
        met = full.into_iter().find(|reason| operator.drops(&format!("engine.{}", reason.name())) > 100);
        met.is_some()
    });
    bench_all.find(met.expect("one of them"), Some("/full"));

    let mut bench_large = Bench::start(|config| config.settings.tables.interest_overflow.0 = 65_536);
    let _producer = bench_large.silent("/wide");
    let mut wide = bench_large.application();
    for number in 0..100 {
        let interest = wide.interest(name(&format!("/wide/{number}/{}", "w".repeat(2000)))).lifetime_ms(60_000).build();
        wide.send(&interest);
    }
    bench_large.find(DropReason::PitOverflowFull, Some("/wide"));
    bench
        .seen
        .into_iter()
        .chain(bench_all.seen)
        .chain(bench_large.seen)
        .chain(full.map(|reason| reason.name()))
        .collect()
}
