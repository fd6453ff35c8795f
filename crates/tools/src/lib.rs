//! The tools of the command line: they query and manage a router, send Interests and Data, and manage keys and stores.
//!
//! | question | file |
//! | --- | --- |
//! | which tools are there? | [`Tool`], here |
//! | which options do all tools have, and how do they connect? | [`Global`], here |
//! | how does a command fail, and with which exit code? | `failure` |
//! | how are numbers and times read? | `quantity`; `namewire_printing` prints them, tables and JSON |
//! | how does a command run as a service? | [`service`], `repo/run.rs`, `repo/hosted.rs` |
//!
//! Each tool is one file with its arguments and `execute`. No tool uses the router's code, so this crate compiles in
//! parallel with the router.

mod capture;
mod certificates;
mod channel;
mod choice;
mod cs;
mod drops;
mod events;
pub mod explain;
mod face;
pub mod face_reference;
mod failure;
mod fib;
mod get;
mod key;
mod key_files;
mod log;
mod name_argument;
mod peek;
mod ping;
mod pingserver;
mod poke;
mod put;
mod quantity;
mod repo;
mod route;
mod schema;
mod segment_options;
mod serve;
pub mod service;
mod settings;
mod status;
mod strategy;
mod tag;
mod trace;
mod traceroute;
mod traffic;

pub use failure::{ExitCode, Failure};
pub use key::RevocationReason;
pub use quantity::{ms_in, parse_bytes};
pub use repo::HostedRepo;
pub use settings::show_running;

use clap::{ArgMatches, FromArgMatches, Subcommand};
use failure::Transport;
use namewire_client::{Client, ConnectionEvent, TransportUri};
use namewire_packet::NameBuf;
use namewire_printing::{
    columns,
    output::{self, Output},
    terminal,
};
use namewire_routers::Choice;
use namewire_security::Signer;
use std::{ffi::OsString, sync::OnceLock};

/// The heading of these options in help texts.
pub const TOOL_OPTIONS: &str = "Options of all tools";

/// Options of every tool. Commands that are no tools refuse them.
#[derive(Debug, Default, clap::Args)]
pub struct Global {
    /// Forwarder to talk to, for example unix:///run/nfd/nfd.sock or udp://host:6363
    /// [default: NDN_CLIENT_TRANSPORT, client.conf, then the usual sockets]
    #[arg(long, global = true, value_name = "URI", help_heading = TOOL_OPTIONS)]
    transport: Option<TransportUri>,
    /// Router to talk to, by the name that `namewire router add` gave it [default: NAMEWIRE_ROUTER]
    #[arg(long, global = true, value_name = "NAME", help_heading = TOOL_OPTIONS)]
    router: Option<String>,
    /// Sign commands and Data with the default key of this identity of the key chain (or by the key or certificate
    /// named)
    #[arg(long, global = true, value_name = "NAME", value_parser = name_argument::parse, help_heading = TOOL_OPTIONS)]
    identity: Option<NameBuf>,
    /// Print JSON instead of text
    #[arg(long, global = true, help_heading = TOOL_OPTIONS)]
    json: bool,
    /// How the first connection reached the forwarder.
    #[arg(skip)]
    connected: OnceLock<Transport>,
}

/// Commands that outlive their router say what happens to their connection.
fn say(event: ConnectionEvent) {
    match event {
        ConnectionEvent::Lost(_) => eprintln!("namewire: the connection to the forwarder was lost; trying again"),
        ConnectionEvent::StillLost(reason) => eprintln!("namewire: {reason}"),
        ConnectionEvent::Restored => eprintln!("namewire: connected again"),
    }
}

/// A failure says which router it was about, and who named it.
async fn connect_to_named(choice: Choice) -> Result<Client, Failure> {
    let Choice { name, named, router } = choice;
    let connected = Client::connect_to(router.transport).await;
    let about = || format!("This is the router \"{name}\" (named by {}); see `namewire router list`.", named.text());
    connected.map_err(|error| Failure::from(error).with_line(about()))
}

impl Global {
    /// A connection with the router of this command line, which signs commands by `--identity`.
    ///
    /// # Errors
    /// The key or the router is not there, or the router does not answer.
    pub async fn connect(&self) -> Result<Client, Failure> {
        // Before connecting: a missing key is the user's to mend, whether or not a forwarder runs.
        let signer = self.signer()?;
        let client = self.open().await?;
        if let Some(uri) = client.transport() {
            self.connected.get_or_init(|| Transport { uri: uri.to_string(), is_local: client.is_local() });
        }
        Ok(client.sign_commands_with(signer).on_connection_event(say))
    }

    /// A connection with the router of this command line, over which no command is signed by a key.
    ///
    /// # Errors
    /// The router is not there, or does not answer.
    pub async fn open(&self) -> Result<Client, Failure> {
        Ok(match (&self.transport, self.choice(true)?) {
            (Some(uri), _) => Client::connect_to(uri.clone()).await?,
            (None, Some(choice)) => connect_to_named(choice).await?,
            (None, None) => Client::connect().await?,
        })
    }

    /// The router that a line names which is not complete yet. What is wrong with the line is left out.
    pub fn to_complete(words: &[OsString]) -> Self {
        let value_of = |option: &str| {
            words.iter().enumerate().find_map(|(index, word)| {
                let word = word.to_str()?;
                let value = word.strip_prefix(option)?;
                match value.strip_prefix('=') {
                    Some(value) => Some(value.to_owned()),
                    None if value.is_empty() => words.get(index + 1)?.to_str().map(str::to_owned),
                    None => None,
                }
            })
        };
        let transport = value_of("--transport").and_then(|uri| uri.parse().ok());
        let router = value_of("--router").filter(|_| transport.is_none());
        Global { transport, router, ..Global::default() }
    }

    /// The named router of this command line; `None` if it has `--transport`, or nothing names a router.
    fn choice(&self, takes_default: bool) -> Result<Option<Choice>, Failure> {
        match (&self.transport, &self.router) {
            (Some(_), Some(_)) => {
                Err(Failure::usage("--transport and --router both name the router; give one of them"))
            }
            (Some(_), None) => Ok(None),
            (None, name) => Ok(Choice::of_process(name.as_deref(), takes_default)?),
        }
    }

    /// The key of `--identity` or of the named router, or a digest if neither names an identity.
    fn signer(&self) -> Result<Signer, Failure> {
        Ok(self.named_signer()?.unwrap_or(Signer::digest()))
    }

    fn named_signer_for(&self, choice: Option<&Choice>) -> Result<Option<Signer>, Failure> {
        self.identity_for(choice).map(key::signer).transpose()
    }

    fn identity_for<'a>(&'a self, choice: Option<&'a Choice>) -> Option<&'a NameBuf> {
        self.identity.as_ref().or_else(|| choice.and_then(|choice| choice.router.identity.as_ref()))
    }

    /// The identity that signs, of `--identity` or of the named router.
    fn signing_identity(&self) -> Result<Option<NameBuf>, Failure> {
        Ok(self.identity_for(self.choice(true)?.as_ref()).cloned())
    }

    /// The forwarder to talk to, if one is named, and the key of `--identity`: for `nfdc`, which connects by itself. It
    /// takes no default of ours, so that it goes where NFD's `nfdc` would.
    ///
    /// # Errors
    /// If the key or the named router is not there.
    pub fn into_connection(self) -> Result<(Option<TransportUri>, Signer), Failure> {
        let choice = self.choice(false)?;
        let signer = self.named_signer_for(choice.as_ref())?.unwrap_or(Signer::digest());
        Ok((self.transport.or(choice.map(|choice| choice.router.transport)), signer))
    }

    /// For commands that talk to no forwarder, sign nothing and print one form only. Whoever gives these
    /// options means something else (`--socket`, most likely) and should not find out later.
    ///
    /// # Errors
    /// [`ExitCode::Usage`], with the option and why.
    pub fn refuse_options_of_tools(&self) -> Result<(), Failure> {
        let given = [
            (self.transport.is_some(), "--transport is for tools that talk to a router; see --socket"),
            (self.router.is_some(), "--router is for tools that talk to a router; see --socket"),
            (self.identity.is_some(), "--identity is for tools that sign"),
            (self.json, "--json is for tools that print what they learned from a router"),
        ];
        match given.iter().find(|(is_given, _)| *is_given) {
            Some((_, why)) => {
                Err(Failure::new(ExitCode::Usage, format!("this command does not take that option: {why}")))
            }
            None => Ok(()),
        }
    }

    /// For commands about the names of routers, which talk to none.
    ///
    /// # Errors
    /// [`ExitCode::Usage`], if the command line names a router to talk to.
    pub fn refuse_router(&self) -> Result<(), Failure> {
        match self.transport.is_some() || self.router.is_some() {
            true => Err(Failure::usage("this command talks to no router: it takes neither --transport nor --router")),
            false => Ok(()),
        }
    }

    /// A command about a router as somebody must type it who named the router on this command line; any other as it is.
    pub fn typed(&self, command: &str) -> String {
        let naming = match (&self.router, &self.transport) {
            (Some(router), _) => format!("--router {router}"),
            (None, Some(transport)) => format!("--transport {transport}"),
            (None, None) => return command.to_owned(),
        };
        let words = command.strip_prefix("namewire ").unwrap_or_default();
        match words.split(' ').next() {
            Some("" | "run" | "config" | "key" | "router" | "doctor") | None => command.to_owned(),
            Some(word) if word.starts_with('-') => command.to_owned(),
            Some(_) => format!("namewire {naming} {words}"),
        }
    }

    /// The identity of `--identity`.
    pub fn identity(&self) -> Option<&NameBuf> {
        self.identity.as_ref()
    }

    /// The outcome of a command. A failure tells about the connection what explains it.
    ///
    /// # Errors
    /// That of the command.
    pub fn told(&self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        outcome.map_err(|failure| failure.over(self.connected.get()).typed(|command| self.typed(command)))
    }

    /// The forwarder that the command line names, by `--transport` or as a named router.
    ///
    /// # Errors
    /// If the named router is not there.
    pub fn transport(&self) -> Result<Option<TransportUri>, Failure> {
        let choice = self.choice(true)?;
        Ok(self.transport.clone().or(choice.map(|choice| choice.router.transport)))
    }

    /// The key of `--identity` or of the named router, if one names an identity.
    ///
    /// # Errors
    /// If the key or the named router is not there.
    pub fn named_signer(&self) -> Result<Option<Signer>, Failure> {
        self.named_signer_for(self.choice(true)?.as_ref())
    }

    /// How the command prints.
    pub fn output(&self) -> Output {
        Output { json: self.json }
    }
}

/// A tool and its arguments.
#[derive(Debug)]
pub struct Tool(Command);

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the forwarder's general status
    Status {
        /// Show who holds how much of the router's pools: faces, queues, memory.
        #[arg(long)]
        holders: bool,
        /// Show what each worker thread holds and does, and the share of time in which it had work
        #[arg(long, conflicts_with = "holders")]
        workers: bool,
    },
    /// Show the last packets that the forwarder dropped, and why
    Drops(drops::Args),
    /// Show and change faces
    #[command(subcommand)]
    Face(face::Command),
    /// Show and change routes
    #[command(subcommand)]
    Route(route::Command),
    /// Show the FIB: the prefixes by which Interests are forwarded
    #[command(subcommand)]
    Fib(fib::Command),
    /// Show the channels: the local addresses that make or accept faces
    #[command(subcommand)]
    Channel(channel::Command),
    /// Show and change strategy choices
    #[command(subcommand)]
    Strategy(strategy::Command),
    /// Run a repository, which stores Data for a long time; use one; maintain its store
    #[command(subcommand)]
    Repo(repo::Command),
    /// Exchange packets by tags instead of names (TagNet), and show the router's tables of tags
    #[command(subcommand)]
    Tag(tag::Command),
    /// Show and configure the Content Store
    #[command(subcommand)]
    Cs(cs::Command),
    /// Show and change this user's identities, keys and certificates
    #[command(subcommand)]
    Key(key::Command),
    /// Check compiled trust schemas (LVS)
    #[command(subcommand)]
    Schema(schema::Command),
    /// Fetch one Data packet and print its content
    Peek(peek::Args),
    /// Answer one Interest with the content on standard input
    Poke(poke::Args),
    /// Measure reachability and round-trip time of a ping server
    Ping(ping::Args),
    /// Show the forwarders on the way to a name, and what ends the way
    Traceroute(traceroute::Args),
    /// Answer pings
    Pingserver(pingserver::Args),
    /// Serve a file or a folder in segments
    Put(put::Args),
    /// Fetch a segmented object, or a folder of them
    Get(get::Args),
    /// Serve a folder as a service, always as it is on the disk
    Serve(serve::Args),
    /// Show what happened: the latest lines of the router's log
    Events(events::Args),
    /// Show and change how much the router logs
    #[command(subcommand)]
    Log(log::Command),
    /// Show the packets of faces as they pass, or write them to a file for Wireshark and ndndump
    Capture(capture::Args),
    /// Show what the forwarder does with each packet under a name, as it happens
    Trace(trace::Args),
    /// Generate load, and measure how it is answered
    #[command(subcommand)]
    Traffic(traffic::Command),
}

impl Tool {
    /// Does what was asked for.
    ///
    /// # Errors
    /// What failed, in words and as an exit code.
    pub async fn execute(self, global: &Global) -> Result<(), Failure> {
        global.told(self.command(global).await)
    }

    async fn command(self, global: &Global) -> Result<(), Failure> {
        match self.0 {
            Command::Status { holders: true, .. } => status::execute_holders(global).await,
            Command::Status { workers: true, .. } => status::execute_workers(global).await,
            Command::Status { .. } => status::execute(global).await,
            Command::Drops(args) => drops::execute(global, args).await,
            Command::Face(command) => face::execute(global, command).await,
            Command::Route(command) => route::execute(global, command).await,
            Command::Fib(command) => fib::execute(global, command).await,
            Command::Channel(command) => channel::execute(global, command).await,
            Command::Strategy(command) => strategy::execute(global, command).await,
            Command::Cs(command) => cs::execute(global, command).await,
            Command::Repo(command) => repo::execute(global, command).await,
            Command::Tag(command) => tag::execute(global, command).await,
            Command::Key(command) => key::execute(global, command).await,
            Command::Schema(command) => schema::execute(global, command),
            Command::Peek(args) => peek::execute(global, args).await,
            Command::Poke(args) => poke::execute(global, args).await,
            Command::Ping(args) => ping::execute(global, args).await,
            Command::Traceroute(args) => traceroute::execute(global, args).await,
            Command::Pingserver(args) => pingserver::execute(global, args).await,
            Command::Put(args) => put::execute(global, args).await,
            Command::Get(args) => get::execute(global, args).await,
            Command::Serve(args) => serve::execute(global, args).await,
            Command::Events(args) => events::execute(global, args).await,
            Command::Log(command) => log::execute(global, command).await,
            Command::Capture(args) => capture::execute(global, args).await,
            Command::Trace(args) => trace::execute(global, args).await,
            Command::Traffic(command) => traffic::execute(global, command).await,
        }
    }
}

impl FromArgMatches for Tool {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Command::from_arg_matches(matches).map(Tool)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Subcommand for Tool {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        Command::augment_subcommands(command)
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Command::augment_subcommands_for_update(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Command::has_subcommand(name)
    }
}
