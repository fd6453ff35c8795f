//! The threads of the workers, with their secrets, their shares of the tables and their processors.

use crate::{
    StartError,
    control::TagControl,
    cs_settings::share_of_policy,
    drop_log::DropNoter,
    mesh::{self, Bell},
    ring::Doorbell,
    senders::{ControlSender, WORKER_QUEUE, WorkerSender},
    shared::Shared,
    worker::{Backlog, CsErasureQueue, PitLooks, TagForwarding, TagSearches, Traces, Worker, WorkerIo},
};
use namewire_configuration::Settings;
use namewire_engine::{Engine, EngineConfig, PitRole};
use namewire_faces::{DriverConfig, FaceCounters, FaceIdAllocator, LinkPolicy, SocketDriver};
use namewire_tables::HashKey;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    io,
    net::UdpSocket,
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

/// Besides its tables, a worker allocates some 30 MiB when it starts: buffers and its thread's stack.
pub(crate) const WORKER_BYTES: usize = 48 << 20;

/// Secrets of one start: keys of tables and shards, seeds of the engines.
pub(crate) struct Secrets {
    pub(crate) tables: HashKey,
    pub(crate) shards: HashKey,
    /// Of the control thread's random choices.
    pub(crate) control: u64,
    seed: u64,
}

impl Secrets {
    pub(crate) fn new(seed: Option<u64>) -> io::Result<Self> {
        if let Some(seed) = seed {
            let shards = HashKey::from_seed(seed ^ 0x5851_F42D_4C95_7F2D);
            let control = seed ^ 0x2545_F491_4F6C_DD1D;
            return Ok(Secrets { tables: HashKey::from_seed(seed), shards, control, seed });
        }
        let mut bytes = [0; 48];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let part = |at: usize| {
            let mut part = [0; 16];
            part.copy_from_slice(&bytes[at..at + 16]);
            part
        };
        let number = |at: usize| bytes[at..].iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte));
        let (control, seed) = (number(32), number(40));
        Ok(Secrets { tables: HashKey::new(part(0)), shards: HashKey::new(part(16)), control, seed })
    }
}

/// One worker's share of the tables.
fn engine_share(settings: &Settings) -> EngineConfig {
    let (whole, workers) = (settings.engine_config(), u32::from(settings.router.workers));
    let share = |total: u64| total.div_ceil(workers.into());
    EngineConfig {
        pit_capacity_entries: whole.pit_capacity_entries.div_ceil(workers),
        pit_role: match &whole.pit_role {
            PitRole::Edge => PitRole::Edge,
            PitRole::Core(core) => PitRole::Core(core.share_of(workers)),
        },
        record_capacity: whole.record_capacity.div_ceil(workers),
        interest_overflow_bytes: share(whole.interest_overflow_bytes),
        cs_capacity_bytes: share(whole.cs_capacity_bytes),
        cs_capacity_packets: share(whole.cs_capacity_packets),
        cs_policy: share_of_policy(settings.cs.policy(), workers.into()).into(),
        measurement_capacity: whole.measurement_capacity.div_ceil(workers),
        dead_nonce_capacity: whole.dead_nonce_capacity.div_ceil(workers as usize),
        ..whole
    }
}

/// The worker threads. Dropping it waits for them to end; they end when their [`WorkerSender`]s are dropped.
#[derive(Default)]
pub(crate) struct WorkerThreads(Vec<JoinHandle<()>>);

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            let _ = thread.join(); // fails only if it panicked, which was reported then
        }
    }
}

/// The result of starting them.
pub(crate) struct Started {
    pub(crate) threads: WorkerThreads,
    pub(crate) senders: Arc<[WorkerSender]>,
    /// For each worker, the counters that belong to no face.
    pub(crate) faceless: Vec<Arc<FaceCounters>>,
}

/// Starts the threads, each with its share of the tables and its sockets.
pub(crate) fn start(
    settings: &Settings,
    secrets: &Secrets,
    shared: &Arc<Shared>,
    sender: &ControlSender,
    face_ids: &FaceIdAllocator,
    udp_sockets: Vec<Vec<UdpSocket>>,
    tags: Option<&TagControl>,
) -> Result<Started, StartError> {
    let (engine_config, pages) = (engine_share(settings), settings.tables.pages.0);
    let drivers = drivers(settings, shared, face_ids, udp_sockets)?;
    let bells: Arc<[Bell]> =
        drivers.iter().map(|driver| Bell { doorbell: Doorbell::new(), waker: driver.waker() }).collect();
    // Declared before the senders: on failure the senders are dropped first, which ends the threads.
    let mut threads = WorkerThreads::default();
    let (mut senders, mut faceless, mut workers) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (driver, (outbox, inbox))) in drivers.into_iter().zip(mesh::connect(&bells)).enumerate() {
        let (messages, queue) = sync_channel(WORKER_QUEUE);
        senders.push(WorkerSender::new(messages, driver.waker()));
        faceless.push(driver.faceless_counters());
        shared.add_pools(driver.pools());
        let seed = secrets.seed.wrapping_add(index as u64);
        let backlog = Backlog::new(usize::from(settings.router.workers), shared.holders.groups());
        let searches = TagSearches::new(shared.holders.groups());
        shared.add_pools(vec![backlog.pool(), searches.pool()]);
        let dispatcher = Arc::clone(&shared.dispatcher);
        let groups = shared.holders.groups();
        let engine = Engine::new(engine_config.clone(), index as u8, dispatcher, secrets.tables, seed, groups)
            .map_err(|error| StartError::unmapped(pages, error))?;
        shared.add_pools(engine.pools());
        workers.push(Worker {
            shared: Arc::clone(shared),
            engine,
            messages: queue,
            inbox,
            busy_poll: settings.router.busy_poll.0,
            busy_ns: 0,
            cs_erasures: CsErasureQueue::default(),
            pit_looks: PitLooks::default(),
            io: WorkerIo {
                index: index as u8,
                now_ns: shared.now_ns(),
                driver,
                outbox,
                backlog,
                is_of_datagrams: false,
                control: sender.clone(),
                drops: Default::default(),
                drop_noter: DropNoter::new(Arc::clone(shared.drop_log(index as u8))),
                tags: TagForwarding::new(tags.map(|tags| [tags.reader(), tags.reader()]), searches),
                traces: Traces::default(),
            },
        });
    }
    // A thread cannot refuse what it allocates, so all tables are mapped before.
    StartError::require_memory(workers.len().saturating_mul(WORKER_BYTES))?;
    let (allocated, have_allocated) = sync_channel(workers.len());
    for (index, worker) in workers.into_iter().enumerate() {
        spawn(worker, settings.router.pin.get(index).copied(), allocated.clone(), &mut threads)?;
    }
    drop(allocated);
    // Until each has its buffers, the reserve of memory is not what it seems.
    let count = have_allocated.iter().take(senders.len()).count();
    if count < senders.len() {
        return Err(io::Error::other("a worker ended").into());
    }
    Ok(Started { threads, senders: senders.into(), faceless })
}

/// A driver for each worker, with the UDP sockets that it reads.
fn drivers(
    settings: &Settings,
    shared: &Shared,
    face_ids: &FaceIdAllocator,
    udp_sockets: Vec<Vec<UdpSocket>>,
) -> io::Result<Vec<SocketDriver>> {
    let faces = &settings.faces;
    let driver_with = |sockets: Vec<UdpSocket>| {
        let mut driver = SocketDriver::new(DriverConfig {
            udp_idle_timeout: faces.udp.idle_timeout.0,
            udp_mtu: faces.udp.mtu.0 as usize,
            first_packet_timeout: faces.tcp.first_packet_timeout.0,
            max_faces: faces.max_per_worker as usize,
            face_ids: face_ids.clone(),
            holders: shared.holders.clone(),
            udp_offload: faces.udp.offload,
            link_policy: LinkPolicy { congestion_marking: faces.congestion_marking, ..LinkPolicy::default() },
            ..DriverConfig::default()
        })?;
        sockets.into_iter().try_for_each(|socket| driver.add_udp_listener(socket))?;
        Ok(driver)
    };
    udp_sockets.into_iter().map(driver_with).collect()
}

/// Starts a worker's thread, on `processor` if there is one.
fn spawn(
    worker: Worker,
    processor: Option<usize>,
    allocated: SyncSender<()>,
    threads: &mut WorkerThreads,
) -> Result<(), StartError> {
    let builder = thread::Builder::new().name(format!("nw-worker-{}", worker.io.index));
    let Some(processor) = processor else {
        threads.0.push(builder.spawn(move || worker.run(&allocated)).map_err(StartError::Thread)?);
        return Ok(());
    };
    // A thread can pin only itself, or a thread whose id it knows.
    let (report, pinned) = sync_channel(1);
    let thread = builder.spawn(move || {
        let result = pin_to(processor);
        let is_pinned = result.is_ok();
        let _ = report.send(result); // the receiver waits for it
        if is_pinned {
            worker.run(&allocated);
        }
    });
    threads.0.push(thread.map_err(StartError::Thread)?);
    let ended = || io::Error::other("the worker ended");
    let refused = |source| StartError::Pin { processor, usable: usable_processors(), source };
    pinned.recv().map_err(|_| ended())?.map_err(refused)?;
    Ok(())
}

/// Lets the calling thread run on one processor only.
fn pin_to(processor: usize) -> io::Result<()> {
    if processor >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut only = CpuSet::new();
    only.set(processor);
    Ok(sched_setaffinity(None, &only)?)
}

/// The processors that a thread of this process may use, as the kernel writes them: `0-3,8`.
fn usable_processors() -> String {
    // A thread that lets itself run anywhere asks. The set that this process was started with is narrower after
    // `taskset`. The kernel leaves out processors that are absent or not allowed here.
    let anywhere = || {
        let mut all = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|processor| all.set(processor));
        sched_setaffinity(None, &all)?;
        sched_getaffinity(None)
    };
    match thread::spawn(anywhere).join() {
        Ok(Ok(usable)) => ranges((0..CpuSet::MAX_CPU).filter(|&processor| usable.is_set(processor))),
        _ => "unknown ones".to_owned(),
    }
}

/// Ascending numbers as `0-3,8`.
fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_its_share_of_every_table() {
        let toml = r#"
            router.workers = 3
            [tables]
            pit_capacity = 3_000
            dead_nonces = 100
            measurement_capacity = 31
            interest_overflow = "3 MiB"
            [pit]
            role = "core"
            fingerprints = 3_000
            overflow = 10
            names_up_to = 100
            [cs]
            capacity = "30 MiB"
            packets = 301
            admission = "filter"
            filter_history = 9_000
        "#;
        let settings: Settings = toml::from_str(toml).expect("a configuration");
        let share = engine_share(&settings);
        let of_whole = settings.engine_config();
        assert_eq!(share.pit_capacity_entries, 1_000);
        assert_eq!(share.dead_nonce_capacity, 34);
        assert_eq!(share.measurement_capacity, 11);
        assert_eq!(share.record_capacity, of_whole.record_capacity.div_ceil(3));
        assert_eq!((share.interest_overflow_bytes, share.cs_capacity_bytes), (1 << 20, 10 << 20));
        assert_eq!(share.cs_capacity_packets, 101);
        let PitRole::Core(core) = &share.pit_role else { panic!("{:?}", share.pit_role) };
        let fingerprints = &core.fingerprints;
        assert_eq!((fingerprints.capacity_entries, fingerprints.overflow_entries, core.names_up_to), (1_000, 4, 34));
        let filter_history = share_of_policy(settings.cs.policy(), 3).options.filter.history.map(u64::from);
        assert_eq!(filter_history, Some(3_000));
        assert_eq!(share.schedule, of_whole.schedule, "what is not a size stays");
    }
}
