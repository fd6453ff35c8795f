//! `namewire route`: list, add and remove routes.

use crate::{
    Failure, Global,
    face_reference::{self, FaceReference},
    name_argument,
    output::table,
    quantity,
};
use namewire_client::RouteOptions;
use namewire_packet::{
    NameBuf,
    nfd::{FaceStatus, RibEntry, origin, route_flags},
};
use serde::Serialize;
use std::{collections::HashMap, time::Duration};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List all routes
    List,
    /// Add a route, or change the cost and flags of one
    Add {
        /// Names the route is for
        #[arg(value_parser = name_argument::parse)]
        prefix: NameBuf,
        /// Face number, or remote URI of a face, which is created if there is none
        #[arg(value_name = "NEXTHOP")]
        next_hop: FaceReference,
        /// Lower is better
        #[arg(long, default_value_t = 0)]
        cost: u64,
        /// Who adds the route: app, autoreg, client, autoconf, nlsr, prefixann, static or a number
        #[arg(long, default_value = "static", value_parser = parse_origin)]
        origin: u64,
        /// Do not use the route for longer prefixes that have routes of their own
        #[arg(long)]
        no_inherit: bool,
        /// Hide the routes of shorter prefixes
        #[arg(long)]
        capture: bool,
        /// Remove the route after so many milliseconds
        #[arg(long, value_name = "MS")]
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
        #[arg(long, default_value = "static", value_parser = parse_origin)]
        origin: u64,
    },
}

const ORIGINS: [(&str, u64); 7] = [
    ("app", origin::APP),
    ("autoreg", origin::AUTOREG),
    ("client", origin::CLIENT),
    ("autoconf", origin::AUTOCONF),
    ("nlsr", origin::NLSR),
    ("prefixann", origin::PREFIX_ANNOUNCEMENT),
    ("static", origin::STATIC),
];

fn parse_origin(text: &str) -> Result<u64, String> {
    match ORIGINS.iter().find(|(word, _)| *word == text) {
        Some((_, code)) => Ok(*code),
        None => text.parse().map_err(|_| {
            let words: Vec<&str> = ORIGINS.iter().map(|(word, _)| *word).collect();
            format!("expected a number or one of {}", words.join(", "))
        }),
    }
}

fn origin_word(code: u64) -> String {
    ORIGINS.iter().find(|(_, known)| *known == code).map_or_else(|| code.to_string(), |(word, _)| (*word).to_owned())
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
}

impl Route {
    fn flags(&self) -> String {
        let words = [(self.child_inherit, "child-inherit"), (self.capture, "capture")];
        let words: Vec<&str> = words.into_iter().filter(|(on, _)| *on).map(|(_, word)| word).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(",") }
    }
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => list(global).await,
        Command::Add { prefix, next_hop, cost, origin, no_inherit, capture, expires } => {
            let options = RouteOptions {
                face_id: None,
                cost,
                origin,
                child_inherit: !no_inherit,
                capture,
                expiration_period_ms: expires,
            };
            add(global, &prefix, &next_hop, options).await
        }
        Command::Remove { prefix, next_hop, origin } => remove(global, &prefix, &next_hop, origin).await,
    }
}

async fn list(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let entries: Vec<RibEntry> = client.status_list("rib", "list").await?;
    let faces: Vec<FaceStatus> = client.status_list("faces", "list").await?;
    let remotes: HashMap<_, _> = faces.into_iter().map(|face| (face.face_id, face.uri)).collect();
    let mut routes: Vec<Route> = Vec::new();
    for entry in &entries {
        routes.extend(entry.routes.iter().map(|route| Route {
            prefix: entry.name.to_string(),
            face_id: route.face_id.0,
            remote_uri: remotes.get(&route.face_id).cloned(),
            origin: origin_word(route.origin),
            cost: route.cost,
            child_inherit: route.flags & route_flags::CHILD_INHERIT != 0,
            capture: route.flags & route_flags::CAPTURE != 0,
            expires_ms: route.expiration_period_ms,
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
                    Some(ms) => format!("in {}", quantity::duration(Duration::from_millis(ms))),
                },
            ]
        }));
        table(&rows, "no routes")
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
    let done = client.register_prefix(prefix, options).await?;
    let flags = done.flags.unwrap_or_default();
    let route = Route {
        prefix: done.name.as_ref().unwrap_or(prefix).to_string(),
        face_id: face_id.0,
        remote_uri: match next_hop {
            FaceReference::Uri(uri) => Some(uri.canonical().await?),
            FaceReference::Id(_) => None,
        },
        origin: origin_word(done.origin.unwrap_or(options.origin)),
        cost: done.cost.unwrap_or(options.cost),
        child_inherit: flags & route_flags::CHILD_INHERIT != 0,
        capture: flags & route_flags::CAPTURE != 0,
        expires_ms: done.expiration_period_ms,
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
    let entries: Vec<RibEntry> = client.status_list("rib", "list").await?;
    let routes = entries.iter().filter(|entry| entry.name == *prefix).flat_map(|entry| &entry.routes);
    let origins: Vec<u64> = routes.filter(|route| route.face_id == face_id).map(|route| route.origin).collect();
    if !origins.contains(&origin) {
        let mut message = format!("no route {prefix} to face {face_id} of origin {}", origin_word(origin));
        if !origins.is_empty() {
            let words: Vec<String> = origins.into_iter().map(origin_word).collect();
            message += &format!("; there is one of origin {}: use --origin", words.join(", "));
        }
        return Err(Failure::not_found(message));
    }
    client.unregister_prefix(prefix, Some(face_id), origin).await?;
    let removed = RemovedRoute { prefix: prefix.to_string(), face_id: face_id.0, origin: origin_word(origin) };
    global.output().print(&removed, || format!("route removed: {prefix} to face {face_id}\n"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_by_word_and_number() {
        assert_eq!(parse_origin("nlsr"), Ok(128));
        assert_eq!(parse_origin("7"), Ok(7));
        assert!(parse_origin("nobody").unwrap_err().contains("autoreg"));
        assert_eq!((origin_word(255), origin_word(7)), ("static".to_owned(), "7".to_owned()));
    }
}
