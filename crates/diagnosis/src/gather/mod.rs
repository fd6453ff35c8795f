//! Gathering: asks the forwarder, the kernel and the files of this machine, and fills [`Facts`].
//!
//! ```text
//!   find the forwarder ─► first look ─┬─► probe neighbours ─┬─► second look
//!                                     └─► files, processes ─┘
//! ```
//!
//! Cost: about the time of the watch. Nothing here changes the machine. Each neighbour that is probed gets three
//! Interests, and two more if they are lost; these go one hop.
//!
//! Limits: [`ANSWER_TIMEOUT`] for each dataset, the client's for its size; see the files for theirs.

mod approach;
mod configuration;
mod folders;
mod forwarder;
mod host;
mod key_chain;
mod ports;
mod probe;
mod process;

use crate::facts::{Facts, ForwarderFacts, UserFacts};
use namewire_client::{Client, TransportUri};
use namewire_configuration::Source;
use namewire_security::Signer;
use std::{
    fs,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

pub use forwarder::look;

/// How long a forwarder may take for an answer, and a socket for a connection. A busy machine needs longer than a
/// router does.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

/// What is to be looked at, and how long.
pub struct Wanted {
    /// The forwarder; otherwise the one that the environment names.
    pub transport: Option<TransportUri>,
    /// What signs the command that lets this program choose next hops; otherwise the user's right must do.
    pub signer: Option<Signer>,
    /// The configuration file; otherwise the one that the router names, or the package's.
    pub source: Option<Source>,
    /// Time between the two looks.
    pub watch: Duration,
    /// Ask neighbours.
    pub probe: bool,
}

/// Everything that can be learned, and the connection to the forwarder.
pub async fn gather(wanted: Wanted) -> (Facts, Option<Client>) {
    let mut facts = Facts { now_ms: unix_ms(), user: user(), ..Facts::default() };
    let (approach, client) = approach::approach(wanted.transport.as_ref()).await;
    facts.approach = approach;
    let start = Instant::now();
    let is_signed = wanted.signer.is_some();
    let client = client.map(|client| client.sign_commands_with(wanted.signer.unwrap_or(Signer::digest())));
    if let Some(client) = client.as_ref().filter(|client| !client.is_local()) {
        let uri = client.transport().map(|uri| uri.to_string()).unwrap_or_default();
        facts.approach.is_remote = true;
        facts.approach.tried.push((uri, "a forwarder tells its state to programs of its own machine only".to_owned()));
    } else if let Some(client) = &client {
        match forwarder::first_look(client, start).await {
            Ok((forwarder, settings)) => {
                facts.forwarder = Some(forwarder);
                facts.settings = settings;
            }
            Err(why) => {
                let uri = client.transport().map(|uri| uri.to_string()).unwrap_or_default();
                facts.approach.tried.push((uri, why));
            }
        }
    }
    let client = client.filter(|_| facts.forwarder.is_some());
    // The machine is looked at while neighbours are asked.
    let may_choose = may_choose_next_hops(&facts);
    let whole = facts.forwarder.take();
    facts.forwarder = whole.as_ref().map(without_tables);
    let transport = client.as_ref().and_then(Client::transport);
    let machine = tokio::task::spawn_blocking(move || of_machine(facts, transport, wanted.source));
    let (mut after, mut probed) = (None, Ok(Vec::new()));
    if let (Some(client), Some(forwarder)) = (&client, &whole) {
        probed = match wanted.probe {
            true if !is_signed && !may_choose => Err("only root and the router's user may choose next hops".to_owned()),
            true => probe::neighbours(client, forwarder, wanted.watch).await,
            false => Err("--no-probe".to_owned()),
        };
        tokio::time::sleep(wanted.watch.saturating_sub(start.elapsed())).await;
        after = forwarder::look(client, start).await;
    }
    let mut facts = machine.await.unwrap_or_default();
    facts.forwarder = whole;
    match probed {
        Ok(probes) => facts.probes = probes,
        Err(why) => facts.no_probes = Some(why),
    }
    if let (Some(forwarder), Some(after)) = (&mut facts.forwarder, after) {
        forwarder.after = after;
    }
    facts.now_ms = unix_ms();
    (facts, client)
}

/// Whether Namewire carries out an unsigned command of this user, as far as that can be known. A refused command would
/// be a finding by itself.
fn may_choose_next_hops(facts: &Facts) -> bool {
    let privileges = facts.forwarder.as_ref().and_then(|forwarder| forwarder.after.state.privileges.as_ref());
    let groups: Vec<u32> = facts
        .settings
        .values
        .get("trust.groups")
        .and_then(|value| serde_json::from_str(value).ok())
        .unwrap_or_default();
    let own = rustix::process::getgroups().unwrap_or_default();
    let is_member = || own.iter().any(|group| groups.contains(&group.as_raw()));
    let uid = facts.user.uid;
    privileges.is_none_or(|router| uid == 0 || u64::from(uid) == router.user || is_member())
}

/// What the machine is compared with; tables may be large.
fn without_tables(forwarder: &ForwarderFacts) -> ForwarderFacts {
    ForwarderFacts { is_local: forwarder.is_local, log: forwarder.log.clone(), ..ForwarderFacts::default() }
}

/// What the kernel and the files say.
fn of_machine(mut facts: Facts, transport: Option<TransportUri>, source: Option<Source>) -> Facts {
    facts.host = host::look();
    facts.process = process::find(transport.as_ref(), facts.forwarder.as_ref()).map(process::look);
    facts.settings.resolve_paths(facts.process.as_ref().and_then(|process| process.folder.as_deref()));
    configuration::read(source, &mut facts);
    facts.ports = ports::look(&facts.settings, facts.process.as_ref().map(|process| process.pid));
    facts.keys = key_chain::look();
    facts.folders = folders::look(&facts);
    facts
}

fn user() -> UserFacts {
    let uid = rustix::process::geteuid().as_raw();
    UserFacts { uid, name: name_of_user(uid) }
}

/// The largest /etc/passwd that is read.
const PASSWD_BYTES_MAX: usize = 1 << 20;

/// The name of a user in /etc/passwd.
pub fn name_of_user(uid: u32) -> Option<String> {
    let passwd = fs::read_to_string("/etc/passwd").ok().filter(|text| text.len() <= PASSWD_BYTES_MAX)?;
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// Milliseconds since 1970.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}
