//! Explanation: what would the forwarder do with an Interest for a name, and why?
//!
//! It is made from datasets. Any NFD-like forwarder has some of them (routes, next hops, strategies, faces). Only
//! Namewire has the others: the pending Interests and stored Data of workers, the next hops in their FIB, and how faces
//! have answered. `namewire explain` fetches the datasets from a forwarder; the observer's page gets them from the
//! control thread. So both give the same answer.
//!
//! The dataset `fib/list` has the FIB entries that follow from the routes. A FIB of a lossy design may send a name
//! without a route to a wrong next hop. So the explanation uses the entry that a worker found in its table, and
//! explains a difference from the dataset.

use namewire_packet::{
    FaceId, NameBuf,
    nfd::{
        FaceHealth, FaceScope, FaceState, FaceStatus, FibEntry, FibLook, FibUsage, LinkType, NameLook, NextHopRecord,
        PendingLook, RibEntry, StoredLook, StrategyChoice, origin, route_flags,
    },
};
use serde::Serialize;
use std::collections::BTreeSet;

/// What the tables say of a name.
#[derive(Serialize)]
pub struct Explanation {
    /// The name.
    pub name: String,
    /// The strategy choice that applies.
    pub strategy: Option<StrategyChoice>,
    /// The prefix in the FIB that applies, if there is one.
    pub prefix: Option<String>,
    /// The FIB is lossy, and takes the name for one under another prefix: the next hops are those of that one.
    pub mistaken: bool,
    /// The next hops, usable ones first.
    pub next_hops: Vec<NextHop>,
    /// Routes of that prefix and of shorter ones, from which the next hops come.
    pub routes: Vec<Route>,
    /// The worker that such Interests go to; `None` if the forwarder does not say.
    pub worker: Option<u64>,
    /// Pending Interests of this name.
    pub pending: Vec<PendingLook>,
    /// Data in the Content Store that answers this name, or this name with CanBePrefix.
    pub stored: Vec<Stored>,
    /// In words.
    pub outcome: String,
    /// What the user can do about it.
    pub hints: Vec<String>,
}

/// A next hop.
#[derive(Serialize)]
pub struct NextHop {
    /// Its face.
    pub face_id: u64,
    /// Lower is better.
    pub cost: u64,
    /// Where the face leads; `None` if it is gone.
    pub remote_uri: Option<String>,
    /// Its local end.
    pub local_uri: Option<String>,
    /// Why no Interest would go there.
    pub excluded: Option<String>,
    /// The strategy would choose it for a new Interest now.
    pub is_chosen: bool,
    /// The strategy avoids it, because earlier Interests got no answer there.
    pub is_silent: bool,
    /// How its peer answered so far.
    pub answers: Option<Answers>,
}

/// How a face has answered.
#[derive(Serialize)]
pub struct Answers {
    /// Data; estimated from a sample under load.
    pub answered: u64,
    /// Interests that expired.
    pub unanswered: u64,
    /// Half of the Data came within this time, in microseconds.
    pub median_us: Option<u64>,
}

/// Data in the Content Store.
#[derive(Serialize)]
pub struct Stored {
    /// Its name, size and freshness.
    #[serde(flatten)]
    pub data: StoredLook,
    /// An Interest gets it only with CanBePrefix.
    pub needs_can_be_prefix: bool,
}

/// A registered route.
#[derive(Serialize)]
pub struct Route {
    /// Its prefix.
    pub prefix: String,
    /// Its next hop.
    pub face_id: u64,
    /// Who registered it.
    pub origin: String,
    /// Lower is better.
    pub cost: u64,
    /// It is of a shorter prefix.
    pub inherited: bool,
    /// It hides routes of shorter prefixes.
    pub captures: bool,
}

/// Why a next hop is not used now.
const LINK_DOWN: &str = "its link is down";

/// The datasets of a forwarder.
pub struct Tables {
    /// `fib/list`, or the part of it that concerns the name.
    pub fib: Vec<FibEntry>,
    /// `rib/list`, likewise.
    pub rib: Vec<RibEntry>,
    /// `strategy-choice/list`, likewise.
    pub choices: Vec<StrategyChoice>,
    /// `faces/list`, at least the next hops.
    pub faces: Vec<FaceStatus>,
    /// `faces/health`, of our router only.
    pub health: Vec<FaceHealth>,
    /// `status/name/<name>`, of our router only.
    pub looks: Vec<NameLook>,
    /// `fib/usage`, of our router only.
    pub fib_usage: Option<FibUsage>,
}

impl Tables {
    /// The face of this number.
    pub fn face(&self, face: FaceId) -> Option<&FaceStatus> {
        self.faces.iter().find(|status| status.face_id == face)
    }

    /// What the tables say of `name`, for an Interest that comes from this face.
    pub fn explain(&self, name: &NameBuf, from: Option<FaceId>) -> Explanation {
        let longest = |prefix: &&NameBuf| prefix.as_name().len();
        let covers = |prefix: &&NameBuf| prefix.as_name().is_prefix_of(&name.as_name());
        let choice =
            self.choices.iter().filter(|choice| covers(&&choice.name)).max_by_key(|choice| longest(&&choice.name));
        let entry = self.fib.iter().filter(|entry| covers(&&entry.name)).max_by_key(|entry| longest(&&entry.name));
        let of_entry = entry.map(|entry| &entry.next_hops[..]).unwrap_or_default();
        let mistaken_for = self.lossy_answer(of_entry);
        let mut next_hops: Vec<NextHop> = mistaken_for
            .unwrap_or(of_entry)
            .iter()
            .map(|hop| self.next_hop(name, from, hop.face_id, hop.cost))
            .collect();
        next_hops.sort_by_key(|hop| (hop.excluded.is_some(), hop.cost));
        let entry = entry.filter(|_| mistaken_for.is_none());
        let routes = entry.map(|entry| self.routes_of(&entry.name)).unwrap_or_default();
        let found = self.looks.iter().find_map(|look| look.fib.as_ref()).map(|found| &found.strategy);
        let in_force = |choice| found.filter(|found| !found.is_empty()).unwrap_or(choice);
        let mut explanation = Explanation {
            name: name.to_string(),
            strategy: choice.map(|choice| StrategyChoice {
                name: choice.name.clone(),
                strategy: in_force(&choice.strategy).clone(),
            }),
            prefix: entry.map(|entry| entry.name.to_string()),
            mistaken: mistaken_for.is_some(),
            next_hops,
            routes,
            worker: self.looks.iter().find(|look| look.is_owner).map(|look| look.worker),
            pending: self.looks.iter().flat_map(|look| &look.pending).cloned().collect(),
            stored: self.looks.iter().flat_map(Stored::of).collect(),
            outcome: String::new(),
            hints: Vec::new(),
        };
        self.conclude(name, &mut explanation);
        explanation
    }

    /// What the table of the worker leads to, if that is lossy and something else than the routes make of it. Other
    /// differences are changes between two datasets.
    fn lossy_answer(&self, of_entry: &[NextHopRecord]) -> Option<&[NextHopRecord]> {
        let FibLook { next_hops, .. } = self.looks.iter().find_map(|look| look.fib.as_ref())?;
        let is_lossy = self.fib_usage.as_ref().is_some_and(|usage| usage.is_lossy);
        // The list leaves out faces that are gone.
        let present = |hops: &[NextHopRecord]| {
            let present = hops.iter().filter(|hop| self.face(hop.face_id).is_some());
            present.map(|hop| (hop.cost, hop.face_id)).collect::<BTreeSet<_>>()
        };
        (is_lossy && present(next_hops) != present(of_entry)).then_some(next_hops)
    }

    fn next_hop(&self, name: &NameBuf, from: Option<FaceId>, face: FaceId, cost: u64) -> NextHop {
        let status = self.face(face);
        let look = self.looks.iter().find_map(|look| look.fib.as_ref());
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
            Some(status) if status.state == Some(FaceState::Down) => Some(LINK_DOWN.to_owned()),
            Some(_) => None,
        };
        NextHop {
            face_id: face.0,
            cost,
            remote_uri: status.map(|status| status.uri.clone()),
            local_uri: status.map(|status| status.local_uri.clone()),
            excluded,
            is_chosen: look.is_some_and(|look| look.chosen.contains(&face)),
            is_silent: look.is_some_and(|look| look.silent.contains(&face)),
            answers: self.health.iter().find(|health| health.face == face).and_then(Answers::of),
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
            origin: origin::name(route.origin).map_or_else(|| route.origin.to_string(), str::to_owned),
            cost: route.cost,
            inherited: entry.name != *prefix,
            captures: route.flags & route_flags::CAPTURE != 0,
        });
        routes.collect()
    }

    /// Says what happens, and what the user can do about it.
    fn conclude(&self, name: &NameBuf, explanation: &mut Explanation) {
        if let Some(stored) = explanation.stored.iter().find(|stored| !stored.needs_can_be_prefix) {
            explanation.outcome = match stored.data.fresh_ms {
                0 => "stored Data answers it, unless it must be fresh".to_owned(),
                fresh_ms => format!("stored Data answers it; it is fresh for {} ms", fresh_ms),
            };
            return;
        }
        let usable = explanation.next_hops.iter().filter(|hop| hop.excluded.is_none()).count();
        let waits = explanation.next_hops.iter().any(|hop| hop.excluded.as_deref() == Some(LINK_DOWN));
        let strategy =
            explanation.strategy.as_ref().map_or_else(|| "no strategy".to_owned(), |choice| short(&choice.strategy));
        let strategy = &*strategy;
        let design = self.fib_usage.as_ref().filter(|usage| usage.is_lossy).map(|usage| &*usage.design);
        let other = design.map(|design| format!("another route (the FIB design {design} is lossy)"));
        let prefix = if explanation.mistaken { &other } else { &explanation.prefix };
        explanation.outcome = match (prefix, usable) {
            (None, _) => "no route covers the name: a Nack (NoRoute) goes back".to_owned(),
            (Some(prefix), 0) if waits => format!("the links of {prefix} are down: the Interest waits for one of them"),
            (Some(prefix), 0) => format!("{prefix} has no next hop to which it may go: a Nack (NoRoute) goes back"),
            (Some(prefix), 1) => format!("it goes to the one next hop of {prefix}, by {strategy}"),
            (Some(prefix), usable) => self.choice_among(strategy, usable, prefix, &explanation.next_hops),
        };
        if let Some(design) = design.filter(|_| !self.is_covered(name)) {
            explanation.hints.push(format!(
                "no route but perhaps the default covers the name: the FIB design {design} may take it for a name under \
                 any other route, and another way after each change of routes"
            ));
        }
        self.hint_at_silence(strategy, explanation);
        if usable > 0 || waits {
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
            .push(format!("namewire route add {name} FACE makes a route; namewire route list shows all routes"));
    }

    /// Whether a route other than the default covers the name.
    fn is_covered(&self, name: &NameBuf) -> bool {
        let covers = |entry: &FibEntry| !entry.name.is_empty() && entry.name.as_name().is_prefix_of(&name.as_name());
        self.fib.iter().any(covers)
    }

    /// What a strategy does with several next hops.
    fn choice_among(&self, strategy: &str, usable: usize, prefix: &str, hops: &[NextHop]) -> String {
        let mut candidates = hops.iter().filter(|hop| hop.excluded.is_none());
        let mut chosen: Vec<u64> = candidates.clone().filter(|hop| hop.is_chosen).map(|hop| hop.face_id).collect();
        let cheapest = candidates.next();
        if chosen.is_empty() && strategy == "best-route" {
            chosen.extend(cheapest.map(|hop| hop.face_id)); // a forwarder that does not tell, such as NFD
        }
        let (Some(cheapest), [face]) = (cheapest, &chosen[..]) else {
            return match strategy {
                "multicast" => format!("it goes to all {usable} next hops of {prefix}, by multicast"),
                _ => format!("{strategy} chooses among {usable} next hops of {prefix}, by how they have answered"),
            };
        };
        let why = match (cheapest.face_id == *face, cheapest.is_silent) {
            (true, true) => format!("of {usable} next hops of {prefix}, all silent, the cheapest"),
            (true, false) => format!("the cheapest of {usable} next hops of {prefix}"),
            (false, true) => format!("because face {}, the cheapest of {prefix}, is silent", cheapest.face_id),
            (false, false) => format!("the best of {usable} next hops of {prefix} by how they have answered"),
        };
        format!("it goes to face {face}, {why} ({strategy})")
    }

    /// A next hop that has never answered is what a user should look at first.
    fn hint_at_silence(&self, strategy: &str, explanation: &mut Explanation) {
        let is_silent = |hop: &&NextHop| {
            let never = |answers: &Answers| answers.answered == 0 && answers.unanswered > 0;
            hop.excluded.is_none() && hop.answers.as_ref().is_some_and(never)
        };
        for hop in explanation.next_hops.iter().filter(is_silent) {
            let others = explanation.next_hops.len() > 1 && strategy != "asf";
            let asf = if others { "; the strategy asf prefers next hops that answer" } else { "" };
            explanation.hints.push(format!("face {} has not answered a single Interest{asf}", hop.face_id));
        }
    }
}

fn first_is(name: &NameBuf, component: &[u8]) -> bool {
    name.as_name().components().next().is_some_and(|first| first.value == component)
}

/// The word of a strategy's name: `best-route` of `/localhost/nfd/strategy/best-route/v=5`.
pub fn short(strategy: &NameBuf) -> String {
    let whole = strategy.to_string();
    whole.trim_start_matches("/localhost/nfd/strategy/").split('/').next().unwrap_or(&whole).to_owned()
}

impl Answers {
    fn of(health: &FaceHealth) -> Option<Self> {
        let &FaceHealth { answered, unanswered, median_us, .. } = health;
        (answered + unanswered > 0).then_some(Answers { answered, unanswered, median_us })
    }
}

impl Stored {
    fn of(look: &NameLook) -> impl Iterator<Item = Self> {
        let stored = |data: &StoredLook, needs_can_be_prefix| Stored { data: data.clone(), needs_can_be_prefix };
        let by_name = look.stored.iter().map(move |data| stored(data, false));
        by_name.chain(look.stored_under.iter().map(move |data| stored(data, true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::nfd::{FaceCounters, FacePersistency, NextHopRecord, Route as RibRoute, UpstreamLook};

    fn name(text: &str) -> NameBuf {
        text.parse().expect("a name")
    }

    fn face(id: u64, uri: &str, face_scope: FaceScope) -> FaceStatus {
        FaceStatus {
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
            state: Some(FaceState::Up),
            path_mtu: None,
            link: Default::default(),
        }
    }

    fn tables() -> Tables {
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
            is_contested: None,
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
            health: vec![FaceHealth {
                face: FaceId(301),
                since_ms: 0,
                answered: 9,
                unanswered: 1,
                last_us: Some(500),
                median_us: Some(1500),
                p99_us: None,
                recent: None,
            }],
            looks: Vec::new(),
            fib_usage: None,
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
        assert_eq!(explanation.outcome, "it goes to all 2 next hops of /a/b, by multicast");
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
        let mut dead = tables();
        dead.faces[0].state = Some(FaceState::Down);
        let waiting = dead.explain(&name("/a/z"), None);
        assert_eq!(waiting.outcome, "the links of /a are down: the Interest waits for one of them");
        assert!(waiting.hints.is_empty(), "the route is there: {:?}", waiting.hints);
        let mut silent = tables();
        silent.health[0].answered = 0;
        let hint = &silent.explain(&name("/a/b/c"), None).hints[0];
        assert!(hint.starts_with("face 301 has not answered a single Interest; the strategy asf"), "{hint}");
        let local = tables().explain(&name("/localhost/x"), None);
        assert_eq!(local.outcome, "it goes to the one next hop of /localhost/x, by best-route");
        assert_eq!(local.next_hops[1].excluded.as_deref(), Some("names under /localhost stay on this machine"));
    }

    /// The story: `explain` named the cheapest next hop, while the strategy used another one.
    #[test]
    fn the_strategy_says_which_next_hop_it_takes_and_why_not_the_cheapest() {
        let told = |chosen: u64, silent: &[u64]| {
            let hop = |face, cost| NextHopRecord { face_id: FaceId(face), cost };
            let next_hops = vec![hop(301, 5), hop(300, 10)];
            let silent = silent.iter().map(|face| FaceId(*face)).collect();
            let fib =
                FibLook { next_hops: next_hops.clone(), chosen: vec![FaceId(chosen)], silent, ..FibLook::default() };
            let looks = vec![NameLook { is_owner: true, fib: Some(fib), ..NameLook::default() }];
            let entry = FibEntry { name: name("/a"), next_hops };
            Tables { looks, fib: vec![entry], ..tables() }.explain(&name("/a/z"), None).outcome
        };
        assert_eq!(told(301, &[]), "it goes to face 301, the cheapest of 2 next hops of /a (best-route)");
        assert_eq!(
            told(300, &[301]),
            "it goes to face 300, because face 301, the cheapest of /a, is silent (best-route)"
        );
        assert_eq!(
            told(301, &[301, 300]),
            "it goes to face 301, of 2 next hops of /a, all silent, the cheapest (best-route)"
        );
        assert_eq!(
            told(300, &[]),
            "it goes to face 300, the best of 2 next hops of /a by how they have answered (best-route)"
        );
    }

    /// The story: with a lossy design, `explain` told of 300 of 300 names without a route that a Nack goes back, while
    /// the router forwarded them.
    #[test]
    fn the_table_that_forwards_decides_where_it_is_lossy() {
        let found = |hops: &[(u64, u64)]| {
            let next_hops = hops.iter().map(|&(face, cost)| NextHopRecord { face_id: FaceId(face), cost }).collect();
            vec![NameLook {
                is_owner: true,
                fib: Some(FibLook { next_hops, ..FibLook::default() }),
                ..NameLook::default()
            }]
        };
        let usage = |is_lossy| FibUsage { design: "fpt".to_owned(), capacity_entries: 9, bytes: 9, is_lossy };
        let lossy = |hops| Tables { looks: found(hops), fib_usage: Some(usage(true)), ..tables() };
        let other = lossy(&[(301, 5), (300, 10)]).explain(&name("/z"), None);
        assert_eq!(
            (&*other.outcome, other.mistaken, other.prefix, other.routes.len(), other.next_hops.len()),
            (
                "it goes to face 301, the cheapest of 2 next hops of another route (the FIB design fpt is lossy) (best-route)",
                true,
                None,
                0,
                2
            )
        );
        assert!(other.hints[0].contains("the FIB design fpt may take it for a name under any other route"));
        let mut multicast = lossy(&[(301, 5), (300, 10)]);
        let strategy = name("/localhost/nfd/strategy/multicast/v=5");
        multicast.looks[0].fib.as_mut().expect("found").strategy = strategy;
        assert!(
            multicast.explain(&name("/z"), None).outcome.starts_with("it goes to all 2 next hops of another route")
        );
        let none = lossy(&[]).explain(&name("/z"), None);
        assert_eq!((&*none.outcome, none.mistaken), ("no route covers the name: a Nack (NoRoute) goes back", false));
        assert!(none.hints[0].contains("the FIB design fpt may take it"), "{:?}", none.hints);
        // A name with a route: the face that is gone makes no difference.
        let right = lossy(&[(301, 5), (300, 10)]).explain(&name("/a/b/c"), None);
        let is_listed = right.next_hops.iter().any(|hop| hop.face_id == 399);
        assert!(!right.mistaken && right.prefix.as_deref() == Some("/a/b") && is_listed && right.hints.is_empty());
        // In an exact table only a change between two datasets makes a difference.
        let exact = Tables { fib_usage: Some(usage(false)), ..lossy(&[(301, 5)]) }.explain(&name("/z"), None);
        assert!(!exact.mistaken && exact.next_hops.is_empty() && exact.hints.len() == 1);
    }

    #[test]
    fn what_is_pending_and_stored_is_told() {
        let mut tables = tables();
        let failure = Some("Nack NoRoute".to_owned());
        let pending = PendingLook {
            expires_ms: 2500,
            downstreams: vec![FaceId(302)],
            upstreams: vec![UpstreamLook { face: FaceId(301), sent_ms_ago: 1500, failure }],
            ..PendingLook::default()
        };
        tables.looks = vec![NameLook { worker: 1, is_owner: true, pending: vec![pending], ..NameLook::default() }];
        let explanation = tables.explain(&name("/a/b/c"), None);
        let [pending] = &explanation.pending[..] else { panic!("one is pending") };
        assert_eq!(
            (explanation.worker, &pending.downstreams[..], pending.upstreams[0].face),
            (Some(1), &[FaceId(302)][..], FaceId(301))
        );
        let answers = explanation.next_hops[0].answers.as_ref().expect("it was measured");
        assert_eq!((answers.answered, answers.unanswered, answers.median_us), (9, 1, Some(1500)));
        let stored = StoredLook { name: name("/a/b/c/v=1"), bytes: 1200, fresh_ms: 0 };
        tables.looks[0].stored_under = Some(stored.clone());
        let explanation = tables.explain(&name("/a/b/c"), None);
        assert!(explanation.stored[0].needs_can_be_prefix && explanation.outcome.starts_with("it goes to all 2"));
        tables.looks[0].stored = Some(StoredLook { name: name("/a/b/c"), fresh_ms: 4000, ..stored });
        let explanation = tables.explain(&name("/a/b/c"), None);
        assert_eq!(explanation.outcome, "stored Data answers it; it is fresh for 4000 ms");
    }
}
