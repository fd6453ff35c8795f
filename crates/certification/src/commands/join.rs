//! `namewire join` and `namewire leave`.
//!
//! ```text
//!   join udp://router.example /site/bob
//!     1  face, routes                         commands to this router
//!     2  /site/bob registered there, signed   if its router takes the signature
//!     3  otherwise: certificate of /site      by a code, a mail …, then 2 again
//!     4  the network is in the list           this router keeps face, registration and certificate from now on
//! ```
//!
//! A step that fails takes back what the steps before it have made.

use super::{
    failed, now_ms, open_key_chain, parse_name, read_certificate,
    request::{ProofArgs, TrustArgs, get_certificate, offered_name},
};
use crate::membership::{
    discover,
    keeper::{self, Kept, STATUS_NAME},
    list::{Network, NetworkList},
    steps,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use namewire_certificates::{CertificateServer, KeyChainPart, Limits, ServerEvent, Sources};
use namewire_client::{Client, ExpressError, InterestBuilder, TransportUri};
use namewire_packet::{FaceId, NameBuf, nfd::origin};
use namewire_printing::output::table;
use namewire_security::{PrivateKey, key_chain::KeyChainError};
use namewire_tools::{Failure, Global, face_reference::RemoteUri};
use serde::Serialize;
use std::{fs, path::PathBuf, time::Duration};
use tokio::{
    sync::mpsc::unbounded_channel,
    time::{sleep, timeout},
};

/// How long this router may take to see that the list has changed.
const TAKEN_OVER_TIME: Duration = Duration::from_secs(10);
/// Between two looks at what this router keeps.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// How long the certificates may take to be served.
const SERVED_TIME: Duration = Duration::from_secs(10);

/// The arguments of `join`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Without a router and --fch or --discover, it shows the networks that this host has joined. \
If the network's router does not take the key of NAME, a certificate is asked for from the authority (--ca), which needs \
--digest or --anchor, and a proof such as --code.")]
pub struct JoinArgs {
    /// Router of the network, for example udp://router.example
    #[arg(value_name = "URI", value_parser = str::parse::<RemoteUri>)]
    uri: Option<RemoteUri>,
    /// Name of this host there, below the authority's prefix; without one, this host only fetches
    #[arg(value_parser = parse_name)]
    name: Option<NameBuf>,
    /// Take the router from an answer of FCH (Find Closest Hub): a file, or an http:// URL
    #[arg(long, value_name = "FILE|URL", conflicts_with_all = ["uri", "discover"])]
    fch: Option<String>,
    /// Ask for a router on the multicast faces, as ndn-autoconfig does
    #[arg(long, conflicts_with = "uri")]
    discover: bool,
    /// Name of this host, where --fch or --discover takes the place of the router
    #[arg(long = "as", value_name = "NAME", value_parser = parse_name, conflicts_with = "name")]
    named: Option<NameBuf>,
    /// Prefix that is routed to the network; may be repeated
    #[arg(long = "route", value_name = "PREFIX", default_value = "/", value_parser = namewire_configuration::text::parse_name)]
    routes: Vec<NameBuf>,
    /// Prefix of the authority [default: the name without its last component]
    #[arg(long, value_name = "PREFIX", value_parser = parse_name)]
    ca: Option<NameBuf>,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    proof: ProofArgs,
}

/// The arguments of `leave`.
#[derive(Debug, clap::Args)]
pub struct LeaveArgs {
    /// Router of the network, or this host's name there
    network: String,
}

#[derive(Serialize)]
struct Joined {
    router: String,
    name: Option<String>,
    certificate: Option<String>,
    is_kept: bool,
}

pub(crate) async fn join(global: &Global, args: JoinArgs) -> Result<(), Failure> {
    let client = global.connect().await?;
    let router = match (&args.uri, &args.fch, args.discover) {
        (Some(router), ..) => router.canonical().await?,
        (None, Some(place), _) => remote(&discover::by_fch(place).await.map_err(failed)?)?.canonical().await?,
        (None, None, true) => remote(&discover::on_the_links(&client).await.map_err(failed)?)?.canonical().await?,
        (None, None, false) => return show(global, &client).await,
    };
    let (list, ..) = keeper::of_process().map_err(failed)?;
    let kept_by = socket_of(&client)?;
    let before = list.kept_by(&kept_by).map_err(failed)?.into_iter().find(|network| network.router == router);
    let name = args.name.clone().or_else(|| args.named.clone());
    let anchor = args.trust.anchor.as_deref().map(read_certificate).transpose()?;
    let anchor = anchor.map(|anchor| STANDARD.encode(anchor.certificate().wire()));
    client.use_local_fields().await?;
    let (face_id, is_new_face) = steps::face(&client, &router).await.map_err(failed)?;
    let keeps_face = before.as_ref().map_or(!is_new_face, |before| before.keeps_face);
    let mut network = Network { kept_by, router, name, routes: args.routes.clone(), anchor, keeps_face };
    let mut made = Made { face: is_new_face, ..Made::default() };
    let mut entered = enter(&client, &mut network, &args, face_id, &mut made).await;
    if entered.is_ok() {
        entered = put_into(&list, &network);
    }
    if let Err(failure) = entered {
        made.take_back(&client, &network, face_id).await;
        return Err(failure);
    }
    if let Some(before) = before {
        forget_former(&client, &before, &network, face_id).await;
    }
    let kept = taken_over(&client, &list, &network.router).await;
    print_joined(global, &network, made.certificate, kept)
}

/// What a join has made, which it takes back if it fails.
#[derive(Default)]
struct Made {
    face: bool,
    routes: Vec<NameBuf>,
    /// The identity got a key.
    key: Option<NameBuf>,
    /// With a certificate, the key stays.
    certificate: Option<String>,
}

impl Made {
    async fn take_back(self, client: &Client, network: &Network, face_id: FaceId) {
        steps::remove_routes(client, &self.routes, face_id).await;
        if self.face {
            steps::remove_face(client, face_id).await;
        }
        if let (Some(identity), None) = (self.key, self.certificate)
            && let Ok(chain) = open_key_chain()
            && let Err(error) = chain.remove(identity.as_name())
        {
            eprintln!("namewire: the key that was made for {} stays: {error}", network.router);
        }
    }
}

/// The network takes the place of the entry with the same router.
fn put_into(list: &NetworkList, network: &Network) -> Result<(), Failure> {
    let changed = list.change(|networks| {
        networks.retain(|other| (&other.kept_by, &other.router) != (&network.kept_by, &network.router));
        networks.push(network.clone());
        Ok(())
    });
    changed.map_err(failed)
}

/// Takes back what an entry for the same router had and the new one has not.
async fn forget_former(client: &Client, before: &Network, now: &Network, face_id: FaceId) {
    let gone: Vec<NameBuf> = before.routes.iter().filter(|prefix| !now.routes.contains(prefix)).cloned().collect();
    steps::remove_routes(client, &gone, face_id).await;
    if let Some(name) = before.name.as_ref().filter(|name| now.name.as_ref() != Some(name)) {
        unregister(client, name, face_id).await;
    }
}

/// Takes a name back from the network's router. If its key is gone, that router forgets it by itself.
async fn unregister(client: &Client, name: &NameBuf, face_id: FaceId) {
    let unregistered = match open_key_chain().and_then(|chain| Ok(chain.signer(name.as_name())?)) {
        Ok(signer) => {
            let signing = client.clone().sign_commands_with(signer);
            steps::unregister(&signing, name, face_id).await.map_err(|error| error.to_string())
        }
        Err(failure) => Err(failure.to_string()),
    };
    if let Err(why) = unregistered {
        let minutes = steps::REGISTERED_FOR.as_secs() / 60;
        eprintln!("namewire: the network's router keeps {name} for up to {minutes} minutes: {why}");
    }
}

fn remote(uri: &str) -> Result<RemoteUri, Failure> {
    uri.parse().map_err(|error: String| failed(format!("{uri}: {error}")))
}

/// The Unix socket of the router of this command: that router keeps the network.
fn socket_of(client: &Client) -> Result<PathBuf, Failure> {
    match client.transport() {
        Some(TransportUri::Unix(path)) => Ok(fs::canonicalize(&path).unwrap_or(path)),
        _ => Err(Failure::usage("a network is joined over the Unix socket of the router that is to keep it")),
    }
}

/// Routes and registration, with a certificate if the network's router asks for one.
async fn enter(
    client: &Client,
    network: &mut Network,
    args: &JoinArgs,
    face_id: FaceId,
    made: &mut Made,
) -> Result<(), Failure> {
    // The authority must be asked in this network, whatever other routes say.
    let authority = args.ca.clone().or_else(|| network.name.as_ref().map(|name| name.as_name().parent().to_buf()));
    let authority = authority.filter(|prefix| !prefix.is_empty() && !network.routes.contains(prefix));
    network.routes.extend(authority);
    let before = steps::routes_to(client, face_id).await?;
    let is_new = |prefix: &&NameBuf| !before.contains(&((*prefix).clone(), origin::AUTOCONF));
    made.routes = network.routes.iter().filter(is_new).cloned().collect();
    steps::routes(client, network, face_id).await.map_err(failed)?;
    if network.name.is_none() && args.proof.email.is_none() && !steps::is_alive(client, face_id).await {
        return Err(failed(format!("{} does not answer", network.router)));
    }
    if network.name.is_none() && args.proof.email.is_some() {
        let ca = args.ca.clone().ok_or_else(|| Failure::usage("without a name, --email needs --ca"))?;
        let profile = args.trust.profile(client, &ca).await?;
        network.name = Some(offered_name(client, &profile, &args.proof).await?);
    }
    let Some(name) = network.name.clone() else { return Ok(()) };
    let refused = match register(client, network, &name, face_id, made).await {
        Ok(()) => return Ok(()),
        Err(Refused::Certificate(why)) => why,
        Err(Refused::Other(failure)) => return Err(failure),
    };
    let ca = args.ca.clone().unwrap_or_else(|| name.as_name().parent().to_buf());
    if ca.is_empty() {
        return Err(failed(format!("{refused}\nIt wants another certificate of {name}: name its authority by --ca")));
    }
    eprintln!("namewire: the network's router wants a certificate of {name}; asking the authority of {ca}");
    let profile = args.trust.profile(client, &ca).await?;
    let certificate = get_certificate(client, profile, &name, &args.proof, None).await?;
    made.certificate = Some(certificate.name().to_string());
    match register(client, network, &name, face_id, made).await {
        Ok(()) => Ok(()),
        Err(Refused::Certificate(why)) => {
            Err(failed(format!("{why}\nThe network's router does not trust {} either", certificate.name())))
        }
        Err(Refused::Other(failure)) => Err(failure),
    }
}

enum Refused {
    /// It wants another certificate; in words.
    Certificate(String),
    Other(Failure),
}

/// Registers the name, signed by its key, while its certificates are served to the network's router.
async fn register(
    client: &Client,
    network: &Network,
    name: &NameBuf,
    face_id: FaceId,
    made: &mut Made,
) -> Result<(), Refused> {
    let other = |error: &dyn std::fmt::Display| Refused::Other(failed(error));
    let (_, location, _) = keeper::of_process().map_err(|error| other(&error))?;
    let chain = open_key_chain().map_err(Refused::Other)?;
    // It names the certificate, not the key: routers may remember another certificate of the key.
    let signer = match chain.signer(name.as_name()) {
        Err(KeyChainError::NotFound(_) | KeyChainError::NoKey(_)) => {
            let key = PrivateKey::generate_ecdsa().map_err(|error| other(&error))?;
            chain.add_identity_key(name.as_name(), key, now_ms()).map_err(|error| other(&error))?;
            made.key = Some(name.clone());
            chain.signer(name.as_name())
        }
        signer => signer,
    };
    let signing = client.clone().sign_commands_with(signer.map_err(|error| other(&error))?);
    let key_chain = KeyChainPart { pib_directory: location.pib_directory, names: Some(vec![name.clone()]) };
    let sources = Sources { key_chain: Some(key_chain), ..Sources::default() };
    let (server, serving_client) = (CertificateServer::new(sources, Limits::default()), client.clone());
    let (sender, mut events) = unbounded_channel();
    let serving = tokio::spawn(async move { server.run(&serving_client, |event| drop(sender.send(event))).await });
    let is_settled = async {
        while let Some(event) = events.recv().await {
            if matches!(event, ServerEvent::Settled { .. }) {
                return;
            }
        }
    };
    let _ = timeout(SERVED_TIME, is_settled).await; // the registration says what is missing
    let registered = steps::register(&signing, network, name, face_id).await;
    serving.abort();
    registered.map_err(|error| match error.wants_certificate() {
        true => Refused::Certificate(error.to_string()),
        false => Refused::Other(failed(error)),
    })
}

/// Waits until this router has read the list. `Err`: why it does not keep the network.
async fn taken_over(client: &Client, list: &NetworkList, router: &str) -> Result<(), String> {
    let waiting = async {
        loop {
            match state(client).await {
                Ok(kept) if kept.list != list.path() => {
                    return format!("it keeps the networks in {}", kept.list.display());
                }
                Ok(kept) if kept.has(router) => return String::new(),
                Ok(_) => {}
                Err(why) => return why,
            }
            sleep(LOOK_PAUSE).await;
        }
    };
    match timeout(TAKEN_OVER_TIME, waiting).await {
        Ok(why) if why.is_empty() => Ok(()),
        Ok(why) => Err(why),
        Err(_) => Err("it has not read the list of networks".to_owned()),
    }
}

/// What this router says about the networks that it keeps.
async fn state(client: &Client) -> Result<Kept, String> {
    let name: NameBuf = STATUS_NAME.parse().expect("a name in the source is well-formed");
    match client.express(&InterestBuilder::new(name).must_be_fresh(true)).await {
        Ok(data) => serde_json::from_slice(data.data().content()).map_err(|error| error.to_string()),
        Err(ExpressError::Nack(_) | ExpressError::Timeout(_)) => {
            Err("it is another forwarder, or router.keep_networks is false".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn print_joined(
    global: &Global,
    network: &Network,
    certificate: Option<String>,
    kept: Result<(), String>,
) -> Result<(), Failure> {
    let joined = Joined {
        router: network.router.clone(),
        name: network.name.as_ref().map(ToString::to_string),
        certificate,
        is_kept: kept.is_ok(),
    };
    let text = || {
        let mut text = format!("joined the network of {}\n", joined.router);
        if let Some(certificate) = &joined.certificate {
            text += &format!("  certificate {certificate}\n");
        }
        if let Some(name) = &joined.name {
            text += &format!("  {name} leads here; sign by --identity {name}\n");
        }
        text
    };
    global.output().print(&joined, text)?;
    if let Err(why) = kept {
        eprintln!(
            "namewire: this router does not keep it: {why}. The prefix is forgotten there in {} minutes.",
            steps::REGISTERED_FOR.as_secs() / 60
        );
    }
    Ok(())
}

async fn show(global: &Global, client: &Client) -> Result<(), Failure> {
    let (list, ..) = keeper::of_process().map_err(failed)?;
    let kept = match state(client).await {
        Ok(kept) => kept,
        // Nobody keeps anything where there is nothing to keep.
        Err(_) if list.kept_by(&socket_of(client)?).map_err(failed)?.is_empty() => {
            Kept { list: list.path().to_owned(), problem: None, networks: Vec::new() }
        }
        Err(why) => return Err(failed(format!("the router does not say what it keeps: {why}"))),
    };
    let text = || {
        let heading = ["router", "name", "certificate", "state"].map(str::to_owned).to_vec();
        let rows = kept.networks.iter().map(|network| {
            let state = match &network.problem {
                Some(problem) => problem.clone(),
                None if network.is_joined => "joined".to_owned(),
                None => "joining".to_owned(),
            };
            let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
            vec![network.router.clone(), or_none(&network.name), or_none(&network.certificate), state]
        });
        let table = table(&Vec::from_iter(std::iter::once(heading).chain(rows)), "no network is joined");
        kept.problem.as_ref().map_or(table.clone(), |problem| format!("{table}{problem}\n"))
    };
    Ok(global.output().print(&kept, text)?)
}

pub(crate) async fn leave(global: &Global, args: LeaveArgs) -> Result<(), Failure> {
    let (list, ..) = keeper::of_process().map_err(failed)?;
    let client = global.connect().await?;
    let networks = list.kept_by(&socket_of(&client)?).map_err(failed)?;
    let by_uri = match args.network.parse::<RemoteUri>() {
        Ok(uri) if args.network.contains("://") => Some(uri.canonical().await?),
        _ => None,
    };
    let is_meant = |network: &Network| {
        by_uri.as_ref() == Some(&network.router)
            || network.name.as_ref().is_some_and(|name| name.to_string() == args.network)
    };
    let Some(network) = networks.into_iter().find(is_meant) else {
        let line = format!("this host has not joined {}; `namewire join` shows the networks", args.network);
        return Err(Failure::not_found(line));
    };
    list.change(|networks| {
        networks.retain(|other| *other != network);
        Ok(())
    })
    .map_err(failed)?;
    // The router must not make again what is taken back here.
    let is_kept = async || matches!(state(&client).await, Ok(kept) if kept.has(&network.router));
    let _ = timeout(TAKEN_OVER_TIME, async {
        while is_kept().await {
            sleep(LOOK_PAUSE).await;
        }
    })
    .await;
    client.use_local_fields().await?;
    if let Some(face_id) = steps::find_face(&client, &network.router).await? {
        if let Some(name) = &network.name {
            unregister(&client, name, face_id).await;
        }
        steps::remove_routes(&client, &network.routes, face_id).await;
        // Others may have begun to use the face.
        if !network.keeps_face && steps::routes_to(&client, face_id).await?.is_empty() {
            steps::remove_face(&client, face_id).await;
        }
    }
    let name = network.name.as_ref().map(ToString::to_string);
    let left = Joined { router: network.router, name, certificate: None, is_kept: false };
    Ok(global.output().print(&left, || format!("left the network of {}\n", left.router))?)
}
