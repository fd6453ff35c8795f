//! The threads of the workers, with their tables, their sockets and their processors.

use crate::{
    backlog::Backlog,
    busy_polling::{BusyPolling, Policy},
    cs_erasure::CsErasureQueue,
    drop_log::DropNoter,
    io::WorkerIo,
    lanes::Lanes,
    mesh::{self, Bell},
    pit_looks::PitLooks,
    processors::{WhyNot, why_not_to_look},
    ring::Doorbell,
    senders::{ControlSender, WORKER_QUEUE, WorkerSender},
    shared::Shared,
    tag_searches::TagSearches,
    tags::TagForwarding,
    trace::Traces,
    worker::Worker,
};
use namewire_engine::{Engine, EngineConfig};
use namewire_faces::{DriverConfig, FaceCounters, SocketDriver};
use namewire_tables::{HashKey, head_room};
use namewire_tagnet::{advertisements::Known, forwarder::LiveTables};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    io,
    net::UdpSocket,
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Besides its tables, a worker allocates some 30 MiB when it starts: buffers and its thread's stack.
pub const WORKER_BYTES: usize = 48 << 20;

/// What workers are started with.
pub struct WorkersConfig {
    /// One worker's share of the tables.
    pub engine: EngineConfig,
    /// The tables of an I/O thread, which keeps nothing in them.
    pub io_engine: EngineConfig,
    /// The sockets of one worker.
    pub driver: DriverConfig,
    /// How long a worker looks for packets before it sleeps. `None`: as long as it pays.
    pub busy_poll: Option<Duration>,
    /// The processor of each worker, then of each I/O thread; one without runs on any.
    pub pin: Vec<usize>,
    /// The key of all tables.
    pub table_key: HashKey,
    /// Fixes the random numbers of the engines.
    pub seed: u64,
}

/// The worker threads. Dropping it waits for them to end; they end when their [`WorkerSender`]s are dropped.
#[derive(Default)]
pub struct WorkerThreads(Vec<JoinHandle<()>>);

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            let _ = thread.join(); // fails only if it panicked, which was reported then
        }
    }
}

/// The result of starting them.
pub struct Started {
    /// The threads, to wait for.
    pub threads: WorkerThreads,
    /// How control reaches each.
    pub senders: Arc<[WorkerSender]>,
    /// For each worker, the counters that belong to no face.
    pub faceless: Vec<Arc<FaceCounters>>,
    /// Why the workers never look for packets, although they may as long as it pays.
    pub sleeps_at_once: Option<WhyNot>,
}

/// Why the workers did not start.
#[derive(Debug)]
pub enum WorkersError {
    /// The kernel does not map a worker's tables.
    Unmapped(io::Error),
    /// The system cannot give this many bytes and keep the reserve ([`namewire_tables::head_room`]).
    Memory(usize),
    /// A worker may not run on the processor given to it.
    Pin {
        /// Its number.
        processor: usize,
        /// The processors that this process may use, as `0-3,8`.
        usable: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system starts no more threads.
    Thread(io::Error),
    /// Descriptors are unavailable, or a thread ended at once.
    System(io::Error),
}

impl From<io::Error> for WorkersError {
    fn from(error: io::Error) -> Self {
        WorkersError::System(error)
    }
}

/// Starts a thread for each list of `udp_sockets`, which are the thread's own: the dispatcher's workers, and then I/O
/// threads. `tags` are TagNet's tables, if it is on.
///
/// # Errors
/// If memory, threads or descriptors are unavailable, or a processor is not allowed. No thread is left then.
pub fn start(
    config: &WorkersConfig,
    shared: &Arc<Shared>,
    sender: &ControlSender,
    udp_sockets: Vec<Vec<UdpSocket>>,
    tags: Option<&LiveTables<Known>>,
) -> Result<Started, WorkersError> {
    let count = udp_sockets.len();
    let sleeps_at_once = config.busy_poll.is_none().then(|| why_not_to_look(count, &config.pin)).flatten();
    let fixed = config.busy_poll.or(sleeps_at_once.map(|_| Duration::ZERO));
    let polling = fixed.map_or(Policy::Adaptive, Policy::Fixed);
    let drivers = drivers(&config.driver, udp_sockets)?;
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
        let seed = config.seed.wrapping_add(index as u64);
        let backlog = Backlog::new(count, shared.holders.groups());
        let searches = TagSearches::new(shared.holders.groups());
        shared.add_pools(vec![backlog.pool(), searches.pool()]);
        let dispatcher = Arc::clone(&shared.dispatcher);
        let groups = shared.holders.groups();
        let tables = if shared.is_io_thread(index as u8) { &config.io_engine } else { &config.engine };
        let engine = Engine::new(tables.clone(), index as u8, dispatcher, config.table_key, seed, groups)
            .map_err(WorkersError::Unmapped)?;
        shared.add_pools(engine.pools());
        workers.push(Worker {
            shared: Arc::clone(shared),
            engine,
            messages: queue,
            inbox,
            busy_polling: BusyPolling::new(polling),
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
                lanes: Lanes::default(),
                control: sender.clone(),
                drops: Default::default(),
                drop_noter: DropNoter::new(Arc::clone(shared.drop_log(index as u8))),
                tags: TagForwarding::new(tags.map(|tags| [tags.reader(), tags.reader()]), searches),
                traces: Traces::default(),
            },
        });
    }
    // A thread cannot refuse what it allocates, so all tables are mapped before.
    let bytes = count.saturating_mul(WORKER_BYTES);
    head_room::is_there(bytes).then_some(()).ok_or(WorkersError::Memory(bytes))?;
    let (allocated, have_allocated) = sync_channel(count);
    for (index, worker) in workers.into_iter().enumerate() {
        spawn(worker, config.pin.get(index).copied(), allocated.clone(), &mut threads)?;
    }
    drop(allocated);
    // Until each has its buffers, the reserve of memory is not what it seems.
    if have_allocated.iter().take(count).count() < count {
        return Err(io::Error::other("a worker ended").into());
    }
    Ok(Started { threads, senders: senders.into(), faceless, sleeps_at_once })
}

/// A driver for each worker, with the UDP sockets that it reads.
fn drivers(config: &DriverConfig, udp_sockets: Vec<Vec<UdpSocket>>) -> io::Result<Vec<SocketDriver>> {
    let driver_with = |sockets: Vec<UdpSocket>| {
        let mut driver = SocketDriver::new(config.clone())?;
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
) -> Result<(), WorkersError> {
    let kind = if worker.shared.is_io_thread(worker.io.index) { "io" } else { "worker" };
    let builder = thread::Builder::new().name(format!("nw-{kind}-{}", worker.io.index));
    let Some(processor) = processor else {
        threads.0.push(builder.spawn(move || worker.run(&allocated)).map_err(WorkersError::Thread)?);
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
    threads.0.push(thread.map_err(WorkersError::Thread)?);
    let ended = || io::Error::other("the worker ended");
    let refused = |source| WorkersError::Pin { processor, usable: usable_processors(), source };
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
