//! `namewire traffic`: sends Interests, answers them, and measures how long answers take.
//!
//! | question | file |
//! | --- | --- |
//! | to which router or generator does a link connect? | [`target`] |
//! | which Interest is sent when, and how and when is it answered? | the crate `namewire-load` |
//! | what is printed? | [`report`] |

mod report;
mod target;

use crate::{ExitCode, Failure, Global, name_argument, quantity};
use namewire_client::{Client, TransportUri, next_signature_time_ms};
use namewire_configuration::units::Span;
use namewire_load::{
    Counts, Flow, Link, NameSet, Names, Order, Plan,
    producer::{self, Answers},
};
use namewire_packet::{
    Data, InterestBuilder, MAX_PACKET_BYTES, NameBuf, Nonce, SignedInterestFields,
    lp::LpPacket,
    nfd::{ControlParameters, ControlResponse},
};
use namewire_security::Signer;
use report::Report;
use serde::Serialize;
use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use target::Target;
use tokio::signal::unix::{SignalKind, signal};

/// Room for the name and the other fields of a Data of the largest size.
const CONTENT_BYTES_MAX: usize = 8000;
/// How long a router may take to register a prefix.
const REGISTRATION_PATIENCE: Duration = Duration::from_secs(5);
/// Names of a file.
const NAMES_MAX: usize = 10_000_000;

/// Generate load: Interests by a schedule or a window, and Data for them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Send Interests and measure the answers
    Send(SendArgs),
    /// Answer every Interest under a prefix
    Serve(ServeArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SendArgs {
    /// Prefix of the names; each ends in a number of eight letters
    #[arg(value_parser = name_argument::parse, required_unless_present = "names_file")]
    prefix: Option<NameBuf>,
    /// Request the names in this file, one per line, instead of numbered names
    #[arg(long, value_name = "FILE", conflicts_with = "prefix")]
    names_file: Option<PathBuf>,
    /// How many numbered names there are
    #[arg(long, value_name = "COUNT", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    names: u64,
    /// Order of the names
    #[arg(long, value_enum, default_value_t = OrderArg::Sequential)]
    order: OrderArg,
    /// Exponent of Zipf's law, for --order zipf
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0, value_parser = positive)]
    exponent: f64,
    /// Interests per second over all flows, whether the router keeps up or not [default: as --window allows]
    #[arg(short, long, value_name = "NUMBER", value_parser = positive)]
    rate: Option<f64>,
    /// Send at random times of this mean rate (a Poisson process)
    #[arg(long, requires = "rate")]
    poisson: bool,
    /// Without --rate: Interests that each flow keeps pending
    #[arg(short, long, value_name = "COUNT", default_value_t = 64, conflicts_with = "rate",
        value_parser = clap::value_parser!(u16).range(1..=32_768))]
    window: u16,
    /// Connections, each with a thread of its own
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    flows: u8,
    /// InterestLifetime; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = quantity::ms_in(1..=3_600_000))]
    lifetime: u64,
    /// How many Interests to send [default: as many as --duration allows]
    #[arg(short, long, value_name = "COUNT")]
    count: Option<u64>,
    /// How long to send, for example 5min; a number alone is in seconds [default: 10s, unless --count is given]
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<f64>,
    /// Send over this link instead of the usual connection: memif:///PATH (shared memory), ether://[STATION%INTERFACE]
    /// or ws://HOST:PORT
    #[arg(long, value_name = "URI")]
    over: Option<Target>,
    /// Send CanBePrefix
    #[arg(long)]
    can_be_prefix: bool,
    /// Send MustBeFresh
    #[arg(long)]
    must_be_fresh: bool,
    /// Seed of names and times
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Do not print a line each second
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OrderArg {
    /// One after the other
    Sequential,
    /// At random, each equally often
    Uniform,
    /// At random, by Zipf's law
    Zipf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Prefixes to register and answer
    #[arg(value_parser = name_argument::parse, required_unless_present_any = ["listen", "no_register"])]
    prefixes: Vec<NameBuf>,
    /// Bytes of content in each Data
    #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = content_bytes)]
    size: usize,
    /// Choose each size at random between --size and this
    #[arg(long, value_name = "BYTES", value_parser = content_bytes)]
    size_max: Option<usize>,
    /// FreshnessPeriod; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::ms_in(0..=u64::MAX))]
    freshness: u64,
    /// Connections, each with a thread of its own
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    flows: u8,
    /// Do not register the prefixes: the operator has made a route to this face
    #[arg(long, conflicts_with = "listen")]
    no_register: bool,
    /// Answer over this link instead of the usual connection: memif:///PATH (shared memory),
    /// ether://[STATION%INTERFACE] or ws://HOST:PORT
    #[arg(long, value_name = "URI", conflicts_with = "listen")]
    over: Option<Target>,
    /// Wait here for a sending generator, without a router in between
    #[arg(long, value_name = "URI")]
    listen: Option<TransportUri>,
    /// How many answers each flow gives [default: until Ctrl-C]
    #[arg(short, long, value_name = "COUNT")]
    count: Option<u64>,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number > 0.0 && number.is_finite() { Ok(number) } else { Err("must be more than 0".to_owned()) }
}

/// A time in seconds; a number alone is one, too.
fn duration(text: &str) -> Result<f64, String> {
    let seconds = match text.parse::<f64>() {
        Ok(_) => return positive(text),
        Err(_) => text.parse::<Span>()?.0.as_secs_f64(),
    };
    if seconds > 0.0 { Ok(seconds) } else { Err("must be more than 0".to_owned()) }
}

fn content_bytes(text: &str) -> Result<usize, String> {
    let bytes: usize = text.parse().map_err(|_| "not a number".to_owned())?;
    if bytes <= CONTENT_BYTES_MAX { Ok(bytes) } else { Err(format!("must be at most {CONTENT_BYTES_MAX}")) }
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    match command {
        Command::Send(args) => send(global, args).await,
        Command::Serve(args) => serve(global, args).await,
    }
}

/// Where the router is. The client finds it, so that all commands look in the same places.
async fn target(global: &Global, over: Option<&Target>) -> Result<Target, Failure> {
    if let Some(target) = over {
        return Ok(target.clone());
    }
    if let Some(uri) = &global.transport {
        return Ok(Target::Transport(uri.clone()));
    }
    if let Some(choice) = global.choice(true)? {
        return Ok(Target::Transport(choice.router.transport));
    }
    let client = Client::connect().await?;
    let uri = client.transport();
    uri.map(Target::Transport).ok_or_else(|| Failure::new(ExitCode::NoForwarder, "the router has no address"))
}

fn no_connection(error: &io::Error) -> Failure {
    Failure::new(ExitCode::NoForwarder, format!("the connection to the forwarder failed: {error}"))
}

/// Sets a flag at Ctrl-C.
fn stop_at_interrupt() -> io::Result<Arc<AtomicBool>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    tokio::spawn(async move {
        interrupt.recv().await;
        flag.store(true, Relaxed);
    });
    Ok(stop)
}

async fn send(global: &Global, args: SendArgs) -> Result<(), Failure> {
    let set = match (&args.names_file, args.prefix) {
        (Some(file), _) => NameSet::Listed(read_names(file)?),
        (None, prefix) => NameSet::Numbered { prefix: prefix.unwrap_or_default(), count: args.names },
    };
    let order = match args.order {
        OrderArg::Sequential => Order::Sequential,
        OrderArg::Uniform => Order::Uniform,
        OrderArg::Zipf => Order::Zipf(args.exponent),
    };
    let flows = u64::from(args.flows);
    let default_duration = args.count.is_none().then_some(10.0);
    let plan = Plan {
        rate: args.rate.map(|rate| rate / flows as f64),
        is_poisson: args.poisson,
        window: args.window.into(),
        lifetime_ms: args.lifetime,
        can_be_prefix: args.can_be_prefix,
        must_be_fresh: args.must_be_fresh,
        count: None,
        duration: args.duration.or(default_duration).map(Duration::from_secs_f64),
    };
    let target = target(global, args.over.as_ref()).await?;
    let mut links = Vec::new();
    for _ in 0..flows {
        links.push(target.connect().await.map_err(|error| no_connection(&error))?);
    }
    let (live, mut threads) = (Arc::new(Mutex::new(Counts::default())), Vec::new());
    let (stop, start) = (stop_at_interrupt()?, Instant::now());
    let is_interrupted = Arc::clone(&stop);
    for (flow, link) in (0..flows).zip(links) {
        let names = Names::new(set.clone(), order, args.seed, flow, flows);
        // The first flows send the rest of a count that is no multiple.
        let count = args.count.map(|count| count / flows + u64::from(flow < count % flows));
        let flow = Flow::new(link, names, Plan { count, ..plan });
        let (live, stop) = (Arc::clone(&live), Arc::clone(&stop));
        threads.push(thread::spawn(move || {
            flow.run(&stop, |counts| live.lock().unwrap_or_else(PoisonError::into_inner).add(counts))
        }));
    }
    let total = watch(&threads, &live, args.quiet || global.json || !io::stderr().is_terminal()).await;
    let report = Report::new(&total, start.elapsed());
    global.output().print_line(&report, || report.text())?;
    join(threads)?;
    // It was to go on until its count or its time was over.
    if is_interrupted.load(Relaxed) { Err(Failure::interrupted()) } else { report.outcome() }
}

/// Adds up what flows publish until all have ended, and prints a line per second.
async fn watch(threads: &[JoinHandle<io::Result<()>>], live: &Mutex<Counts>, is_quiet: bool) -> Counts {
    let (mut total, mut last) = (Counts::default(), Instant::now());
    loop {
        let is_over = threads.iter().all(JoinHandle::is_finished);
        let elapsed = last.elapsed();
        if is_over || elapsed >= Duration::from_secs(1) {
            let second = std::mem::take(&mut *live.lock().unwrap_or_else(PoisonError::into_inner));
            total.add(&second);
            last = Instant::now();
            if is_over {
                return total;
            }
            if !is_quiet {
                eprintln!("{}", Report::new(&second, elapsed).line());
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn join(threads: Vec<JoinHandle<io::Result<()>>>) -> Result<(), Failure> {
    for thread in threads {
        let ended = thread.join().map_err(|_| Failure::new(ExitCode::Failed, "a flow has failed"))?;
        ended.map_err(|error| no_connection(&error))?;
    }
    Ok(())
}

fn read_names(file: &Path) -> Result<Vec<NameBuf>, Failure> {
    let failed = |why: String| Failure::new(ExitCode::Usage, format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(NAMES_MAX);
    let names: Result<Vec<NameBuf>, Failure> =
        lines.map(|line| line.trim().parse().map_err(|error| failed(format!("{line}: {error}")))).collect();
    let names = names?;
    if names.is_empty() { Err(failed("there are no names".to_owned())) } else { Ok(names) }
}

#[derive(Serialize)]
struct Served {
    answered: u64,
    elapsed_s: f64,
}

async fn serve(global: &Global, args: ServeArgs) -> Result<(), Failure> {
    let content_bytes = args.size..=args.size_max.unwrap_or(args.size);
    if content_bytes.is_empty() {
        return Err(Failure::new(ExitCode::Usage, "--size-max must not be less than --size"));
    }
    let signer = global.signer()?;
    let answers = Answers { content_bytes, freshness_ms: args.freshness };
    let target = match &args.listen {
        Some(uri) => Target::Transport(uri.clone()),
        None => target(global, args.over.as_ref()).await?,
    };
    if args.flows > 1 && matches!(args.listen, Some(TransportUri::Udp { .. })) {
        return Err(Failure::new(ExitCode::Usage, "one flow can listen at a UDP port; give each its own port"));
    }
    let mut links = Vec::new();
    for _ in 0..args.flows {
        links.push(link_of_producer(&args, &target, &signer).await?);
    }
    // Before this, Ctrl-C ends the process at once.
    let (stop, mut threads, mut counts) = (stop_at_interrupt()?, Vec::new(), Vec::new());
    let is_interrupted = Arc::clone(&stop);
    for link in links {
        let (answers, stop, count) = (answers.clone(), Arc::clone(&stop), Arc::new(AtomicU64::new(0)));
        counts.push(Arc::clone(&count));
        threads.push(thread::spawn(move || producer::serve(link, &answers, args.count, &count, &stop)));
    }
    eprintln!("serving");
    let start = Instant::now();
    while !threads.iter().all(JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let answered = counts.iter().map(|count| count.load(Relaxed)).sum();
    let served = Served { answered, elapsed_s: start.elapsed().as_secs_f64() };
    global.output().print_line(&served, || format!("{answered} Interests answered"))?;
    join(threads)?;
    if is_interrupted.load(Relaxed) && args.count.is_some() { Err(Failure::interrupted()) } else { Ok(()) }
}

/// A connection to the router with the prefixes registered, or to a generator that has come.
async fn link_of_producer(args: &ServeArgs, target: &Target, signer: &Signer) -> Result<Link, Failure> {
    if let Some(uri) = &args.listen {
        eprintln!("waiting for a generator");
        return target::accept(uri)
            .await
            .map_err(|error| Failure::new(ExitCode::Failed, format!("cannot listen at {uri}: {error}")));
    }
    let mut link = target.connect().await.map_err(|error| no_connection(&error))?;
    if !args.no_register {
        args.prefixes.iter().try_for_each(|prefix| register(&mut link, prefix, signer))?;
    }
    Ok(link)
}

/// Registers a prefix for a link.
fn register(link: &mut Link, prefix: &NameBuf, signer: &Signer) -> Result<(), Failure> {
    let parameters = ControlParameters { name: Some(prefix.clone()), ..ControlParameters::default() };
    let mut name: NameBuf = ["localhost", "nfd", "rib", "register"].iter().fold(NameBuf::new(), |mut name, part| {
        name.push_generic(part.as_bytes());
        name
    });
    name.push_generic(&parameters.to_wire());
    let fields = SignedInterestFields {
        nonce: fastrand::u64(..).to_be_bytes().to_vec(),
        time_ms: Some(next_signature_time_ms()),
        ..SignedInterestFields::default()
    };
    let command = InterestBuilder::new(name).nonce(Nonce::from_u32(fastrand::u32(..)));
    let command = signer.sign_interest(&command, &fields);
    let command = command.map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
    let failed = |error: io::Error| no_connection(&error);
    link.outbox.push(|out| out.extend_from_slice(&command));
    let end = Instant::now() + REGISTRATION_PATIENCE;
    let mut response = None;
    while response.is_none() && Instant::now() < end {
        link.flush().map_err(failed)?;
        link.wait(Duration::from_millis(50)).map_err(failed)?;
        match link.receive(|packet, _| response = response.take().or_else(|| read_response(packet))) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(Failure::new(ExitCode::NoForwarder, "the forwarder closed the connection"));
            }
            received => received.map_err(failed)?,
        };
    }
    match response {
        Some(ControlResponse { code: 200, .. }) => Ok(()),
        Some(ControlResponse { code, text, .. }) => {
            Err(Failure::new(ExitCode::Failed, format!("{prefix} was not registered: {text} ({code})")))
        }
        None => {
            Err(Failure::new(ExitCode::Timeout, format!("{prefix}: no answer from the forwarder; see --no-register")))
        }
    }
}

fn read_response(packet: &[u8]) -> Option<ControlResponse> {
    let packet = LpPacket::parse(packet).map_or(Some(packet), |packet| packet.fragment)?;
    ControlResponse::decode(Data::parse(packet).ok()?.content()).ok()
}

const _: () = assert!(CONTENT_BYTES_MAX < MAX_PACKET_BYTES);
