//! `namewire run`: the options of a router.
//!
//! Everything has a default that works without configuration, privileges or keys. A configuration file overrides the
//! defaults, and an option overrides both. Settings that people often type have separate options; `--set` takes any
//! setting.

mod addresses;
mod assignments;
pub(crate) mod former;
mod hosting;
mod inheritance;
mod keeping;
mod launcher;
mod log;
mod networks;
mod options;
mod parent;
mod privileges;
mod start;
mod state_writer;
mod upgrading;

use crate::outcome::{Outcome, State, Upgraded};
use addresses::Addresses;
use assignments::AnySetting;
use inheritance::Inheritance;
use keeping::{Keeping, Parting};
use launcher::Launcher;
use namewire_configuration::{
    Assignment, Configuration, Declarations, InterfacePattern, Settings, Source,
    log_levels::LogChange,
    open_observers,
    settings::{Choice, FaceEntry, FacesSection, Privileges, RouteEntry, StrategyEntry},
    text::{Origin, Prefix, StrategyName, Uri},
    units::Bytes,
};
use namewire_packet::nfd::FaceUri;
use namewire_router::{RouterHandle, TakeOver, give_memory_back, operator::OperatorError, require_memory};
use namewire_tools::{
    ExitCode, Failure, parse_bytes,
    service::{EndSignals, notify},
};
use privileges::Kept;
use sd_notify::NotifyState;
use std::{
    io::{self, Write},
    net::SocketAddr,
    os::unix::net::UnixStream,
    path::PathBuf,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};
use upgrading::{Succession, Successor};

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Configuration file; `namewire config default` prints one. Options override it; at SIGHUP the router reads it
    /// again
    #[arg(short, long, value_name = "FILE", conflicts_with = "nfd_conf")]
    pub(crate) config: Option<PathBuf>,
    /// Configuration file of NFD; the router warns about the sections that it ignores
    #[arg(long, value_name = "FILE")]
    pub(crate) nfd_conf: Option<PathBuf>,
    /// State file: the router saves faces, routes and strategies made by commands, and restores them at the start
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// If the state file cannot be read, rename it and start without it
    #[arg(long)]
    pub(crate) ignore_state: bool,
    /// UDP address to listen on, or a port on all addresses; repeatable [default: 0.0.0.0:6363 and [::]:6363]
    #[arg(long, value_name = "ADDR:PORT", value_parser = addresses::of_all)]
    pub(crate) listen_udp: Vec<Addresses>,
    /// Do not listen on UDP
    #[arg(long, conflicts_with = "listen_udp")]
    pub(crate) no_udp: bool,
    /// TCP address to listen on, or a port on all addresses; repeatable [default: 0.0.0.0:6363 and [::]:6363]
    #[arg(long, value_name = "ADDR:PORT", value_parser = addresses::of_all)]
    pub(crate) listen_tcp: Vec<Addresses>,
    /// Do not listen on TCP
    #[arg(long, conflicts_with = "listen_tcp")]
    pub(crate) no_tcp: bool,
    /// WebSocket address to listen on, or a port on all addresses; repeatable, for example 0.0.0.0:9696
    #[arg(long, value_name = "ADDR:PORT", value_parser = addresses::of_all)]
    pub(crate) listen_ws: Vec<Addresses>,
    /// Address to listen on for WebSocket over TLS, repeatable
    #[arg(long, value_name = "ADDR:PORT", value_parser = addresses::of_all, requires = "tls_cert", requires = "tls_key")]
    pub(crate) listen_wss: Vec<Addresses>,
    /// Certificate chain of --listen-wss, in PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "listen_wss")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert, in PEM
    #[arg(long, value_name = "FILE", requires = "listen_wss")]
    pub(crate) tls_key: Option<PathBuf>,
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
    /// Unix socket for applications [default: /run/nfd/nfd.sock, or the next default path that can be created]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Unix socket for applications that share memory with the router (memif) [default: none]
    #[arg(long, value_name = "PATH")]
    pub(crate) memif: Option<PathBuf>,
    /// Serve metrics and a live page by HTTP at this address, or at this port of 127.0.0.1; repeatable, for example
    /// 9695
    #[arg(long, value_name = "ADDR:PORT", value_parser = addresses::of_loopback)]
    pub(crate) observe: Vec<Addresses>,
    /// Worker threads [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers: Option<u16>,
    /// Permanent face to make at the start, repeatable, for example udp://host:6363
    #[arg(long = "face", value_name = "URI")]
    pub(crate) faces: Vec<Uri>,
    /// Route to add at the start, repeatable; the router makes the face if there is none
    #[arg(long = "route", value_name = "PREFIX=URI", value_parser = parse_route)]
    pub(crate) routes: Vec<(Prefix, Uri)>,
    /// Strategy to choose at the start, repeatable, for example /chat=multicast
    #[arg(long = "strategy", value_name = "PREFIX=NAME", value_parser = parse_strategy_choice)]
    pub(crate) strategies: Vec<(Prefix, StrategyName)>,
    /// Memory for cached Data, for example "1 GiB" [default: 64 MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) cs_capacity: Option<u64>,
    /// Run a repository inside the router, with its store in this folder; see docs/repo.md
    #[arg(long, value_name = "PATH")]
    pub(crate) repo: Option<PathBuf>,
    /// Any setting of the configuration by its key, repeatable, for example cs.policy=lru; `namewire config default`
    /// prints all
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = AnySetting, hide_possible_values = true)]
    pub(crate) assignments: Vec<Assignment>,
    /// Keep all privileges (of root, or capabilities), even those that the router does not need
    #[arg(long)]
    pub(crate) keep_privileges: bool,
    /// What to log on standard error, by area, for example info,faces=debug: see docs/observe.md [default: info, or
    /// warn with --quiet]
    #[arg(long, value_name = "LEVELS")]
    pub(crate) log: Option<LogChange>,
    /// Print nothing but errors and warnings
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// End with NFD's exit codes; set by `namewire nfd`
    #[arg(skip)]
    pub(crate) nfd_exit_codes: bool,
}

impl Args {
    /// The configuration file, if one was named.
    pub(crate) fn source(&self) -> Option<Source> {
        let toml = self.config.clone().map(Source::Toml);
        toml.or_else(|| self.nfd_conf.clone().map(Source::NfdConf))
    }

    /// What the configuration file and the options say together.
    pub(crate) fn load(&self) -> Result<Configuration, Failure> {
        let failed = |error: String| Failure::new(ExitCode::Failed, error);
        let mut loaded = match self.source() {
            Some(source) => source.load().map_err(|error| failed(error.to_string()))?,
            None => Configuration::default(),
        };
        self.override_settings(&mut loaded.settings);
        loaded.settings.assign(&self.assignments).map_err(|error| failed(format!("--set: {error}")))?;
        options::note(self, &mut loaded.sources);
        loaded.settings.check().map_err(|error| failed(error.to_string()))?;
        Ok(loaded)
    }

    /// The same in a thread of its own, so that signals are obeyed meanwhile: a file may be on a disk that does not
    /// answer, or a pipe. N.B. not one of the runtime's threads, for which the process would wait at its end.
    pub(crate) async fn load_aside(&self) -> Result<Configuration, Failure> {
        let (result, loaded) = oneshot::channel();
        let args = self.clone();
        let thread = std::thread::Builder::new().name("nw-configuration".to_owned());
        let failed = |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot start: {error}"));
        let load = move || {
            let _ = result.send(args.load()); // not waited for any longer: the process ends
        };
        thread.spawn(load).map_err(failed)?;
        loaded.await.unwrap_or_else(|_| Err(Failure::new(ExitCode::Failed, "the configuration was not read")))
    }

    fn override_settings(&self, settings: &mut Settings) {
        let Settings { router, log, observe, cs, faces, state, repo, .. } = settings;
        if !self.observe.is_empty() {
            observe.listen = Addresses::join(&self.observe);
        }
        listen(self.no_udp, &self.listen_udp, &mut faces.udp.enabled, &mut faces.udp.listen);
        listen(self.no_tcp, &self.listen_tcp, &mut faces.tcp.enabled, &mut faces.tcp.listen);
        self.set_links(faces);
        if let Some(path) = &self.socket {
            (faces.unix.enabled, faces.unix.path) = (true, Some(path.clone()));
        }
        state.file = self.state.clone().or(state.file.take());
        router.workers = self.workers.unwrap_or(router.workers);
        router.quiet |= self.quiet;
        if self.keep_privileges {
            router.privileges = Choice(Privileges::Keep);
        }
        self.log.iter().for_each(|change| log.override_by(change));
        if let Some(bytes) = self.cs_capacity {
            // What the file says of packets belonged to its own capacity.
            (cs.capacity, cs.packets) = (Some(Bytes(bytes)), None);
        }
        if let Some(folder) = &self.repo {
            (repo.enabled, repo.folder) = (true, Some(folder.clone()));
        }
        self.declare(settings);
    }

    /// WebSocket, multicast, Ethernet and what shares memory.
    fn set_links(&self, faces: &mut FacesSection) {
        let FacesSection { websocket, multicast, ethernet, memif, .. } = faces;
        memif.path = self.memif.clone().or(memif.path.take());
        if !self.listen_ws.is_empty() || !self.listen_wss.is_empty() {
            websocket.enabled = true;
            (websocket.listen, websocket.listen_tls) =
                (Addresses::join(&self.listen_ws), Addresses::join(&self.listen_wss));
        }
        websocket.certificate = self.tls_cert.clone().or(websocket.certificate.take());
        websocket.key = self.tls_key.clone().or(websocket.key.take());
        multicast.enabled |= self.multicast;
        ethernet.listen |= self.ethernet;
        ethernet.multicast |= self.ethernet;
        for (given, both) in [
            (&self.interfaces, [&mut multicast.interfaces, &mut ethernet.interfaces]),
            (&self.denied_interfaces, [&mut multicast.except, &mut ethernet.except]),
        ] {
            if !given.is_empty() {
                both.into_iter().for_each(|list| list.clone_from(given));
            }
        }
    }

    /// Adds the faces, routes and strategies of the options to those of the file; of two that
    /// are about the same, the option's stays.
    fn declare(&self, settings: &mut Settings) {
        for uri in &self.faces {
            settings.face.retain(|face| face.uri != *uri);
            settings.face.push(FaceEntry::permanent(uri.clone()));
        }
        for (prefix, face) in &self.routes {
            let origin = Origin(namewire_packet::nfd::origin::STATIC);
            settings.route.retain(|route| (&route.prefix, &route.face, route.origin) != (prefix, face, origin));
            settings.route.push(RouteEntry {
                prefix: prefix.clone(),
                face: face.clone(),
                cost: 0,
                origin,
                inherit: true,
                capture: false,
            });
        }
        for (prefix, strategy) in &self.strategies {
            settings.strategy.retain(|entry| entry.prefix != *prefix);
            settings.strategy.push(StrategyEntry { prefix: prefix.clone(), strategy: strategy.clone() });
        }
    }
}

/// `--no-…` and `--listen-…`.
fn listen(is_off: bool, given: &[Addresses], enabled: &mut bool, listen: &mut Option<Vec<SocketAddr>>) {
    if is_off {
        *enabled = false;
    } else if !given.is_empty() {
        (*enabled, *listen) = (true, Some(Addresses::join(given)));
    }
}

/// `PREFIX=URI`. A prefix may hold `=` (as in /v=1), a URI never does: the last one splits.
fn parse_route(text: &str) -> Result<(Prefix, Uri), String> {
    let (prefix, uri) = text.rsplit_once('=').ok_or("expected PREFIX=URI, for example /=udp://host:6363")?;
    Ok((prefix.parse()?, uri.parse()?))
}

/// `PREFIX=NAME`. Both may hold `=`. A whole strategy name begins with a slash and no
/// component of a prefix ends with `=`, so `=/` splits; else a short name follows the last
/// `=` that is neither its version's nor its parameters'.
fn parse_strategy_choice(text: &str) -> Result<(Prefix, StrategyName), String> {
    let (prefix, strategy) = text
        .split_once("=/")
        .map(|(prefix, _)| (prefix, &text[prefix.len() + 1..]))
        .or_else(|| split_short_strategy(text))
        .ok_or("expected PREFIX=NAME, for example /chat=multicast")?;
    Ok((prefix.parse()?, strategy.parse()?))
}

/// `/a/v=1=asf/v=5/max-timeouts~1` splits before the short name `asf`.
fn split_short_strategy(text: &str) -> Option<(&str, &str)> {
    // What stands behind a `=` is of the strategy as far as it can be: parameters, and a version before them.
    let is_parameter = |part: &str| part.contains('~') && !part.contains('=');
    let is_version = |part: &str| part.starts_with("v=") && part.matches('=').count() == 1;
    let mut head = text;
    while let Some((front, _)) = head.rsplit_once('/').filter(|(front, part)| front.contains('=') && is_parameter(part))
    {
        head = front;
    }
    let version = head.rsplit_once('/').filter(|(front, part)| front.contains('=') && is_version(part));
    head = version.map_or(head, |(front, _)| front);
    let at = head.rfind('=')?;
    Some((&text[..at], &text[at + 1..]))
}

/// Runs a router until SIGINT or SIGTERM. If another program takes over, the process may stay as its parent.
pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let Some(inheritance) = Inheritance::of_process()? else { return run(args, None).await };
    let (task, version, dropped) = (inheritance.task, inheritance.version.clone(), inheritance.dropped.clone());
    let cannot = |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot take over: {error}"));
    let (take_over, refuser, parent) = inheritance.into_parts().map_err(cannot)?;
    let result = run(args, Some(Before { take_over, parent, task, version, dropped })).await;
    // After the hand-over, nobody listens.
    result.inspect_err(|failure| refuser.refuse(failure))
}

/// The program before this one.
struct Before {
    take_over: TakeOver,
    parent: Option<UnixStream>,
    task: u64,
    version: String,
    dropped: Vec<String>,
}

async fn run(args: Args, before: Option<Before>) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot wait for signals: {error}"));
    let mut end = EndSignals::listen().map_err(failed)?;
    // From here on, or a SIGHUP that comes early would end the process.
    let hangup = signal(SignalKind::hangup()).map_err(failed)?;
    // Before files are read: what reads them ends the process where there is no memory.
    require_memory().map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
    let configuration = tokio::select! {
        configuration = args.load_aside() => configuration?,
        () = end.came() => return Ok(()),
    };
    let log = log::install(&configuration.settings)?;
    keeping::log_warnings(&args, &configuration.warnings);
    for warning in open_observers(&configuration.settings) {
        tracing::warn!(target: "trust", "{warning}");
    }
    let state = match before {
        None => keeping::read_state(&args, &configuration.settings)?,
        Some(_) => keeping::peek_at_state(&configuration.settings),
    };
    allow_many_faces();
    let Kept { line: privileges, launcher } = privileges::give_up(&configuration, args.source().as_ref(), &state)?;
    let log_writer = log::start_writing(log)?; // a thread, which has what privileges the process has
    let begun = begin(&args, &configuration, state, launcher, before)?;
    let Begun { router, taken, state, succession, outcome } = begun;
    log::started(&router);
    let stopped = |error: OperatorError| Failure::new(ExitCode::Failed, error.to_string());
    let operator = router.operator();
    if let Some(outcome) = &outcome {
        operator.note_outcome(outcome.number, outcome.report()).map_err(stopped)?;
    }
    let mut keeping = Keeping::new(args, configuration, operator, succession).await.map_err(stopped)?;
    let is_set_up = tokio::select! {
        is_set_up = keeping.set_up(state, outcome.is_some()) => is_set_up.map(|()| true),
        () = end.came() => Ok(false),
    };
    // The state file stays as it is: not all that it says is made.
    if !matches!(is_set_up, Ok(true)) {
        router.stop();
        return is_set_up.map(|_| ());
    }
    let repo = keeping.start_repo(&router).await?;
    keeping.start_services(&router);
    if !keeping.is_quiet() && outcome.is_none() {
        say_where_to_connect(&router, taken.into_iter().chain(repo.as_ref().map(|repo| repo.line.clone())), privileges);
    }
    notify(&[NotifyState::Ready]);
    if let Parting::Successor(successor) = keeping.run(&router, hangup, &mut end).await {
        keeping.tell_of(&successor);
        drop(keeping);
        router.leave();
        return part(successor, log_writer).await;
    }
    notify(&[NotifyState::Stopping]);
    tracing::info!(target: "management", "router stops");
    keeping.finish().await;
    keeping.stop_services();
    if let Some(repo) = repo {
        repo.stop();
    }
    router.stop();
    drop(log_writer);
    Ok(())
}

/// A router that runs, and what is left to do for it.
struct Begun {
    router: RouterHandle,
    /// In words, the default listeners whose addresses other programs have as well.
    taken: Vec<String>,
    state: Declarations,
    succession: Succession,
    /// Of the upgrade that this is.
    outcome: Option<Outcome>,
}

/// Starts the router, or takes over.
fn begin(
    args: &Args,
    configuration: &Configuration,
    state: Declarations,
    launcher: Launcher,
    before: Option<Before>,
) -> Result<Begun, Failure> {
    let Some(Before { take_over, parent, task, version, dropped }) = before else {
        let (router, taken) = start::start(configuration, args)?;
        let succession = Succession::new(launcher, None);
        return Ok(Begun { router, taken, state, succession, outcome: None });
    };
    let router = start::take_over(configuration, take_over)?;
    let taken = router.taken().unwrap_or_default();
    let upgraded = Upgraded {
        from_version: version,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        faces: taken.faces,
        routes: taken.routes,
        stall_ms: taken.stall.as_micros() as f64 / 1000.0,
    };
    let (faces, routes, stall_ms) = (upgraded.faces, upgraded.routes, upgraded.stall_ms);
    tracing::info!(target: "management", faces, routes, stall_ms, "took over from another program");
    // What that program wrote last. If it cannot be read now, what it said at the start will do; the routes are here.
    let state = keeping::read_state(args, &configuration.settings).unwrap_or(state);
    let outcome = Outcome {
        number: task,
        task: "upgrade".to_owned(),
        state: State::Done,
        upgraded: Some(upgraded),
        problems: dropped.into_iter().map(|what| format!("dropped: {what}")).collect(),
        ..Outcome::default()
    };
    let succession = Succession::new(launcher, parent);
    Ok(Begun { router, taken: Vec::new(), state, succession, outcome: Some(outcome) })
}

/// Another program forwards. Ends, or stays as the parent of that program.
async fn part(successor: Successor, log_writer: impl Sized) -> Result<(), Failure> {
    drop(log_writer);
    let Some(line) = successor.line else { return Ok(()) };
    give_memory_back();
    let code = parent::stay(successor.child, line).await;
    std::process::exit(code.unwrap_or(1));
}

/// Every connected application takes a descriptor, and the usual soft limit of 1024
/// is reached by a thousand of them. Raising it to the hard limit needs no privilege;
/// if it fails, the router still runs, with fewer faces.
fn allow_many_faces() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Prints where to connect, and what else there is to say.
fn say_where_to_connect(router: &RouterHandle, more: impl Iterator<Item = String>, privileges: Option<String>) {
    let more: String = more.chain(privileges).map(|line| format!("{line}\n")).collect();
    let text = format!("{}\n{more}", where_to_connect(router));
    // A reader may close the pipe after the first line. The router goes on.
    let _ = io::stdout().write_all(text.as_bytes());
}

/// The line that the command prints when the router has started.
fn where_to_connect(router: &RouterHandle) -> String {
    let socket = router.socket().map(|path| FaceUri::unix(path).to_string());
    let connect = match socket {
        Some(socket) => format!("applications connect to NDN_CLIENT_TRANSPORT={socket}"),
        None => "no Unix socket for applications".to_owned(),
    };
    let tcp = router.tcp().iter().map(|address| FaceUri::tcp(*address).to_string());
    let udp = router.udp().iter().map(|address| FaceUri::udp(*address).to_string());
    let websocket = router.websocket().iter().map(FaceUri::to_string);
    let others: Vec<String> = tcp.chain(udp).chain(websocket).collect();
    let others = if others.is_empty() { String::new() } else { format!("; also listening on {}", others.join(", ")) };
    let version = env!("CARGO_PKG_VERSION");
    let ports: String = router.ports().iter().map(|port| format!("\n{port}")).collect();
    let observed = router.observed_at().iter().map(|address| format!("\nmetrics and a live page: http://{address}/"));
    let observed: String = observed.collect();
    format!("namewire {version} is running: {connect}{others}{ports}{observed}")
}

#[cfg(test)]
mod tests;
