//! `namewire explain NAME`: what would the forwarder do with an Interest for this name now?
//!
//! Everything comes from the datasets that any NFD-like forwarder has: routes, next hops, strategies and faces. So the
//! answer is about the tables, and a packet may still find its Data in the Content Store, or meet another that is
//! pending. The four datasets are fetched one after the other; a change between them may show.

use crate::{ExitCode, Failure, Global, name_argument};
use namewire_client::Client;
use namewire_configuration::text::Origin;
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{FaceScope, FaceStatus, FibEntry, LinkType, RibEntry, StrategyChoice, route_flags},
};
use serde::Serialize;
use std::fmt::Write as _;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the Interest
    #[arg(value_parser = name_argument::parse)]
    name: NameBuf,
    /// Face through which it would come; it is not sent back there
    #[arg(long, value_name = "FACE")]
    from: Option<u64>,
}

/// What the tables say of a name.
#[derive(Serialize)]
struct Explanation {
    name: String,
    strategy: Option<Choice>,
    /// The prefix in the FIB that applies, if there is one.
    prefix: Option<String>,
    next_hops: Vec<NextHop>,
    /// Routes of that prefix and of shorter ones, from which the next hops come.
    routes: Vec<Route>,
    /// In words.
    outcome: String,
    hints: Vec<String>,
}

#[derive(Serialize)]
struct Choice {
    prefix: String,
    strategy: String,
}

#[derive(Serialize)]
struct NextHop {
    face_id: u64,
    cost: u64,
    remote_uri: Option<String>,
    local_uri: Option<String>,
    /// Why no Interest would go there.
    excluded: Option<String>,
}

#[derive(Serialize)]
struct Route {
    prefix: String,
    face_id: u64,
    origin: String,
    cost: u64,
    inherited: bool,
    captures: bool,
}

/// The datasets of a forwarder.
struct Tables {
    fib: Vec<FibEntry>,
    rib: Vec<RibEntry>,
    choices: Vec<StrategyChoice>,
    faces: Vec<FaceStatus>,
}

impl Tables {
    async fn fetch(client: &Client) -> Result<Self, Failure> {
        Ok(Tables {
            fib: client.status_list("fib", "list").await?,
            rib: client.status_list("rib", "list").await?,
            choices: client.status_list("strategy-choice", "list").await?,
            faces: client.status_list("faces", "list").await?,
        })
    }

    fn face(&self, face: FaceId) -> Option<&FaceStatus> {
        self.faces.iter().find(|status| status.face_id == face)
    }

    fn explain(&self, name: &NameBuf, from: Option<FaceId>) -> Explanation {
        let longest = |prefix: &&NameBuf| prefix.as_name().len();
        let covers = |prefix: &&NameBuf| prefix.as_name().is_prefix_of(&name.as_name());
        let choice =
            self.choices.iter().filter(|choice| covers(&&choice.name)).max_by_key(|choice| longest(&&choice.name));
        let entry = self.fib.iter().filter(|entry| covers(&&entry.name)).max_by_key(|entry| longest(&&entry.name));
        let mut next_hops: Vec<NextHop> = entry
            .map(|entry| &entry.next_hops[..])
            .unwrap_or_default()
            .iter()
            .map(|hop| self.next_hop(name, from, hop.face_id, hop.cost))
            .collect();
        next_hops.sort_by_key(|hop| (hop.excluded.is_some(), hop.cost));
        let routes = entry.map(|entry| self.routes_of(&entry.name)).unwrap_or_default();
        let mut explanation = Explanation {
            name: name.to_string(),
            strategy: choice
                .map(|choice| Choice { prefix: choice.name.to_string(), strategy: choice.strategy.to_string() }),
            prefix: entry.map(|entry| entry.name.to_string()),
            next_hops,
            routes,
            outcome: String::new(),
            hints: Vec::new(),
        };
        self.conclude(name, &mut explanation);
        explanation
    }

    fn next_hop(&self, name: &NameBuf, from: Option<FaceId>, face: FaceId, cost: u64) -> NextHop {
        let status = self.face(face);
        let is_of_host = first_is(name, b"localhost");
        let excluded = match status {
            None => Some("the face is gone".to_owned()),
            // Peers on an ad hoc link may not hear each other, so an Interest may go back there.
            Some(status) if from == Some(face) && status.link_type != LinkType::AdHoc => {
                Some("the Interest came from there".to_owned())
            }
            Some(status) if is_of_host && status.face_scope == FaceScope::NonLocal => {
                Some("names under /localhost stay on this machine".to_owned())
            }
            Some(_) => None,
        };
        NextHop {
            face_id: face.0,
            cost,
            remote_uri: status.map(|status| status.uri.clone()),
            local_uri: status.map(|status| status.local_uri.clone()),
            excluded,
        }
    }

    /// The routes of a prefix, and those of shorter prefixes that it inherits.
    fn routes_of(&self, prefix: &NameBuf) -> Vec<Route> {
        let covers = |entry: &&RibEntry| entry.name.as_name().is_prefix_of(&prefix.as_name());
        let captures = |entry: &&RibEntry| entry.routes.iter().any(|route| route.flags & route_flags::CAPTURE != 0);
        // Routes that capture hide those of shorter prefixes.
        let hidden_below =
            self.rib.iter().filter(covers).filter(captures).map(|entry| entry.name.as_name().len()).max();
        let is_seen = |entry: &&RibEntry| hidden_below.is_none_or(|least| entry.name.as_name().len() >= least);
        let of_prefix = self.rib.iter().filter(covers).filter(is_seen);
        let routes = of_prefix.flat_map(|entry| {
            entry
                .routes
                .iter()
                .map(move |route| (entry, route))
                .filter(|(entry, route)| entry.name == *prefix || route.flags & route_flags::CHILD_INHERIT != 0)
        });
        let routes = routes.map(|(entry, route)| Route {
            prefix: entry.name.to_string(),
            face_id: route.face_id.0,
            origin: Origin(route.origin).to_string(),
            cost: route.cost,
            inherited: entry.name != *prefix,
            captures: route.flags & route_flags::CAPTURE != 0,
        });
        routes.collect()
    }

    /// Says what happens, and what the user can do about it.
    fn conclude(&self, name: &NameBuf, explanation: &mut Explanation) {
        let usable = explanation.next_hops.iter().filter(|hop| hop.excluded.is_none()).count();
        let strategy = explanation.strategy.as_ref().map_or("no strategy", |choice| short(&choice.strategy));
        explanation.outcome = match (&explanation.prefix, usable) {
            (None, _) => "no route covers the name: a Nack (NoRoute) goes back".to_owned(),
            (Some(prefix), 0) => format!("{prefix} has no next hop to which it may go: a Nack (NoRoute) goes back"),
            (Some(prefix), 1) => format!("it goes to the one next hop of {prefix}, by {strategy}"),
            (Some(prefix), usable) => format!("{strategy} chooses among {usable} next hops of {prefix}"),
        };
        if usable > 0 {
            return;
        }
        let first = name.as_name().prefix(1);
        let near: Vec<String> = self
            .fib
            .iter()
            .filter(|entry| !entry.name.as_name().is_empty() && first.is_prefix_of(&entry.name.as_name()))
            .take(5)
            .map(|entry| entry.name.to_string())
            .collect();
        if !near.is_empty() {
            explanation.hints.push(format!("routes nearby: {}", near.join(", ")));
        }
        explanation
            .hints
            .push(format!("namewire route add {name} FACE makes a route; namewire face list shows the faces"));
    }
}

fn first_is(name: &NameBuf, component: &[u8]) -> bool {
    name.as_name().components().next().is_some_and(|first| first.value == component)
}

/// The word of a strategy's name: `best-route` of `/localhost/nfd/strategy/best-route/v=5`.
fn short(strategy: &str) -> &str {
    strategy.trim_start_matches("/localhost/nfd/strategy/").split('/').next().unwrap_or(strategy)
}

impl Explanation {
    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.outcome);
        if let Some(choice) = &self.strategy {
            let _ = writeln!(text, "  strategy  {} (chosen for {})", short(&choice.strategy), choice.prefix);
        }
        for hop in &self.next_hops {
            let remote = hop.remote_uri.as_deref().unwrap_or("-");
            let why = hop.excluded.as_ref().map(|why| format!("; not used: {why}")).unwrap_or_default();
            let _ = writeln!(text, "  next hop  face {} {remote}, cost {}{why}", hop.face_id, hop.cost);
        }
        for route in &self.routes {
            let inherited = if route.inherited { ", inherited" } else { "" };
            let captures = if route.captures { ", hides shorter prefixes" } else { "" };
            let Route { prefix, face_id, origin, cost, .. } = route;
            let _ =
                writeln!(text, "  route     {prefix} to face {face_id}, by {origin}, cost {cost}{inherited}{captures}");
        }
        for hint in &self.hints {
            let _ = writeln!(text, "  hint      {hint}");
        }
        text
    }
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let client = global.connect().await?;
    let tables = Tables::fetch(&client).await?;
    let from = args.from.map(FaceId);
    if let Some(face) = from.filter(|face| tables.face(*face).is_none()) {
        return Err(Failure::new(ExitCode::NotFound, format!("there is no face {face}")));
    }
    let explanation = tables.explain(&args.name, from);
    global.output().print(&explanation, || explanation.text())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::nfd::{FaceCounters, FacePersistency, NextHopRecord, Route as RibRoute};

    fn name(text: &str) -> NameBuf {
        text.parse().expect("a name")
    }

    fn tables() -> Tables {
        let face = |id: u64, uri: &str, face_scope| FaceStatus {
            face_id: FaceId(id),
            uri: uri.to_owned(),
            face_scope,
            local_uri: String::new(),
            expiration_period_ms: None,
            face_persistency: FacePersistency::Permanent,
            link_type: LinkType::PointToPoint,
            base_congestion_marking_interval_ns: None,
            default_congestion_threshold_bytes: None,
            mtu: None,
            counters: FaceCounters::default(),
            flags: 0,
            port: None,
        };
        let entry = |prefix: &str, hops: &[(u64, u64)]| FibEntry {
            name: name(prefix),
            next_hops: hops.iter().map(|&(face, cost)| NextHopRecord { face_id: FaceId(face), cost }).collect(),
        };
        let route = |face: u64, origin, flags| RibRoute {
            face_id: FaceId(face),
            origin,
            cost: 10,
            flags,
            expiration_period_ms: None,
        };
        Tables {
            fib: vec![
                entry("/a", &[(300, 10)]),
                entry("/a/b", &[(300, 10), (301, 5), (399, 0)]),
                entry("/localhost/x", &[(300, 0), (302, 1)]),
            ],
            rib: vec![
                RibEntry { name: name("/a"), routes: vec![route(300, 255, route_flags::CHILD_INHERIT)] },
                RibEntry { name: name("/a/b"), routes: vec![route(301, 0, 0)] },
                RibEntry { name: name("/c"), routes: vec![route(300, 255, route_flags::CHILD_INHERIT)] },
                RibEntry { name: name("/c/d"), routes: vec![route(301, 0, route_flags::CAPTURE)] },
            ],
            choices: vec![
                StrategyChoice { name: name("/"), strategy: name("/localhost/nfd/strategy/best-route/v=5") },
                StrategyChoice { name: name("/a/b"), strategy: name("/localhost/nfd/strategy/multicast/v=4") },
            ],
            faces: vec![
                face(300, "udp4://192.0.2.1:6363", FaceScope::NonLocal),
                face(301, "udp4://192.0.2.2:6363", FaceScope::NonLocal),
                face(302, "fd://17", FaceScope::Local),
            ],
        }
    }

    #[test]
    fn the_longest_prefix_and_its_strategy_apply() {
        let explanation = tables().explain(&name("/a/b/c"), None);
        assert_eq!(explanation.prefix.as_deref(), Some("/a/b"));
        assert_eq!(explanation.outcome, "multicast chooses among 2 next hops of /a/b");
        let hops: Vec<(u64, Option<&str>)> =
            explanation.next_hops.iter().map(|hop| (hop.face_id, hop.excluded.as_deref())).collect();
        assert_eq!(hops, [(301, None), (300, None), (399, Some("the face is gone"))]);
        let routes: Vec<(&str, &str, bool, bool)> = explanation
            .routes
            .iter()
            .map(|route| (&*route.prefix, &*route.origin, route.inherited, route.captures))
            .collect();
        assert_eq!(routes, [("/a", "static", true, false), ("/a/b", "app", false, false)]);
        let captured = tables().routes_of(&name("/c/d"));
        assert_eq!(captured.iter().map(|route| &*route.prefix).collect::<Vec<_>>(), ["/c/d"]);
        assert!(explanation.text().contains("  route     /a to face 300, by static, cost 10, inherited\n"));
    }

    #[test]
    fn without_a_usable_next_hop_it_says_why_and_what_to_do() {
        let nothing = tables().explain(&name("/z"), None);
        assert_eq!(nothing.outcome, "no route covers the name: a Nack (NoRoute) goes back");
        assert_eq!(nothing.hints.len(), 1, "{:?}", nothing.hints);
        let back = tables().explain(&name("/a/z"), Some(FaceId(300)));
        assert_eq!(back.outcome, "/a has no next hop to which it may go: a Nack (NoRoute) goes back");
        assert_eq!(back.next_hops[0].excluded.as_deref(), Some("the Interest came from there"));
        let mut ad_hoc = tables();
        ad_hoc.faces[0].link_type = LinkType::AdHoc;
        assert_eq!(ad_hoc.explain(&name("/a/z"), Some(FaceId(300))).next_hops[0].excluded, None);
        assert_eq!(back.hints[0], "routes nearby: /a, /a/b");
        let local = tables().explain(&name("/localhost/x"), None);
        assert_eq!(local.outcome, "it goes to the one next hop of /localhost/x, by best-route");
        assert_eq!(local.next_hops[1].excluded.as_deref(), Some("names under /localhost stay on this machine"));
    }
}
