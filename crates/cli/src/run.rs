//! `namewire run`: the options of a router.
//!
//! Everything has a default that works without configuration, privileges or keys.

use crate::{
    ExitCode, Failure,
    face_reference::{self, FaceReference, RemoteUri},
    name_argument, quantity, strategy,
};
use namewire_client::{
    Client, RouteOptions, TransportUri,
    discovery::{Environment, make_temporary_directory, temporary_socket_path},
};
use namewire_packet::{
    NameBuf,
    nfd::{ControlParameters, FaceUri, origin},
};
use namewire_router::{
    CsPolicy, InterfaceFilter, InterfacePattern, PageSize, Router, RouterConfig, RouterHandle, StartError, TlsFiles,
    WebSocketListener, link_config,
};
use std::{io, net::SocketAddr, path::PathBuf, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

/// Most pending Interests that the tables can hold (2^25).
const PIT_CAPACITY_MAX: i64 = 1 << 25;

/// Longest busy polling: one second, which for a worker is for ever.
const BUSY_POLL_US_MAX: i64 = 1_000_000;

/// Addresses listened on unless told otherwise.
const LISTEN_DEFAULT: [&str; 2] = ["0.0.0.0:6363", "[::]:6363"];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// UDP address to listen on, repeatable [default: 0.0.0.0:6363 and [::]:6363]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen_udp: Vec<SocketAddr>,
    /// Do not listen on UDP
    #[arg(long, conflicts_with = "listen_udp")]
    pub(crate) no_udp: bool,
    /// TCP address to listen on, repeatable [default: 0.0.0.0:6363 and [::]:6363]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen_tcp: Vec<SocketAddr>,
    /// Do not listen on TCP
    #[arg(long, conflicts_with = "listen_tcp")]
    pub(crate) no_tcp: bool,
    /// WebSocket address to listen on, repeatable, for example 0.0.0.0:9696
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen_ws: Vec<SocketAddr>,
    /// Address to listen on for WebSocket over TLS, repeatable
    #[arg(long, value_name = "ADDR:PORT", requires = "tls_cert", requires = "tls_key")]
    pub(crate) listen_wss: Vec<SocketAddr>,
    /// Certificate chain of --listen-wss, in PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "listen_wss")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert, in PEM
    #[arg(long, value_name = "FILE", requires = "listen_wss")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificates that wss:// servers are checked against, in PEM [default: those that the system trusts]
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_trust: Option<PathBuf>,
    /// UDP multicast faces: 224.0.23.170:56363 and [ff02::1234]:56363 on each network interface
    #[arg(long)]
    pub(crate) multicast: bool,
    /// NDN over Ethernet: a multicast face on each interface, and faces for stations that send; needs CAP_NET_RAW
    #[arg(long)]
    pub(crate) ethernet: bool,
    /// Interfaces of --multicast and --ethernet, by name (eth*), Ethernet address or subnet, repeatable [default: all]
    #[arg(long = "interface", value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) interfaces: Vec<InterfacePattern>,
    /// Interfaces not to use, repeatable
    #[arg(long = "no-interface", value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) denied_interfaces: Vec<InterfacePattern>,
    /// Unix socket for applications [default: /run/nfd/nfd.sock, or the next place that can be made]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Worker threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers: u16,
    /// Processors for the workers to run on, one each, for example 2,3 [default: the kernel chooses]
    #[arg(long, value_name = "CPU,…", value_delimiter = ',')]
    pub(crate) pin: Vec<usize>,
    /// Microseconds that an idle worker looks for packets before it sleeps; shortens waits, costs processor time
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=BUSY_POLL_US_MAX))]
    pub(crate) busy_poll: u32,
    /// Do not let the kernel join UDP datagrams of equal size on their way
    #[arg(long)]
    pub(crate) no_udp_offload: bool,
    /// Permanent face to make at the start, repeatable, for example udp://host:6363
    #[arg(long = "face", value_name = "URI")]
    pub(crate) faces: Vec<RemoteUri>,
    /// Route to add at the start, repeatable; the face is made if need be
    #[arg(long = "route", value_name = "PREFIX=URI", value_parser = parse_route)]
    pub(crate) routes: Vec<(NameBuf, RemoteUri)>,
    /// Strategy to choose at the start, repeatable, for example /chat=multicast
    #[arg(long = "strategy", value_name = "PREFIX=NAME", value_parser = parse_strategy_choice)]
    pub(crate) strategies: Vec<(NameBuf, NameBuf)>,
    /// Memory for cached Data, for example "1 GiB" [default: 64 MiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) cs_capacity: Option<u64>,
    /// Most cached Data packets [default: 65536, or no limit if --cs-capacity is given]
    #[arg(long, value_name = "N")]
    pub(crate) cs_packets: Option<u64>,
    /// Which Data goes when the cache is full: the least recently used, or the first that came
    #[arg(long, value_name = "POLICY", value_enum, default_value_t)]
    pub(crate) cs_policy: Policy,
    /// Most pending Interests [default: 65536]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=PIT_CAPACITY_MAX))]
    pub(crate) pit_capacity: Option<u32>,
    /// Longest time an Interest stays pending, whatever its lifetime says [default: 864000000, ten days]
    #[arg(long, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_lifetime: Option<u64>,
    /// Memory pages of the tables: base ones, those that the kernel joins as it sees fit, or huge ones reserved beforehand
    #[arg(long, value_name = "PAGES", value_enum, default_value_t)]
    pub(crate) pages: Pages,
    /// Seed of everything random, for tests
    #[arg(long, hide = true)]
    pub(crate) seed: Option<u64>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// `--cs-policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Policy {
    #[default]
    Lru,
    Fifo,
}

/// `--pages`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Pages {
    #[default]
    Transparent,
    Base,
    #[value(name = "2MiB")]
    Huge2MiB,
    #[value(name = "1GiB")]
    Huge1GiB,
}

impl Args {
    /// UDP addresses to listen on; `is_explicit` tells whether a failure to do so is fatal.
    pub(crate) fn udp_listeners(&self) -> Listeners {
        Listeners::of(self.no_udp, &self.listen_udp)
    }

    /// TCP addresses to listen on.
    pub(crate) fn tcp_listeners(&self) -> Listeners {
        Listeners::of(self.no_tcp, &self.listen_tcp)
    }
}

/// Addresses to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listeners {
    pub(crate) addresses: Vec<SocketAddr>,
    /// Somebody asked for these very addresses. The default ones may fail, for example
    /// where there is no IPv6.
    pub(crate) is_explicit: bool,
}

impl Listeners {
    fn of(is_off: bool, given: &[SocketAddr]) -> Self {
        if is_off || !given.is_empty() {
            return Listeners { addresses: given.to_vec(), is_explicit: true };
        }
        let addresses = LISTEN_DEFAULT.iter().filter_map(|text| text.parse().ok()).collect();
        Listeners { addresses, is_explicit: false }
    }
}

/// `PREFIX=URI`. A prefix may hold `=` (as in /v=1), a URI never does: the last one splits.
fn parse_route(text: &str) -> Result<(NameBuf, RemoteUri), String> {
    let (prefix, uri) = text.rsplit_once('=').ok_or("expected PREFIX=URI, for example /=udp://host:6363")?;
    Ok((name_argument::parse(prefix)?, uri.parse()?))
}

/// `PREFIX=NAME`. Both may hold `=`. A whole strategy name begins with a slash and no
/// component of a prefix ends with `=`, so `=/` splits; else a short name follows the last
/// `=` that is not its version's.
fn parse_strategy_choice(text: &str) -> Result<(NameBuf, NameBuf), String> {
    let (prefix, strategy) = text
        .split_once("=/")
        .map(|(prefix, _)| (prefix, &text[prefix.len() + 1..]))
        .or_else(|| split_short_strategy(text))
        .ok_or("expected PREFIX=NAME, for example /chat=multicast")?;
    Ok((name_argument::parse(prefix)?, strategy::parse_strategy(strategy)?))
}

/// `/a/v=1=best-route/v=5` splits before the short name `best-route`.
fn split_short_strategy(text: &str) -> Option<(&str, &str)> {
    let head_end = match text.rsplit_once('/') {
        // A trailing `/v=5` belongs to the strategy if its short name stands before it.
        Some((head, tail)) if tail.starts_with("v=") && tail.matches('=').count() == 1 && head.contains('=') => {
            head.len()
        }
        _ => text.len(),
    };
    let at = text[..head_end].rfind('=')?;
    Some((&text[..at], &text[at + 1..]))
}

/// Runs a router until SIGINT or SIGTERM.
pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot wait for signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    allow_many_faces();
    let router = start(&args)?;
    if let Err(failure) = set_up(&args, &router).await {
        router.stop();
        return Err(failure);
    }
    for warning in router.warnings() {
        eprintln!("namewire: {warning}");
    }
    if !args.quiet {
        println!("{}", where_to_connect(&router));
    }
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    router.stop();
    Ok(())
}

/// Every connected application takes a descriptor, and the usual soft limit of 1024
/// is reached by a thousand of them. Raising it to the hard limit needs no privilege;
/// if it fails, the router still runs, with fewer faces.
fn allow_many_faces() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// One line for whoever started the router.
fn where_to_connect(router: &RouterHandle) -> String {
    let socket = router.socket().map(|path| FaceUri::Unix(path.display().to_string()).to_string());
    let socket = socket.unwrap_or_default();
    let tcp = router.tcp().iter().map(|address| FaceUri::tcp(*address).to_string());
    let udp = router.udp().iter().map(|address| FaceUri::udp(*address).to_string());
    let websocket = router.websocket().iter().map(FaceUri::to_string);
    let others: Vec<String> = tcp.chain(udp).chain(websocket).collect();
    let others = if others.is_empty() { String::new() } else { format!("; also listening on {}", others.join(", ")) };
    let version = env!("CARGO_PKG_VERSION");
    format!("namewire {version} is running: applications connect to NDN_CLIENT_TRANSPORT={socket}{others}")
}

/// Starts on the first socket that can be made. A default listener whose address is
/// taken (another forwarder, no IPv6) is left out with a warning; one that was asked
/// for is an error. A live forwarder on a socket is always an error.
fn start(args: &Args) -> Result<RouterHandle, Failure> {
    let (udp, tcp) = (args.udp_listeners(), args.tcp_listeners());
    let mut config = config(args);
    (config.udp, config.tcp) = (udp.addresses, tcp.addresses);
    let mut sockets = match &args.socket {
        // Applications take absolute paths only, and this one will be shown to people.
        Some(path) => vec![std::path::absolute(path).unwrap_or_else(|_| path.clone())],
        None => Environment::of_process().sockets_to_make(),
    }
    .into_iter();
    config.socket = sockets.next();
    let mut tried = Vec::new();
    loop {
        if args.socket.is_none() && config.socket == Some(temporary_socket_path()) {
            let cannot =
                |error| Failure::new(ExitCode::Failed, format!("no place for a socket: {}; {error}", tried.join("; ")));
            make_temporary_directory().map_err(cannot)?;
        }
        let error = match Router::start(config.clone()) {
            Ok(router) => return Ok(router),
            Err(error) => error,
        };
        let StartError::Listen { what, source } = &error else {
            return Err(Failure::new(ExitCode::Failed, error.to_string()));
        };
        let is_default = |listeners: &[SocketAddr], uri: fn(SocketAddr) -> FaceUri, is_explicit: bool| {
            let position = listeners.iter().position(|address| uri(*address).to_string() == *what);
            position.filter(|_| !is_explicit)
        };
        if let Some(position) = is_default(&config.udp, FaceUri::udp, udp.is_explicit) {
            config.udp.remove(position);
        } else if let Some(position) = is_default(&config.tcp, FaceUri::tcp, tcp.is_explicit) {
            config.tcp.remove(position);
        } else if source.kind() == io::ErrorKind::AddrInUse {
            let hint = "another forwarder is running there; stop it, or choose other addresses and --socket PATH";
            return Err(Failure::new(ExitCode::Failed, format!("{error}: {hint}")));
        } else if let Some(next) = sockets.next().filter(|_| what.starts_with("unix:")) {
            config.socket = Some(next);
            tried.push(error.to_string());
            continue; // a place that may not be written to, which is usual without root
        } else {
            return Err(Failure::new(ExitCode::Failed, error.to_string()));
        }
        eprintln!("namewire: not listening on {what}: {source}");
    }
}

fn config(args: &Args) -> RouterConfig {
    let mut config = RouterConfig {
        workers: usize::from(args.workers),
        pin: args.pin.clone(),
        busy_poll: Duration::from_micros(args.busy_poll.into()),
        udp_offload: !args.no_udp_offload,
        seed: args.seed,
        ..RouterConfig::default()
    };
    set_links(args, &mut config);
    let engine = &mut config.engine;
    engine.cs_capacity_bytes = args.cs_capacity.unwrap_or(engine.cs_capacity_bytes);
    // Asked for in octets alone, the store is not to stop at the default number of packets.
    let packets_default = if args.cs_capacity.is_some() { u64::MAX } else { engine.cs_capacity_packets };
    engine.cs_capacity_packets = args.cs_packets.unwrap_or(packets_default);
    engine.cs_policy = match args.cs_policy {
        Policy::Lru => CsPolicy::Lru,
        Policy::Fifo => CsPolicy::Fifo,
    };
    engine.pages = match args.pages {
        Pages::Transparent => PageSize::Transparent,
        Pages::Base => PageSize::Base,
        Pages::Huge2MiB => PageSize::Huge2MiB,
        Pages::Huge1GiB => PageSize::Huge1GiB,
    };
    engine.pit_capacity_entries = args.pit_capacity.unwrap_or(engine.pit_capacity_entries);
    engine.max_lifetime_ms = args.max_lifetime.unwrap_or(engine.max_lifetime_ms);
    engine.record_capacity = engine.record_capacity.max(engine.pit_capacity_entries);
    config
}

/// WebSocket, multicast and Ethernet.
fn set_links(args: &Args, config: &mut RouterConfig) {
    let tls = args.tls_cert.clone().zip(args.tls_key.clone()).map(|(certificate, key)| TlsFiles { certificate, key });
    let plain = args.listen_ws.iter().map(|&address| WebSocketListener { address, tls: None });
    let secure = args.listen_wss.iter().map(|&address| WebSocketListener { address, tls: tls.clone() });
    config.websocket.listeners = plain.chain(secure).collect();
    config.websocket.trusted_certificates.clone_from(&args.tls_trust);
    let mut interfaces = InterfaceFilter { deny: args.denied_interfaces.clone(), ..InterfaceFilter::default() };
    if !args.interfaces.is_empty() {
        interfaces.allow.clone_from(&args.interfaces);
    }
    if args.multicast {
        config.udp_multicast.group4 = Some(link_config::DEFAULT_UDP4_GROUP);
        config.udp_multicast.group6 = Some(link_config::DEFAULT_UDP6_GROUP);
        config.udp_multicast.interfaces = interfaces.clone();
    }
    if args.ethernet {
        config.ethernet.listen = true;
        config.ethernet.group = Some(link_config::DEFAULT_ETHERNET_GROUP);
        config.ethernet.interfaces = interfaces;
    }
}

/// Faces, routes and strategies of the command line, made the way every user makes
/// them: by management commands over the router's own socket.
async fn set_up(args: &Args, router: &RouterHandle) -> Result<(), Failure> {
    if args.faces.is_empty() && args.routes.is_empty() && args.strategies.is_empty() {
        return Ok(());
    }
    let Some(socket) = router.socket() else {
        return Err(Failure::usage("faces, routes and strategies need a Unix socket"));
    };
    let client = Client::connect_to(TransportUri::Unix(socket.clone())).await?;
    for remote in &args.faces {
        let uri = Some(remote.canonical().await?);
        let parameters = ControlParameters { uri, face_persistency: Some(PERMANENT), ..ControlParameters::default() };
        face_reference::create(&client, &parameters).await?;
    }
    for (prefix, remote) in &args.routes {
        let (face_id, _) = face_reference::find_or_create(&client, &FaceReference::Uri(remote.clone())).await?;
        let options = RouteOptions { face_id: Some(face_id), origin: origin::STATIC, ..RouteOptions::default() };
        client.register_prefix(prefix, options).await?;
    }
    for (prefix, strategy) in &args.strategies {
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            strategy: Some(strategy.clone()),
            ..ControlParameters::default()
        };
        client.control("strategy-choice", "set", &parameters).await?;
    }
    Ok(())
}

/// FacePersistency of faces that the command line asks for.
const PERMANENT: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Line::try_parse_from(line.split_whitespace()).map(|line| line.args)
    }

    #[test]
    fn nothing_needs_to_be_said() {
        let args = parse("run").unwrap();
        assert_eq!(args.workers, 1);
        let udp = args.udp_listeners();
        assert_eq!(udp.addresses, ["0.0.0.0:6363".parse().unwrap(), "[::]:6363".parse().unwrap()]);
        assert!(!udp.is_explicit);
        assert_eq!(parse("run --no-tcp").unwrap().tcp_listeners().addresses, []);
    }

    #[test]
    fn everything_can_be_said() {
        let args = parse(
            "run --listen-udp 127.0.0.1:7001 --listen-udp [::1]:7001 --listen-tcp 127.0.0.1:7001 --socket /tmp/x.sock \
             --workers 4 --pin 0,1,0,1 --busy-poll 50 --no-udp-offload --face udp://a --face tcp4://192.0.2.1:1 --route /=udp://a --route /a/v=1=udp://b:7 \
             --strategy /=multicast --cs-capacity 64MiB --cs-packets 100 --pit-capacity 1000 --cs-policy fifo --pages 2MiB \
             --max-lifetime 60000 --seed 7 --quiet",
        )
        .unwrap();
        assert_eq!(args.udp_listeners().addresses.len(), 2);
        assert!(args.udp_listeners().is_explicit);
        assert_eq!((args.faces.len(), args.routes.len(), args.workers), (2, 2, 4));
        let config = config(&args);
        assert_eq!((config.pin, config.busy_poll.as_micros(), config.udp_offload), (vec![0, 1, 0, 1], 50, false));
        assert_eq!((config.engine.cs_policy, config.engine.pages), (CsPolicy::Fifo, PageSize::Huge2MiB));
        assert_eq!(args.routes[1].0.to_string(), "/a/v=1");
        assert_eq!((args.cs_capacity, config.engine.max_lifetime_ms), (Some(64 << 20), 60_000));
        for bad in [
            "--workers 0",
            "--pin a",
            "--busy-poll 1000001",
            "--max-lifetime 0",
            "--listen-udp 7001",
            "--route /a",
            "--no-udp --listen-udp 1.2.3.4:5",
            "--face a",
            "--cs-policy lfu",
            "--pages 4MiB",
        ] {
            assert!(parse(&format!("run {bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn links_are_off_until_asked_for() {
        let links = |line: &str| {
            let config = config(&parse(line).unwrap());
            (config.websocket, config.udp_multicast, config.ethernet)
        };
        let nothing = RouterConfig::default();
        assert_eq!(links("run --interface eth0"), (nothing.websocket, nothing.udp_multicast, nothing.ethernet));
        let (websocket, multicast, ethernet) = links(
            "run --listen-ws 127.0.0.1:9696 --listen-wss [::]:443 --tls-cert c.pem --tls-key k.pem --tls-trust t.pem \
             --multicast --ethernet --interface eth*,10.0.0.0/8 --no-interface eth3",
        );
        let [plain, secure] = websocket.listeners.as_slice() else { panic!("{websocket:?}") };
        assert_eq!((plain.address.port(), &plain.tls), (9696, &None));
        let tls = TlsFiles { certificate: "c.pem".into(), key: "k.pem".into() };
        assert_eq!((secure.address.port(), &secure.tls), (443, &Some(tls)));
        assert_eq!(websocket.trusted_certificates, Some("t.pem".into()));
        assert_eq!(multicast.group4.unwrap().to_string(), "224.0.23.170:56363");
        assert_eq!(multicast.group6.unwrap().to_string(), "[ff02::1234]:56363");
        assert_eq!(ethernet.group.unwrap().to_string(), "01:00:5e:00:17:aa");
        assert!(ethernet.listen);
        assert_eq!(multicast.interfaces, ethernet.interfaces);
        assert!(multicast.interfaces.admits("eth0", None, &[]) && !multicast.interfaces.admits("eth3", None, &[]));
        for bad in ["--listen-wss [::]:443", "--listen-ws 9696", "--tls-cert c.pem", "--interface a/b"] {
            assert!(parse(&format!("run {bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn strategy_choices_split_where_people_mean() {
        let split = |text: &str| parse_strategy_choice(text).map(|(a, b)| (a.to_string(), b.to_string()));
        let whole = |name: &str| format!("/localhost/nfd/strategy/{name}");
        assert_eq!(split("/chat=multicast"), Ok(("/chat".into(), whole("multicast"))));
        assert_eq!(split("/=best-route/v=5"), Ok(("/".into(), whole("best-route/v=5"))));
        assert_eq!(split("/a/v=1=best-route/v=5"), Ok(("/a/v=1".into(), whole("best-route/v=5"))));
        assert_eq!(split("/a/v=1=multicast"), Ok(("/a/v=1".into(), whole("multicast"))));
        assert_eq!(split("/a=/localhost/nfd/strategy/asf/v=5"), Ok(("/a".into(), whole("asf/v=5"))));
        assert!(split("/a").is_err());
        assert!(split("/a=").is_err());
    }
}
