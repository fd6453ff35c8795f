//! Can one neighbour lock others out?
//!
//! Ours. A router runs in a separate network namespace. One attack at a time (see [`crate::attack`]) takes as much of
//! one pool as it can. Meanwhile honest applications exchange Interests and Data at a constant rate: local ones over
//! Unix sockets, remote ones over UDP from another address than the attacker's. They connect after the attack has
//! begun. Another connection asks for status/general again and again. A local application gets the attackers' Interests
//! and answers none.
//!
//! *Goodput* is the share of the offered Interests that were answered within their lifetime of a second. *RTT* is the
//! 99th percentile of the time to the answer, from when each Interest was due. *Status* is
//! the longest wait for status/general, connecting included. *Recovery* is the time from the end of the attack until
//! both local and remote applications have a goodput of 0.99 again. *Memory* is the router's resident memory at the end
//! of the attack, over the sum of what docs/limits.md allows ([`memory_limit_mib`]). *Forged accepted* is the number of
//! answers that are not their producer's ([`forged`]).
//!
//! Local and remote applications together offer a tenth of what one worker exchanges over UDP (record
//! `router-sockets`: 138,605 per second). All processes share the processors, so an attack that takes time from all of
//! them shows too; the paced attacks leave time.
//!
//! Attackers over Ethernet are on the cable of the remote applications. *Faces, Ethernet* forges the address of each
//! frame; the others come from one station.
//!
//! *Places* are connections of the WebSocket listener and of the observer. Each listens for remote hosts and on
//! loopback. While one host keeps as many as it gets, honest clients ask for connections: from another host, and on
//! loopback. *Let in* is the share of them that get one within a second.
//!
//! Attacks on TagNet have separate rows (`tagnet.rs`).
//!
//! Limits: honest applications use no Ethernet. A local attacker is another user of the machine (`nobody`), which needs
//! root, as the namespaces do. Without root, the rows have this reason instead of numbers.

mod forged;
mod places;
mod tagnet;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use namewire_packet::{DataBuilder, Interest, InterestBuilder, NameBuf, Nonce, lp::LpPacket, tlv::element_size};

use crate::attack::{ATTACK_PREFIX, Attack, STORED_NAMES, STORED_PREFIX, Way};
use crate::experiment::{Context, Outcome, Scale};
use crate::knock::{Door, KnockReport};
use crate::load::{LoadReport, Transport};
use crate::namespaces::{Network, Peer, interface, router_station};
use crate::process::{self, BoundProcess};
use crate::router_control::RouterControl;
use crate::router_process::{RouterProcess, find_program, run_load};
use crate::sample_table::SampleTable;

pub(super) const FILE: &str = include_str!("experiment.toml");

struct Case {
    id: &'static str,
    attack: Attack,
    way: Way,
    /// Packets or connections per second.
    rate: u64,
}

const CASES: &[Case] = &[
    Case { id: "pending, UDP", attack: Attack::Pending, way: Way::Udp, rate: 20_000 },
    Case { id: "pending, TCP", attack: Attack::Pending, way: Way::Tcp, rate: 20_000 },
    Case { id: "pending, Unix", attack: Attack::Pending, way: Way::Unix, rate: 20_000 },
    Case { id: "long Interests, UDP", attack: Attack::Long, way: Way::Udp, rate: 2_000 },
    Case { id: "long Interests, TCP", attack: Attack::Long, way: Way::Tcp, rate: 2_000 },
    Case { id: "long Interests, Unix", attack: Attack::Long, way: Way::Unix, rate: 2_000 },
    Case { id: "joined Interests, UDP", attack: Attack::Joined, way: Way::Udp, rate: 20_000 },
    Case { id: "faces, UDP", attack: Attack::Faces, way: Way::Udp, rate: 5_000 },
    Case { id: "faces, TCP", attack: Attack::Faces, way: Way::Tcp, rate: 5_000 },
    Case { id: "faces, Unix", attack: Attack::Faces, way: Way::Unix, rate: 5_000 },
    Case { id: "unread Data, TCP", attack: Attack::Unread, way: Way::Tcp, rate: 5_000 },
    Case { id: "unread Data, Unix", attack: Attack::Unread, way: Way::Unix, rate: 5_000 },
    Case { id: "pending, Ethernet", attack: Attack::Pending, way: Way::Ethernet, rate: 20_000 },
    Case { id: "pending, Ethernet group", attack: Attack::Pending, way: Way::EthernetGroup, rate: 20_000 },
    Case { id: "long Interests, Ethernet", attack: Attack::Long, way: Way::Ethernet, rate: 10_000 },
    Case { id: "faces, Ethernet", attack: Attack::Faces, way: Way::Ethernet, rate: 5_000 },
    Case { id: "fragments, Ethernet", attack: Attack::Fragments, way: Way::Ethernet, rate: 10_000 },
    Case { id: "fragments, UDP", attack: Attack::Fragments, way: Way::Udp, rate: 10_000 },
    Case { id: "forged Data, UDP", attack: Attack::Forged, way: Way::Udp, rate: 20_000 },
    Case { id: "forged Data, Unix", attack: Attack::Forged, way: Way::Unix, rate: 20_000 },
    Case { id: "probes, UDP", attack: Attack::Probes, way: Way::Udp, rate: 20_000 },
    Case { id: "probes, Unix", attack: Attack::Probes, way: Way::Unix, rate: 20_000 },
    Case { id: "one stream, TCP", attack: Attack::Stream, way: Way::Tcp, rate: 0 },
    Case { id: "one stream, Unix", attack: Attack::Stream, way: Way::Unix, rate: 0 },
    Case { id: "WebSocket places", attack: Attack::WebsocketPlaces, way: Way::Tcp, rate: 2_000 },
    Case { id: "observer places", attack: Attack::ObserverPlaces, way: Way::Tcp, rate: 100 },
    Case { id: "2,000 streams, TCP", attack: Attack::ManyStreams, way: Way::Tcp, rate: 0 },
    Case { id: "600 streams, Unix", attack: Attack::ManyStreams, way: Way::Unix, rate: 0 },
    Case { id: "same producer, TCP", attack: Attack::Greedy, way: Way::Tcp, rate: 0 },
    Case { id: "same producer, Unix", attack: Attack::Greedy, way: Way::Unix, rate: 0 },
    Case { id: "same producer, unread, TCP", attack: Attack::UnreadProducer, way: Way::Tcp, rate: 0 },
    Case { id: "same producer, unread, Unix", attack: Attack::UnreadProducer, way: Way::Unix, rate: 0 },
];

/// Sizes of a run.
struct Size {
    repetitions: usize,
    cases: usize,
    /// Interests per second of each honest application.
    rate: u32,
    /// How long the honest applications exchange under attack, in seconds.
    honest_s: u32,
    /// How long an attack goes on before them.
    lead: Duration,
}

const fn size(scale: Scale) -> Size {
    match scale {
        Scale::Smoke => Size { repetitions: 1, cases: 2, rate: 500, honest_s: 1, lead: Duration::from_millis(500) },
        Scale::Quick => {
            Size { repetitions: 1, cases: CASES.len(), rate: 7_000, honest_s: 4, lead: Duration::from_secs(4) }
        }
        Scale::Full => {
            Size { repetitions: 3, cases: CASES.len(), rate: 7_000, honest_s: 15, lead: Duration::from_secs(10) }
        }
    }
}

/// An unprivileged user for local attackers.
const NOBODY: u32 = 65_534;
/// Longest wait for recovery.
const RECOVERY_LIMIT: Duration = Duration::from_secs(60);
/// Goodput of recovered applications.
const RECOVERED: f64 = 0.99;
/// Lifetime of honest Interests.
const LIFETIME_MS: u32 = 1_000;
/// Interests of one look at recovery.
const PROBED: u32 = 200;
const STATUS_INTERVAL: Duration = Duration::from_millis(200);

/// Clients of another host, and of this machine, beside an attack on places: their share, and how long they waited.
const LET_IN: [[&str; 2]; 2] = [["remote let in", "remote let in, p99"], ["local let in", "local let in, p99"]];

struct Run<'a> {
    context: &'a Context,
    size: Size,
    program: PathBuf,
    network: Network,
    table: SampleTable,
    /// Tells the names of loads apart.
    loads: u16,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let network = match Network::new(1) {
        Ok(network) => network,
        Err(error) => return Ok(refused(&format!("network namespaces cannot be made: {error:#}"))),
    };
    let (size, program) = (size(context.scale), find_program(&context.program)?);
    let mut run = Run { context, size, program, network, table: SampleTable::default(), loads: 0 };
    context.plan_steps((run.size.cases + tagnet::STEPS) * run.size.repetitions * context.workers.len());
    for _ in 0..run.size.repetitions {
        for case in &CASES[..run.size.cases] {
            for &workers in &context.workers {
                context.begin_step(&format!("{}, {workers} workers", case.id))?;
                run.measure(case, workers).with_context(|| format!("{}, {workers} workers", case.id))?;
            }
        }
        for &workers in &context.workers {
            run.measure_tagnet(workers)?;
        }
    }
    Ok(run.outcome())
}

/// Rows that say why there are none.
fn refused(why: &str) -> Outcome {
    let mut table = SampleTable::default();
    for case in CASES {
        table.samples(case.id, "namewire", "local goodput", "of 1").refuse(why.to_owned());
    }
    Outcome { rows: table.rows(), notes: vec![why.to_owned()], ..Outcome::default() }
}

/// What honest applications had.
#[derive(Clone, Copy, Default)]
struct Service {
    goodput: f64,
    rtt_ms_p99: f64,
}

impl Service {
    /// Nothing if the load could not be made.
    fn of(report: anyhow::Result<LoadReport>, count: u32) -> Self {
        report.map_or_else(
            |_| Service { goodput: 0.0, rtt_ms_p99: LIFETIME_MS.into() },
            |report| Service {
                goodput: report.satisfied as f64 / f64::from(count),
                rtt_ms_p99: f64::from(report.latency_ns_p99) / 1e6,
            },
        )
    }
}

impl Run<'_> {
    fn measure(&mut self, case: &Case, workers: usize) -> anyhow::Result<()> {
        self.loads = 0; // the names of `HONEST_STREAMS` are those of the first
        let door = places::door(case.attack);
        let mut router = self.start_router(workers, door)?;
        let idle_mib = resident_mib(&router)?;
        if case.attack == Attack::Unread {
            store_data(&router)?;
        }
        silent_producer(&router)?;
        let checked_s = if door.is_some() || case.attack == Attack::Forged { 6 } else { 2 };
        let seconds = self.size.lead.as_secs_f64().ceil() as u64 + u64::from(self.size.honest_s) + checked_s;
        let attack = self.start_attack(case, &router, seconds)?;
        std::thread::sleep(self.size.lead);
        let count = self.size.rate * self.size.honest_s;
        let ([local, remote], status_s) = self.honest(&router, count, true)?;
        let knocked = door.map(|door| self.knock(door)).transpose()?;
        let resident_mib = resident_mib(&router)?;
        let pending = router.control()?.status()?.n_pit_entries;
        let forged = (case.attack == Attack::Forged).then(|| forged::accepted(&router)).transpose()?;
        drop(attack);
        let ended = Instant::now();
        let recovery_s = loop {
            let ([local, remote], _) = self.honest(&router, PROBED, false)?;
            if local.goodput.min(remote.goodput) >= RECOVERED || ended.elapsed() > RECOVERY_LIMIT {
                break ended.elapsed().as_secs_f64() - f64::from(PROBED) / f64::from(self.size.rate);
            }
        };
        anyhow::ensure!(router.is_alive()?, "the router did not survive the attack");
        let subject = if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
        let mut add = |metric, unit, value| self.table.add(case.id, &subject, metric, unit, value);
        if let Some(accepted) = forged {
            add("forged accepted", "Data", accepted as f64);
        }
        add("local goodput", "of 1", local.goodput);
        add("remote goodput", "of 1", remote.goodput);
        add("local RTT", "ms", local.rtt_ms_p99);
        add("remote RTT", "ms", remote.rtt_ms_p99);
        add("status", "s", status_s);
        add("recovery", "s", recovery_s.max(0.0));
        for ([share, wait], report) in LET_IN.into_iter().zip(knocked.into_iter().flatten()) {
            add(share, "of 1", report.let_in);
            add(wait, "ms", f64::from(report.wait_ns_p99) / 1e6);
        }
        add("PIT entries", "entries", pending as f64);
        add("resident", "MiB", resident_mib);
        add("resident over limit", "of 1", resident_mib / (idle_mib + memory_limit_mib(workers)));
        Ok(())
    }

    /// What honest clients of another host and of this machine get of a listener.
    fn knock(&self, door: Door) -> anyhow::Result<[KnockReport; 2]> {
        let (program, router) = (&self.context.program, self.network.listens());
        let remote = places::knock(self.network.on_peers(program), door, router, false)?;
        Ok([remote, places::knock(self.network.on_router(program), door, router, true)?])
    }

    fn start_router(&self, workers: usize, door: Option<Door>) -> anyhow::Result<RouterProcess> {
        let mut command = self.network.on_router(&self.program);
        let listens = self.network.listens().to_string();
        command.args(["run", "--listen-udp", &listens, "--listen-tcp", &listens, "--workers", &workers.to_string()]);
        command.args(["--ethernet", "--interface", &interface(0)]);
        command.args(door.into_iter().flat_map(|door| places::options(door, self.network.listens())));
        let router = RouterProcess::start_command(command, self.network.listens(), None)?;
        // For the local attacker, which is another user.
        for path in [router.socket().parent(), Some(router.socket())].into_iter().flatten() {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777))?;
        }
        Ok(router)
    }

    fn start_attack(&self, case: &Case, router: &RouterProcess, seconds: u64) -> anyhow::Result<BoundProcess> {
        let name = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
            value().map(|value| value.get_name().to_owned()).unwrap_or_default()
        };
        let mut command = match case.way {
            Way::Unix => Command::new(&self.context.program),
            _ => self.network.on_peers(&self.context.program),
        };
        if case.way == Way::Unix {
            command.uid(NOBODY);
        }
        command.arg("attack").arg(name(&|| clap::ValueEnum::to_possible_value(&case.attack)));
        command.args(["--way", &name(&|| clap::ValueEnum::to_possible_value(&case.way))]);
        let to = places::door(case.attack).map_or(router.udp(), |door| places::addresses(door, router.udp())[0]);
        command.args(["--router", &to.to_string()]).arg("--socket").arg(router.socket());
        command.args(["--bind", &Peer::Hostile.address().to_string()]);
        command.args(["--interface", &interface(0), "--station", &router_station(0)]);
        command.args(["--seconds", &seconds.to_string(), "--rate", &case.rate.to_string()]);
        BoundProcess::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()), None)
    }

    /// What local and remote applications had, and the longest wait for the status if that is asked for.
    fn honest(&mut self, router: &RouterProcess, count: u32, asks_status: bool) -> anyhow::Result<([Service; 2], f64)> {
        self.loads += 1;
        let load = |transport: Transport, stream: u16| {
            let mut command = match transport {
                Transport::Unix => Command::new(&self.context.program),
                _ => self.network.on_peers(&self.context.program),
            };
            let transport = if transport == Transport::Unix { "unix" } else { "udp" };
            command.args(["load", "--transport", transport]).arg("--socket").arg(router.socket());
            command.args(["--udp", &router.udp().to_string(), "--bind", &Peer::Honest.address().to_string()]);
            for (option, value) in [
                ("--count", count),
                ("--rate", self.size.rate),
                ("--window", count),
                ("--give-up", count),
                ("--lifetime-ms", LIFETIME_MS),
                ("--stream", u32::from(2 * self.loads + stream)),
            ] {
                command.args([option, &value.to_string()]);
            }
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            Service::of(run_load(&mut command, None), count)
        };
        std::thread::scope(|scope| {
            let local = scope.spawn(|| load(Transport::Unix, 0));
            let remote = scope.spawn(|| load(Transport::Udp, 1));
            let mut longest = 0.0_f64;
            while !(local.is_finished() && remote.is_finished()) {
                if asks_status {
                    longest = longest.max(status_wait_s(router));
                }
                std::thread::sleep(STATUS_INTERVAL);
            }
            let joined = |load: std::thread::ScopedJoinHandle<'_, Service>| load.join().unwrap_or_default();
            Ok(([joined(local), joined(remote)], longest))
        })
    }

    fn outcome(self) -> Outcome {
        let rows = self.table.rows();
        let of_attacks = |metric: &'static str, attacks: &'static [Attack]| {
            let is_among = |case: &str| {
                attacks.is_empty() || CASES.iter().any(|known| known.id == case && attacks.contains(&known.attack))
            };
            let of_metric = rows.iter().filter(move |row| row.metric == metric && is_among(&row.case));
            of_metric.filter_map(|row| Some(row.value.as_ref()?.median))
        };
        let medians = |metric| of_attacks(metric, &[]);
        let least = |attacks| {
            let both = of_attacks("local goodput", attacks).chain(of_attacks("remote goodput", attacks));
            both.fold(1.0, f64::min)
        };
        let streams = &[Attack::ManyStreams];
        let rtt = of_attacks("local RTT", streams).chain(of_attacks("remote RTT", streams));
        let headline = BTreeMap::from([
            ("hostile_local_min".to_owned(), medians("local goodput").fold(1.0, f64::min)),
            ("hostile_remote_min".to_owned(), medians("remote goodput").fold(1.0, f64::min)),
            ("hostile_streams_share".to_owned(), least(streams)),
            ("hostile_streams_rtt_p99_ms".to_owned(), rtt.fold(0.0, f64::max)),
            ("hostile_producer_share".to_owned(), least(&[Attack::Greedy, Attack::UnreadProducer])),
            ("hostile_status_s_max".to_owned(), medians("status").fold(0.0, f64::max)),
            (
                "hostile_let_in_min".to_owned(),
                LET_IN.into_iter().flat_map(|[share, _]| medians(share)).fold(1.0, f64::min),
            ),
            ("hostile_recovery_s_max".to_owned(), medians("recovery").fold(0.0, f64::max)),
            ("hostile_forged_accepted".to_owned(), medians("forged accepted").fold(0.0, f64::max)),
            ("hostile_memory_over_limit".to_owned(), medians("resident over limit").fold(0.0, f64::max)),
            ("hostile_tag_rtt_p99_ms".to_owned(), medians("NDN RTT p99").fold(0.0, f64::max)),
            ("hostile_tag_back_s_max".to_owned(), medians("back in the tree").fold(0.0, f64::max)),
        ]);
        let notes = vec![
            format!(
                "Each honest application offers {} Interests per second for {} s; the attack begins {:?} earlier.",
                self.size.rate, self.size.honest_s, self.size.lead
            ),
            "Goodput 0 means that the application could not even connect.".to_owned(),
        ];
        Outcome { rows, headline, notes, ..Outcome::default() }
    }
}

/// How long a new connection waits for status/general; the limit of an answer if none comes.
fn status_wait_s(router: &RouterProcess) -> f64 {
    let started = Instant::now();
    let answered = RouterControl::connect(router.socket()).map_err(anyhow::Error::from).and_then(|mut c| c.status());
    let waited = started.elapsed().as_secs_f64();
    if answered.is_ok() { waited } else { waited.max(RECOVERY_LIMIT.as_secs_f64()) }
}

fn resident_mib(router: &RouterProcess) -> anyhow::Result<f64> {
    Ok(process::resident_kib(router.id()).context("the router's memory cannot be read")? as f64 / 1024.0)
}

/// What docs/limits.md allows beyond an idle router: send queues, kept input, reassembly, unacknowledged and held-back
/// frames of each worker; PIT entries, records, long Interests and the Content Store of all; faces.
fn memory_limit_mib(workers: usize) -> f64 {
    const PER_WORKER_MIB: f64 = 256.0 + 16.0 + 64.0 + 64.0 + 8.0;
    const PIT_MIB: f64 = 65_536.0 * 416.0 / 1_048_576.0;
    const RECORDS_MIB: f64 = 65_536.0 * (64.0 + 48.0) / 1_048_576.0;
    const FACES_MIB: f64 = 16_384.0 * 4_096.0 / 1_048_576.0;
    workers as f64 * (PER_WORKER_MIB + FACES_MIB) + PIT_MIB + RECORDS_MIB + 16.0 + 64.0
}

/// An application that gets the attackers' Interests and answers none. It ends with the router.
fn silent_producer(router: &RouterProcess) -> anyhow::Result<()> {
    let mut control = RouterControl::connect(router.socket())?;
    control.register(ATTACK_PREFIX.parse()?, None)?;
    let mut stream = control.into_stream()?;
    std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
    Ok(())
}

/// Puts Data of 8 kB into the router's Content Store.
fn store_data(router: &RouterProcess) -> anyhow::Result<()> {
    use std::io::{Read as _, Write as _};
    let mut control = RouterControl::connect(router.socket())?;
    control.register(STORED_PREFIX.parse()?, None)?;
    let mut producer = control.into_stream()?;
    let mut consumer = std::os::unix::net::UnixStream::connect(router.socket())?;
    for stream in [&producer, &consumer] {
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    }
    for number in 0..STORED_NAMES {
        let name: NameBuf = format!("{STORED_PREFIX}/{number}").parse()?;
        let interest = InterestBuilder::new(name.clone()).nonce(Nonce::from_u32(1));
        consumer.write_all(&interest.build())?;
        let asked = read_element(|bytes| producer.read(bytes))?;
        let asked = LpPacket::parse(&asked).ok().and_then(|packet| packet.fragment).unwrap_or(&asked);
        anyhow::ensure!(Interest::parse(asked).is_ok(), "the producer got no Interest");
        producer.write_all(&DataBuilder::new(&name).freshness_ms(3_600_000).content(&[0; 8_000]).sign_digest())?;
        read_element(|bytes| consumer.read(bytes))?;
    }
    Ok(())
}

/// The next element of a stream on which one is expected.
fn read_element(mut read: impl FnMut(&mut [u8]) -> std::io::Result<usize>) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut more = [0; 9_216];
    loop {
        if let Ok(Some(size)) = element_size(&bytes)
            && bytes.len() >= size
        {
            return Ok(bytes);
        }
        let length = read(&mut more)?;
        anyhow::ensure!(length > 0, "the router closed the connection");
        bytes.extend_from_slice(&more[..length]);
    }
}
