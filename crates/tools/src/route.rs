//! `namewire route`: list, add and remove routes.

use crate::{
    Failure, Global,
    face_reference::{self, FaceReference},
    name_argument,
    output::table,
    quantity,
};
use namewire_client::RouteOptions;
use namewire_configuration::text::Origin;
use namewire_packet::{
    NameBuf,
    nfd::{FaceStatus, RibEntry, route_flags},
};
use serde::Serialize;
use std::collections::HashMap;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List all routes, or some of them
    List(Filter),
    /// Add a route, or change the cost and flags of one
    Add {
        /// Names the route is for
        #[arg(value_parser = name_argument::parse)]
        prefix: NameBuf,
        /// Face number, or remote URI of a face; a permanent one is created if there is none
        #[arg(value_name = "NEXTHOP")]
        next_hop: FaceReference,
        /// Lower is better
        #[arg(long, default_value_t = 0)]
        cost: u64,
        /// Who adds the route: app, autoreg, client, autoconf, nlsr, prefixann, static or a number
        #[arg(long, default_value = "static")]
        origin: Origin,
        /// Do not use the route for longer prefixes that have their own routes
        #[arg(long)]
        no_inherit: bool,
        /// Hide the routes of shorter prefixes
        #[arg(long)]
        capture: bool,
        /// Remove the route after this time, for example 5min; a number alone is in milliseconds
        #[arg(long, value_name = "TIME", value_parser = quantity::ms_in(0..=u64::MAX))]
        expires: Option<u64>,
    },
    /// Remove a route
    Remove {
        /// Names the route is for
        #[arg(value_parser = name_argument::parse)]
        prefix: NameBuf,
        /// Face number or remote URI
        #[arg(value_name = "NEXTHOP")]
        next_hop: FaceReference,
        /// Who added the route
        #[arg(long, default_value = "static")]
        origin: Origin,
    },
}

/// Which routes are listed: those that meet every condition.
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only routes for this prefix and longer ones
    #[arg(long, value_name = "PREFIX", value_parser = name_argument::parse)]
    under: Option<NameBuf>,
    /// Only routes to this face, by number or remote URI
    #[arg(long, value_name = "FACE")]
    face: Option<FaceReference>,
    /// Only routes that this kind of program added
    #[arg(long)]
    origin: Option<Origin>,
}

#[derive(Serialize)]
struct Route {
    prefix: String,
    face_id: u64,
    remote_uri: Option<String>,
    origin: String,
    cost: u64,
    child_inherit: bool,
    capture: bool,
    expires_ms: Option<u64>,
    /// Another user has a route for this prefix of `/localhost`, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    contested: Option<bool>,
}

impl Route {
    fn flags(&self) -> String {
        let words = [
            (self.child_inherit, "child-inherit"),
            (self.capture, "capture"),
            (self.contested == Some(true), "contested"),
        ];
        let words: Vec<&str> = words.into_iter().filter(|(on, _)| *on).map(|(_, word)| word).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(",") }
    }
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    match command {
        Command::List(filter) => list(global, &filter).await,
        Command::Add { prefix, next_hop, cost, origin, no_inherit, capture, expires } => {
            let options = RouteOptions {
                face_id: None,
                cost,
                origin: origin.0,
                child_inherit: !no_inherit,
                capture,
                expiration_period_ms: expires,
            };
            add(global, &prefix, &next_hop, options).await
        }
        Command::Remove { prefix, next_hop, origin } => remove(global, &prefix, &next_hop, origin.0).await,
    }
}

async fn list(global: &Global, filter: &Filter) -> Result<(), Failure> {
    let client = global.connect().await?;
    let face = match &filter.face {
        None => None,
        Some(FaceReference::Id(id)) => Some(*id),
        Some(reference) => Some(face_reference::require(&client, reference).await?.face_id),
    };
    let entries: Vec<RibEntry> = client.list().await?;
    let faces: Vec<FaceStatus> = client.list().await?;
    let remotes: HashMap<_, _> = faces.into_iter().map(|face| (face.face_id, face.uri)).collect();
    let mut routes: Vec<Route> = Vec::new();
    let is_under = |entry: &&RibEntry| {
        filter.under.as_ref().is_none_or(|prefix| prefix.as_name().is_prefix_of(&entry.name.as_name()))
    };
    let is_wanted = |route: &&namewire_packet::nfd::Route| {
        face.is_none_or(|face| face == route.face_id)
            && filter.origin.as_ref().is_none_or(|origin| origin.0 == route.origin)
    };
    for entry in entries.iter().filter(is_under) {
        routes.extend(entry.routes.iter().filter(is_wanted).map(|route| Route {
            prefix: entry.name.to_string(),
            face_id: route.face_id.0,
            remote_uri: remotes.get(&route.face_id).cloned(),
            origin: Origin(route.origin).to_string(),
            cost: route.cost,
            child_inherit: route.flags & route_flags::CHILD_INHERIT != 0,
            capture: route.flags & route_flags::CAPTURE != 0,
            expires_ms: route.expiration_period_ms,
            contested: Some(route.is_contested == Some(true)),
        }));
    }
    global.output().print(&routes, || {
        let heading = ["PREFIX", "NEXTHOP", "REMOTE", "ORIGIN", "COST", "FLAGS", "EXPIRES"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(routes.iter().map(|route| {
            vec![
                route.prefix.clone(),
                route.face_id.to_string(),
                route.remote_uri.clone().unwrap_or_else(|| "-".to_owned()),
                route.origin.clone(),
                route.cost.to_string(),
                route.flags(),
                match route.expires_ms {
                    None => "never".to_owned(),
                    Some(ms) => format!("in {}", quantity::ms(ms)),
                },
            ]
        }));
        let contested = match routes.iter().any(|route| route.contested == Some(true)) {
            true => "contested: another user of this machine has a route for the prefix, too; either may answer\n",
            false => "",
        };
        table(&rows, "no routes") + contested
    })?;
    Ok(())
}

async fn add(
    global: &Global,
    prefix: &NameBuf,
    next_hop: &FaceReference,
    mut options: RouteOptions,
) -> Result<(), Failure> {
    let client = global.connect().await?;
    let (face_id, is_new) = face_reference::find_or_create(&client, next_hop).await?;
    options.face_id = Some(face_id);
    let done = client.register_prefix_with(prefix, options).await?;
    let flags = done.flags.unwrap_or_default();
    let route = Route {
        prefix: done.name.as_ref().unwrap_or(prefix).to_string(),
        face_id: face_id.0,
        remote_uri: match next_hop {
            FaceReference::Uri(uri) => Some(uri.canonical().await?),
            FaceReference::Id(_) => None,
        },
        origin: Origin(done.origin.unwrap_or(options.origin)).to_string(),
        cost: done.cost.unwrap_or(options.cost),
        child_inherit: flags & route_flags::CHILD_INHERIT != 0,
        capture: flags & route_flags::CAPTURE != 0,
        expires_ms: done.expiration_period_ms,
        contested: None,
    };
    global.output().print(&route, || {
        let face = if is_new { "new face" } else { "face" };
        let remote = route.remote_uri.as_ref().map(|uri| format!(" ({uri})")).unwrap_or_default();
        format!("route added: {} to {face} {}{remote}, cost {}\n", route.prefix, route.face_id, route.cost)
    })?;
    Ok(())
}

#[derive(Serialize)]
struct RemovedRoute {
    prefix: String,
    face_id: u64,
    origin: String,
}

async fn remove(global: &Global, prefix: &NameBuf, next_hop: &FaceReference, origin: u64) -> Result<(), Failure> {
    let client = global.connect().await?;
    let face_id = match next_hop {
        FaceReference::Id(id) => *id,
        FaceReference::Uri(_) => face_reference::require(&client, next_hop).await?.face_id,
    };
    // The command succeeds for routes that do not exist, so look first.
    let entries: Vec<RibEntry> = client.list().await?;
    let routes = entries.iter().filter(|entry| entry.name == *prefix).flat_map(|entry| &entry.routes);
    let origins: Vec<u64> = routes.filter(|route| route.face_id == face_id).map(|route| route.origin).collect();
    if !origins.contains(&origin) {
        let mut message = format!("no route {prefix} to face {face_id} of origin {}", Origin(origin));
        if !origins.is_empty() {
            let words: Vec<String> = origins.into_iter().map(|origin| Origin(origin).to_string()).collect();
            message += &format!("; there is one of origin {}: use --origin", words.join(", "));
        }
        return Err(Failure::not_found(message));
    }
    client.unregister_prefix_with(prefix, Some(face_id), origin).await?;
    let removed = RemovedRoute { prefix: prefix.to_string(), face_id: face_id.0, origin: Origin(origin).to_string() };
    global.output().print(&removed, || format!("route removed: {prefix} to face {face_id}\n"))?;
    Ok(())
}
