//! Clients of a repository behind a router: readers, and producers whose objects the repository fetches by command.
//!
//! * A reader keeps [`WINDOW`] Interests in flight for the segments of one object, in random order. It compares every
//!   Data byte by byte. It never asks again: a Nack or a lost Data ends the run.
//! * An insertion is the command of ndn-python-repo: the repository fetches the object's segments from the producer.
//!   Its time ends with the status that says that the store has all of them.
//! * Bulk insertion writes the packets to a TCP connection, and ends when the repository closes it in good order.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use namewire_client::Client;
use namewire_packet::NameBuf;
use namewire_repo::RemoteRepo;
use namewire_repo::command::{Command, ObjectParam};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::packets::{COMMON_PREFIX, ObjectPackets, Received};
use crate::interrupt;
use crate::router_control::RouterControl;
use namewire_load::{Link, wait_readable};

/// Interests in flight for each reader, and requests in flight wherever a store or `redis-benchmark` is asked.
pub(super) const WINDOW: usize = 256;
/// A reader that gets nothing for so long has lost a Data.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// How often a waiting thread looks whether it should end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes that bulk insertion writes at once.
const CHUNK_BYTES: usize = 256 << 10;
/// The repository's own name, as by default.
const REPO: &str = "/localhost/repo";

/// Fetches all segments of one object, in random order.
pub(super) fn read_all(socket: &Path, object: &ObjectPackets, seed: u64) -> anyhow::Result<()> {
    let mut face = connect(socket)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut order: Vec<usize> = (0..object.count()).collect();
    random.shuffle(&mut order);
    let (mut is_open, mut next, mut in_flight) = (vec![false; order.len()], 0, 0);
    let mut heard = Instant::now();
    while next < order.len() || in_flight > 0 {
        while in_flight < WINDOW && next < order.len() {
            is_open[order[next]] = true;
            face.outbox.push(|out| object.write_interest(order[next], random.u32(..), out));
            (next, in_flight) = (next + 1, in_flight + 1);
        }
        face.flush()?;
        if !wait_readable(&[&face], LOOK_INTERVAL)?[0] {
            interrupt::check()?;
            ensure!(heard.elapsed() < SILENCE_MAX, "{in_flight} Interests of a reader got no answer");
            continue;
        }
        heard = Instant::now();
        let mut problem = None;
        face.receive(|wire, _| match object.classify(wire) {
            Received::Data(segment) if std::mem::take(&mut is_open[segment]) => in_flight -= 1,
            received => problem = Some(received),
        })?;
        ensure!(problem.is_none(), "a reader got {problem:?}, which it did not ask for");
    }
    Ok(())
}

fn connect(socket: &Path) -> anyhow::Result<Link> {
    let stream = UnixStream::connect(socket).with_context(|| format!("cannot connect to {}", socket.display()))?;
    Ok(Link::stream(stream)?)
}

/// Several readers at once, one for each object; how long they took together.
pub(super) fn read_objects(sockets: &[&Path], objects: &[ObjectPackets], seed: u64) -> anyhow::Result<Duration> {
    let started = Instant::now();
    std::thread::scope(|scope| {
        let mut readers = Vec::new();
        for (number, object) in objects.iter().enumerate() {
            let socket = sockets[number % sockets.len()];
            readers.push(scope.spawn(move || read_all(socket, object, seed ^ number as u64)));
        }
        readers.into_iter().try_for_each(|reader| reader.join().expect("a reader does not panic"))
    })?;
    Ok(started.elapsed())
}

/// Has repositories fetch and store objects, one command for each object; how long they took together.
pub(super) fn insert_objects(sockets: &[&Path], objects: &[ObjectPackets]) -> anyhow::Result<Duration> {
    let is_over = AtomicBool::new(false);
    let socket = |number: usize| sockets[number % sockets.len()];
    let producers = objects.iter().enumerate().map(|(number, object)| producer(socket(number), object));
    let producers = producers.collect::<anyhow::Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let (is_over, mut threads) = (&is_over, Vec::new());
        for (face, object) in producers.into_iter().zip(objects) {
            threads.push(scope.spawn(move || produce(face, object, is_over)));
        }
        let took = command_all(sockets, objects);
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(|thread| thread.join().expect("a producer does not panic"))?;
        took
    })
}

/// A face to which the object's Interests come.
fn producer(socket: &Path, object: &ObjectPackets) -> anyhow::Result<Link> {
    let mut control = RouterControl::connect(socket)?;
    control.register(object.name.clone(), None)?;
    Ok(Link::stream(control.into_stream()?)?)
}

fn produce(mut face: Link, object: &ObjectPackets, is_over: &AtomicBool) -> anyhow::Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        if !wait_readable(&[&face], LOOK_INTERVAL)?[0] {
            interrupt::check()?;
            continue;
        }
        let mut is_good = true;
        face.receive(|wire, outbox| match object.classify(wire) {
            Received::Interest(segment) => outbox.push(|out| out.extend_from_slice(object.wire(segment))),
            Received::Data(_) | Received::Wrong => is_good = false,
        })?;
        ensure!(is_good, "a producer got something other than an Interest for its object");
        face.flush()?;
    }
    Ok(())
}

fn command_all(sockets: &[&Path], objects: &[ObjectPackets]) -> anyhow::Result<Duration> {
    runtime()?.block_on(async {
        let mut commands = JoinSet::new();
        let mut repos = Vec::new();
        for number in 0..objects.len() {
            repos.push(remote(sockets[number % sockets.len()]).await?);
        }
        let started = Instant::now();
        for (repo, object) in repos.into_iter().zip(objects) {
            let object = ObjectParam {
                name: object.name.clone(),
                start: Some(0),
                end: Some(object.count() as u64 - 1),
                register_prefix: Some(COMMON_PREFIX.parse::<NameBuf>()?),
                ..ObjectParam::default()
            };
            let command = Command { objects: vec![object], groups: Vec::new() };
            commands.spawn(async move { repo.command("insert", &command, |_| ()).await });
        }
        while let Some(done) = commands.join_next().await {
            done??;
        }
        Ok(started.elapsed())
    })
}

/// Sends all packets over one TCP connection; how long until the repository has stored them.
pub(super) fn insert_in_bulk(address: SocketAddr, object: &ObjectPackets) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    for chunk in object.wires().chunks(CHUNK_BYTES) {
        interrupt::check()?;
        stream.write_all(chunk)?;
    }
    stream.shutdown(Shutdown::Write)?;
    let rest = stream.read(&mut [0]).context("the repository refused bulk insertion")?;
    ensure!(rest == 0, "the repository answered bulk insertion");
    Ok(started.elapsed())
}

/// What a repository has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    /// Interests for Data.
    pub(super) reads: u64,
    /// Those that were answered.
    pub(super) hits: u64,
    /// Data stored.
    pub(super) writes: u64,
}

/// Asks the repository for its counters.
pub(super) fn counted(socket: &Path) -> anyhow::Result<Counted> {
    let statistics = runtime()?.block_on(async { anyhow::Ok(remote(socket).await?.statistics().await?) })?;
    let count = |key: &str| statistics[key].as_u64().with_context(|| format!("the statistics lack {key}"));
    Ok(Counted { reads: count("reads")?, hits: count("hits")?, writes: count("writes")? })
}

async fn remote(socket: &Path) -> anyhow::Result<RemoteRepo> {
    let uri = format!("unix://{}", socket.display());
    Ok(RemoteRepo::new(Client::connect_to(uri.parse()?).await?, REPO.parse()?))
}

fn runtime() -> anyhow::Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}
