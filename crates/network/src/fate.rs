//! Fate: what does each router do with an Interest for a name, in the order of its path, and where is it dropped?
//!
//! Each router explains itself ([`Explained`], made from `namewire_node_model::explanation`). A next hop whose face is
//! one end of a [link](crate::links) leads to the router at the other end. The order begins with routers to which no
//! other one sends, and follows the next hops; routers that no path reaches come last.
//!
//! This is what the tables say now. Whether packets under the name were dropped lately, and why, is beside it.
//!
//! Limits: [`HOPS_MAX`] next hops of a router, texts as in a summary.

use crate::{
    health::Level,
    links::{End, Links},
    reading::Problem,
    summary::{Dropped, Summary, cut},
};
use namewire_packet::NameBuf;
use serde::{Deserialize, Serialize};

/// Next hops of an explanation.
pub const HOPS_MAX: usize = 64;
/// Packets dropped lately that are shown of a router.
const LATELY_MAX: usize = 5;

/// What a router says that it would do: the part of `/explain` that is read here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    /// In words.
    pub outcome: String,
    /// The prefix in the FIB that applies.
    pub prefix: Option<String>,
    /// The strategy, with the prefix for which it was chosen.
    pub strategy: Option<ChosenStrategy>,
    /// The next hops, usable ones first.
    pub next_hops: Vec<NextHop>,
    /// Data in the Content Store.
    pub stored: Vec<Stored>,
    /// What the user can do about it.
    pub hints: Vec<String>,
}

/// A strategy choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChosenStrategy {
    /// The strategy's name.
    pub strategy: String,
}

/// A next hop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NextHop {
    /// Its face.
    pub face_id: u64,
    /// Lower is better.
    pub cost: u64,
    /// Where the face leads.
    pub remote_uri: Option<String>,
    /// Why no Interest would go there.
    pub excluded: Option<String>,
    /// A new Interest would go there now.
    pub is_chosen: bool,
    /// Earlier Interests got no answer there.
    pub is_silent: bool,
}

/// Data in the Content Store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stored {
    /// An Interest gets it only with CanBePrefix.
    pub needs_can_be_prefix: bool,
}

/// What is known of a router and a name.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// What people call it.
    pub name: &'a str,
    /// Its explanation, or why there is none.
    pub explained: Result<Explained, Problem>,
    /// What it says of itself, or why it says nothing.
    pub summary: Result<&'a Summary, &'a Problem>,
}

/// What a router does with the Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Its Content Store answers.
    Answers,
    /// It goes to an application there, the producer as far as the tables know.
    Application,
    /// It goes to other routers of the list.
    Forwards,
    /// It goes to neighbours that are not in the list.
    Leaves,
    /// It is dropped there.
    Dropped,
    /// It waits there for a link.
    Waits,
    /// The router says nothing.
    Unknown,
}

/// Where a router sends the Interest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// The face.
    pub face: u64,
    /// The FaceUri of its other end.
    pub remote: String,
    /// The router there, by its place in the list that was given.
    pub router: Option<usize>,
    /// To an application on that machine.
    pub is_application: bool,
    /// Earlier Interests got no answer there.
    pub is_silent: bool,
}

/// A router on the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Its place in the list that was given.
    pub router: usize,
    /// What people call it.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// How bad that is.
    pub level: Level,
    /// In words.
    pub text: String,
    /// Where it sends the Interest.
    pub to: Vec<Hop>,
    /// Packets under the name that it dropped lately, the newest first.
    pub lately: Vec<Dropped>,
    /// How many of these there are among its last ones.
    pub lately_count: usize,
    /// What the router advises.
    pub hints: Vec<String>,
}

/// What happens to a name at several routers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fate {
    /// The name.
    pub name: String,
    /// The routers, in the order of the path.
    pub steps: Vec<Step>,
    /// In sentences: where it is dropped, answered, or runs in a circle.
    pub verdict: Vec<String>,
}

impl Explained {
    /// The same within the limits of the module.
    pub fn bounded(mut self) -> Self {
        cut(&mut self.outcome);
        self.prefix.iter_mut().for_each(cut);
        self.strategy.iter_mut().for_each(|strategy| cut(&mut strategy.strategy));
        self.next_hops.truncate(HOPS_MAX);
        for hop in &mut self.next_hops {
            hop.remote_uri.iter_mut().chain(&mut hop.excluded).for_each(cut);
        }
        self.stored.truncate(HOPS_MAX);
        self.hints.truncate(LATELY_MAX);
        self.hints.iter_mut().for_each(cut);
        self
    }

    /// Where a new Interest would go: the next hops that the strategy chose, or all usable ones of multicast, or the
    /// cheapest, if the forwarder does not tell more.
    fn ways(&self) -> Vec<&NextHop> {
        let usable: Vec<&NextHop> = self.next_hops.iter().filter(|hop| hop.excluded.is_none()).collect();
        let chosen: Vec<&NextHop> = usable.iter().copied().filter(|hop| hop.is_chosen).collect();
        let is_multicast = self.strategy.as_ref().is_some_and(|strategy| strategy.strategy.contains("/multicast/"));
        match (chosen.is_empty(), is_multicast) {
            (false, _) => chosen,
            (true, true) => usable,
            (true, false) => usable.into_iter().take(1).collect(),
        }
    }
}

impl Fate {
    /// What these routers do with an Interest for `name`.
    pub fn of(name: &NameBuf, routers: &[Asked<'_>], links: &Links) -> Self {
        let steps: Vec<Step> =
            routers.iter().enumerate().map(|(index, asked)| Step::of(index, asked, name, links)).collect();
        let order = in_path_order(&steps);
        let verdict = verdict(&steps, &order);
        let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
        let steps = order.iter().filter_map(|index| steps[*index].take()).collect();
        Fate { name: name.to_string(), steps, verdict }
    }
}

impl Step {
    fn of(router: usize, asked: &Asked<'_>, name: &NameBuf, links: &Links) -> Self {
        let under = |drop: &&Dropped| {
            let dropped = drop.name.as_deref().map(|text| text.trim_end_matches(['…', '/']));
            let dropped = dropped.and_then(|text| text.parse::<NameBuf>().ok());
            dropped.is_some_and(|dropped| name.as_name().is_prefix_of(&dropped.as_name()))
        };
        let summary = asked.summary.ok();
        let lately: Vec<Dropped> =
            summary.iter().flat_map(|summary| &summary.last_drops).filter(under).cloned().collect();
        let mut step = Step {
            router,
            name: asked.name.to_owned(),
            kind: Kind::Unknown,
            level: Level::Unknown,
            text: String::new(),
            to: Vec::new(),
            lately_count: lately.len(),
            lately: lately.into_iter().take(LATELY_MAX).collect(),
            hints: Vec::new(),
        };
        match &asked.explained {
            Err(problem) => step.text.clone_from(&problem.text),
            Ok(explained) => {
                let hop = |hop: &&NextHop| Hop::of(router, hop, summary, links);
                step.to = explained.ways().iter().map(hop).collect();
                step.text.clone_from(&explained.outcome);
                step.hints.clone_from(&explained.hints);
                step.judge(explained);
                if let Err(problem) = asked.summary {
                    step.level = step.level.max(Level::Warning);
                    step.text += &format!("; to which routers its faces lead is not known: {problem}");
                }
            }
        }
        step
    }

    fn judge(&mut self, explained: &Explained) {
        if explained.stored.iter().any(|stored| !stored.needs_can_be_prefix) {
            self.to.clear();
        }
        let waits = explained.next_hops.iter().any(|hop| hop.excluded.as_deref() == Some("its link is down"));
        let is_silent = !self.to.is_empty() && self.to.iter().all(|hop| hop.is_silent);
        let answers = self.to.is_empty() && explained.stored.iter().any(|stored| !stored.needs_can_be_prefix);
        (self.kind, self.level) = match () {
            () if answers => (Kind::Answers, Level::Well),
            () if self.to.is_empty() && waits => (Kind::Waits, Level::Trouble),
            () if self.to.is_empty() => (Kind::Dropped, Level::Trouble),
            () if self.to.iter().any(|hop| hop.router.is_some()) => (Kind::Forwards, Level::Well),
            () if self.to.iter().any(|hop| hop.is_application) => (Kind::Application, Level::Well),
            () => (Kind::Leaves, Level::Well),
        };
        if is_silent {
            self.level = self.level.max(Level::Warning);
            self.text += "; earlier Interests got no answer there";
        }
    }

    /// The routers to which it sends.
    fn next(&self) -> impl Iterator<Item = usize> {
        self.to.iter().filter_map(|hop| hop.router)
    }
}

impl Hop {
    fn of(router: usize, hop: &NextHop, summary: Option<&Summary>, links: &Links) -> Self {
        let face = summary.and_then(|summary| summary.faces.iter().find(|face| face.id == hop.face_id));
        let remote = hop.remote_uri.clone().unwrap_or_default();
        let other = links.other(End { router, face: hop.face_id });
        let is_of_application = || ["fd://", "unix://", "memif://"].iter().any(|scheme| remote.starts_with(scheme));
        let is_local = face.map_or_else(is_of_application, |face| face.is_local);
        Hop {
            face: hop.face_id,
            router: other,
            is_application: is_local && other.is_none(),
            is_silent: hop.is_silent,
            remote,
        }
    }
}

/// The places of the steps, so that each router comes before those to which it sends, as far as there is no circle.
fn in_path_order(steps: &[Step]) -> Vec<usize> {
    let is_reached = |index: usize| steps.iter().any(|step| step.router != index && step.next().any(|to| to == index));
    let leads_on = |index: usize| steps[index].next().next().is_some();
    // First the beginnings of paths, then what is in circles, then those that no path touches.
    let rank = |index: usize| match (is_reached(index), leads_on(index)) {
        (false, true) => 0,
        (true, true) => 1,
        (true, false) => 2,
        (false, false) => 3,
    };
    let mut starts: Vec<usize> = (0..steps.len()).collect();
    starts.sort_by_key(|index| (rank(*index), *index));
    // The reverse of the order in which a search is done with each.
    let mut done: Vec<Vec<usize>> = Vec::new();
    let mut is_seen = vec![false; steps.len()];
    for start in starts {
        let mut finished = Vec::new();
        visit(start, steps, &mut is_seen, &mut finished);
        finished.reverse();
        done.push(finished);
    }
    merge(steps, done)
}

fn visit(index: usize, steps: &[Step], is_seen: &mut [bool], finished: &mut Vec<usize>) {
    if std::mem::replace(&mut is_seen[index], true) {
        return;
    }
    // As deep as there are routers, which a limit bounds.
    for next in steps[index].next() {
        visit(next, steps, is_seen, finished);
    }
    finished.push(index);
}

/// Later searches end in routers of earlier ones: they go before the first of these.
fn merge(steps: &[Step], searches: Vec<Vec<usize>>) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    for search in searches {
        let leads_to = |index: &usize| search.iter().any(|step| steps[*step].next().any(|to| to == *index));
        let at = order.iter().position(leads_to).unwrap_or(order.len());
        order.splice(at..at, search);
    }
    order
}

fn verdict(steps: &[Step], order: &[usize]) -> Vec<String> {
    let mut sentences = Vec::new();
    for step in order.iter().map(|index| &steps[*index]) {
        let name = &step.name;
        let from: Vec<&str> = order
            .iter()
            .map(|index| &steps[*index])
            .filter(|from| from.router != step.router && from.next().any(|to| to == step.router))
            .map(|from| &*from.name)
            .collect();
        let sent = match &from[..] {
            [] => String::new(),
            [one] => format!(", where {one} sends it"),
            names => format!(", where {} send it", names.join(" and ")),
        };
        match step.kind {
            Kind::Dropped => sentences.push(format!("Dropped at {name}{sent}: {}.", step.text)),
            Kind::Waits => sentences.push(format!("Waits at {name}{sent}: {}.", step.text)),
            Kind::Unknown if !from.is_empty() => {
                sentences.push(format!("What happens at {name}{sent}, is not known: {}.", step.text));
            }
            _ => {}
        }
    }
    if let Some(circle) = circle(steps, order) {
        let names: Vec<&str> = circle.iter().map(|index| &*steps[*index].name).collect();
        sentences.push(format!("It runs in a circle: {}.", names.join(" → ")));
    }
    if sentences.is_empty() {
        let ends = |kind| order.iter().map(|index| &steps[*index]).filter(move |step| step.kind == kind);
        let names = |kind| ends(kind).map(|step| &*step.name).collect::<Vec<_>>().join(", ");
        let endings = [
            (Kind::Answers, "The Content Store answers at"),
            (Kind::Application, "An application answers at"),
            (Kind::Leaves, "It leaves the routers of this list at"),
        ];
        sentences.extend(
            endings
                .into_iter()
                .filter(|(kind, _)| ends(*kind).next().is_some())
                .map(|(kind, words)| format!("{words} {}.", names(kind))),
        );
    }
    sentences
}

/// The first circle of next hops, with its first router at both ends.
fn circle(steps: &[Step], order: &[usize]) -> Option<Vec<usize>> {
    let mut state = vec![0_u8; steps.len()];
    let mut path = Vec::new();
    order.iter().find_map(|start| search_circle(*start, steps, &mut state, &mut path))
}

fn search_circle(index: usize, steps: &[Step], state: &mut [u8], path: &mut Vec<usize>) -> Option<Vec<usize>> {
    const OPEN: u8 = 1;
    const DONE: u8 = 2;
    match state[index] {
        DONE => return None,
        OPEN => {
            let begin = path.iter().position(|on_path| *on_path == index)?;
            return Some(path[begin..].iter().copied().chain([index]).collect());
        }
        _ => state[index] = OPEN,
    }
    path.push(index);
    let found =
        steps[index].next().collect::<Vec<_>>().into_iter().find_map(|to| search_circle(to, steps, state, path));
    path.pop();
    state[index] = DONE;
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        links::tests::{face, router},
        reading::Reason,
        summary::FaceSummary,
    };
    use proptest::prelude::*;

    fn address(router: usize, port: usize) -> String {
        format!("udp4://192.0.2.{router}:{port}")
    }

    /// Routers with a link from each to each: face 100 + j of router i leads to router j. Face 1 is an application.
    fn mesh(count: usize) -> Vec<Summary> {
        let faces = |i: usize| {
            let to = |j: usize| face(100 + j as u64, &address(i, 1000 + j), &address(j, 1000 + i));
            let application = FaceSummary { is_local: true, ..face(1, "unix:///run/nfd/nfd.sock", "fd://7") };
            (0..count).filter(|j| *j != i).map(to).chain([application]).collect()
        };
        (0..count).map(|i| router("host", faces(i))).collect()
    }

    fn to(faces: &[u64]) -> Explained {
        let hop = |face_id: &u64| NextHop { face_id: *face_id, is_chosen: true, ..NextHop::default() };
        Explained { outcome: "it goes on".into(), next_hops: faces.iter().map(hop).collect(), ..Explained::default() }
    }

    fn no_route() -> Explained {
        Explained { outcome: "no route covers the name: a Nack (NoRoute) goes back".into(), ..Explained::default() }
    }

    fn fate(explained: Vec<Result<Explained, Problem>>) -> Fate {
        let summaries = mesh(explained.len());
        fate_of(explained, &summaries)
    }

    fn fate_of(explained: Vec<Result<Explained, Problem>>, summaries: &[Summary]) -> Fate {
        let links = Links::between(&summaries.iter().map(Some).collect::<Vec<_>>());
        let names: Vec<String> = (0..explained.len()).map(|index| format!("r{index}")).collect();
        let asked: Vec<Asked<'_>> = names
            .iter()
            .zip(explained)
            .zip(summaries)
            .map(|((name, explained), summary)| Asked { name, explained, summary: Ok(summary) })
            .collect();
        Fate::of(&"/a/b".parse().unwrap(), &asked, &links)
    }

    fn shown(fate: &Fate) -> String {
        fate.steps.iter().map(|step| format!("{} {:?}", step.name, step.kind)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_path_is_in_its_order_and_ends_where_the_producer_is() {
        // r2 → r0 → r1
        let fate = fate(vec![Ok(to(&[101])), Ok(to(&[1])), Ok(to(&[100]))]);
        assert_eq!(shown(&fate), "r2 Forwards, r0 Forwards, r1 Application");
        assert_eq!(fate.verdict, ["An application answers at r1."]);
        assert_eq!(fate.steps[0].to[0].router, Some(0));
    }

    #[test]
    fn two_paths_come_before_what_they_share() {
        // r0 → r2, r1 → r2, r3 alone
        let fate = fate(vec![Ok(to(&[102])), Ok(to(&[102])), Ok(no_route()), Ok(no_route())]);
        let order: Vec<&str> = fate.steps.iter().map(|step| &*step.name).collect();
        assert!(order == ["r0", "r1", "r2", "r3"] || order == ["r1", "r0", "r2", "r3"], "{order:?}");
        assert!(fate.verdict[0].starts_with("Dropped at r2, where r"), "{:?}", fate.verdict);
        assert!(fate.verdict[1].starts_with("Dropped at r3: no route covers"), "{:?}", fate.verdict);
    }

    #[test]
    fn a_circle_is_named() {
        let fate = fate(vec![Ok(to(&[101])), Ok(to(&[102])), Ok(to(&[101]))]);
        assert_eq!(fate.verdict, ["It runs in a circle: r1 → r2 → r1."]);
    }

    #[test]
    fn what_is_not_known_is_said_where_it_matters() {
        let away = || Err(Problem::new(Reason::Unreachable, "http://r1 cannot be reached"));
        let fate = fate(vec![Ok(to(&[101])), away(), away()]);
        let expected = "What happens at r1, where r0 sends it, is not known: http://r1 cannot be reached.";
        assert_eq!(fate.verdict, [expected]);
        assert_eq!(shown(&fate), "r0 Forwards, r1 Unknown, r2 Unknown");
    }

    #[test]
    fn stores_links_that_are_down_and_silence() {
        let mut stored = to(&[101]);
        stored.stored = vec![Stored::default()];
        let mut waits = to(&[100]);
        waits.next_hops[0].excluded = Some("its link is down".into());
        let mut silent = to(&[400]);
        silent.next_hops[0].is_silent = true;
        let fate = fate(vec![Ok(stored), Ok(waits), Ok(silent)]);
        assert_eq!(shown(&fate), "r0 Answers, r1 Waits, r2 Leaves");
        assert_eq!(fate.steps[2].level, Level::Warning);
        assert!(fate.verdict[0].starts_with("Waits at r1: "));
    }

    #[test]
    fn packets_dropped_lately_are_those_under_the_name() {
        let mut summaries = mesh(1);
        let drop =
            |name: &str| Dropped { name: Some(name.into()), reason: "engine.no-route".into(), ..Dropped::default() };
        summaries[0].last_drops = ["/a/b/c", "/a/b", "/a/bc", "/a", "/a/b/…", "/z"].map(drop).into();
        let fate = fate_of(vec![Ok(no_route())], &summaries);
        assert_eq!(fate.steps[0].lately_count, 3);
    }

    #[test]
    fn a_forwarder_that_does_not_say_what_it_chooses() {
        let hop = |face_id| NextHop { face_id, ..NextHop::default() };
        let with = |strategy: &str| Explained {
            strategy: Some(ChosenStrategy { strategy: format!("/localhost/nfd/strategy/{strategy}/v=5") }),
            next_hops: vec![hop(101), hop(102)],
            ..Explained::default()
        };
        let ways = |strategy| with(strategy).ways().iter().map(|hop| hop.face_id).collect::<Vec<_>>();
        assert_eq!((ways("best-route"), ways("multicast")), (vec![101], vec![101, 102]));
    }

    proptest! {
        /// Whatever routers say, each is shown once, and without a circle each comes before those to which it sends.
        #[test]
        fn any_graph_has_an_order(edges in prop::collection::vec(prop::collection::vec(0_u64..7, 0..4), 7)) {
            let explained = edges.iter().map(|to_faces| {
                Ok(to(&to_faces.iter().map(|to| 100 + to).collect::<Vec<_>>()))
            });
            let fate = fate(explained.collect());
            let mut routers: Vec<usize> = fate.steps.iter().map(|step| step.router).collect();
            let place = |router: usize| fate.steps.iter().position(|step| step.router == router).unwrap();
            let has_circle = fate.verdict.iter().any(|sentence| sentence.starts_with("It runs in a circle"));
            if !has_circle {
                for step in &fate.steps {
                    for next in step.next() {
                        prop_assert!(place(step.router) < place(next), "{:?}", shown(&fate));
                    }
                }
            }
            routers.sort_unstable();
            prop_assert_eq!(routers, (0..7).collect::<Vec<_>>());
        }
    }
}
