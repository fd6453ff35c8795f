//! Network: what is shown of several routers: `/network.json` of an observer, and `namewire top --all`.

use crate::{
    health::{self, Finding, Level},
    links::{Link, Links},
    rates::{DropRate, History},
    reading::{Problem, Reason},
    summary::{FaceSummary, Rates, Summary},
};
use serde::Serialize;
use std::{sync::LazyLock, time::Duration};

/// A router among several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Watched {
    /// What people call it.
    pub name: String,
    /// Where it is read.
    pub place: String,
    /// How it is: that of its worst finding.
    pub level: Level,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// What it says of itself. `None`: nothing so far.
    pub summary: Option<Summary>,
    /// The drops that rose in the last ten seconds, most first.
    pub drops: Vec<DropRate>,
    /// Why there is nothing new. The summary is then the last that there was.
    pub problem: Option<Problem>,
}

/// A router that is watched: keeps what its rates need.
#[derive(Debug, Default)]
pub struct Watch {
    history: History,
    latest: Watched,
}

/// A link as it is drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownLink {
    /// The router of one end, by its place in the list.
    pub a: usize,
    /// Its face.
    pub a_face: u64,
    /// The FaceUri of that face's other end.
    pub a_remote: String,
    /// The other router.
    pub b: usize,
    /// Its face. `None`: it has no face for this link.
    pub b_face: Option<u64>,
    /// From a to b. `None`: unknown.
    pub a_to_b_bits_per_s: Option<f64>,
    /// From b to a.
    pub b_to_a_bits_per_s: Option<f64>,
    /// How it is.
    pub level: Level,
    /// The same in words.
    pub state: String,
}

/// Several routers and their links.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Network {
    /// The routers.
    pub routers: Vec<Watched>,
    /// The links between them.
    pub links: Vec<ShownLink>,
}

/// Of a router that was not asked yet.
static NOTHING_YET: LazyLock<Problem> = LazyLock::new(|| Problem::new(Reason::Slow, "it has not said anything yet"));

impl Watch {
    /// Nothing yet of the router of this name.
    pub fn new(name: impl Into<String>, place: impl Into<String>) -> Self {
        let latest = Watched { name: name.into(), place: place.into(), ..Watched::default() };
        Watch { history: History::default(), latest: Watched { level: Level::Unknown, ..latest } }
    }

    /// Takes what the router said `at` a time, or why it said nothing. Times must not go back.
    pub fn push(&mut self, at: Duration, said: Result<Summary, Problem>) {
        let latest = &mut self.latest;
        match said {
            Ok(mut summary) => {
                latest.drops = self.history.push(at, &mut summary);
                latest.findings = health::findings(&summary, &latest.drops);
                latest.summary = Some(summary);
                latest.problem = None;
            }
            Err(problem) => {
                latest.drops.clear();
                latest.findings = health::unreachable(&problem);
                latest.problem = Some(problem);
            }
        }
        latest.level = latest.findings.first().map_or(Level::Well, |finding| finding.level);
    }

    /// What is shown.
    pub fn shown(&self) -> &Watched {
        &self.latest
    }
}

impl Watched {
    /// What it says now. `None`: it says nothing now.
    pub fn present(&self) -> Option<&Summary> {
        self.summary.as_ref().filter(|_| self.problem.is_none())
    }

    /// The same, or why not.
    ///
    /// # Errors
    /// The problem.
    pub fn said(&self) -> Result<&Summary, &Problem> {
        match (&self.problem, &self.summary) {
            (Some(problem), _) => Err(problem),
            (None, Some(summary)) => Ok(summary),
            (None, None) => Err(&NOTHING_YET),
        }
    }

    /// How many packets a second it drops.
    pub fn drops_per_s(&self) -> f64 {
        // The sum of nothing is -0.
        self.drops.iter().map(|drops| drops.per_s).sum::<f64>() + 0.0
    }

    fn face(&self, face: u64) -> Option<&FaceSummary> {
        self.present()?.faces.iter().find(|found| found.id == face)
    }
}

impl Network {
    /// The routers with their links. A router that is read on two ways is shown once, the first time.
    pub fn of(routers: Vec<Watched>) -> Self {
        let mut shown: Vec<Watched> = Vec::new();
        for router in routers {
            let instance = router.present().map(|summary| &summary.instance).filter(|instance| !instance.is_empty());
            let is_known = |known: &Watched| known.present().map(|summary| &summary.instance) == instance;
            if instance.is_none() || !shown.iter().any(is_known) {
                shown.push(router);
            }
        }
        let links = Links::between(&shown.iter().map(Watched::present).collect::<Vec<_>>());
        let links = links.all().iter().map(|link| ShownLink::of(link, &shown)).collect();
        Network { routers: shown, links }
    }
}

impl ShownLink {
    fn of(link: &Link, routers: &[Watched]) -> Self {
        let near = routers[link.near.router].face(link.near.face);
        let far = link.far_face.and_then(|face| routers[link.far_router].face(face));
        let rates = |face: Option<&FaceSummary>| face.and_then(|face| face.rates);
        let bits = |face, of: fn(&Rates) -> f64| rates(face).map(|rates| of(&rates));
        let state = |face: Option<&FaceSummary>, word: &str| face.is_some_and(|face| face.state == word);
        let is = |word| state(near, word) || state(far, word);
        let (level, text) = match link.far_face {
            _ if is("down") => (Level::Trouble, "down"),
            _ if is("degraded") => (Level::Warning, "often gets no answer"),
            None => (Level::Warning, "the other router has no face for it"),
            Some(_) => (Level::Well, "up"),
        };
        ShownLink {
            a: link.near.router,
            a_face: link.near.face,
            a_remote: near.map(|face| face.remote.clone()).unwrap_or_default(),
            b: link.far_router,
            b_face: link.far_face,
            a_to_b_bits_per_s: bits(near, |rates| rates.out_bits_per_s).or(bits(far, |rates| rates.in_bits_per_s)),
            b_to_a_bits_per_s: bits(near, |rates| rates.in_bits_per_s).or(bits(far, |rates| rates.out_bits_per_s)),
            level,
            state: text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        links::tests::{face, router},
        summary::Drops,
    };

    fn watched(name: &str, summary: Summary) -> Watched {
        let mut watch = Watch::new(name, "http://x:1");
        watch.push(Duration::ZERO, Ok(summary));
        watch.shown().clone()
    }

    #[test]
    fn a_link_has_rates_and_a_state_in_words() {
        let (a, b) = ("udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363");
        let rates = Rates { in_bits_per_s: 1.0, out_bits_per_s: 9.0, ..Rates::default() };
        let down = FaceSummary { state: "down".into(), ..face(9, b, a) };
        let near = FaceSummary { rates: Some(rates), ..face(7, a, b) };
        let network =
            Network::of(vec![watched("one", router("a", vec![near])), watched("two", router("b", vec![down]))]);
        let [link] = &network.links[..] else { panic!("{:?}", network.links) };
        assert_eq!((link.a, link.a_face, link.b, link.b_face), (0, 7, 1, Some(9)));
        assert_eq!((link.a_to_b_bits_per_s, link.b_to_a_bits_per_s), (Some(9.0), Some(1.0)));
        assert_eq!((link.level, &*link.state), (Level::Trouble, "down"));
        assert_eq!(network.routers[1].level, Level::Trouble);
        assert_eq!(network.routers[0].level, Level::Well);
    }

    #[test]
    fn a_router_that_goes_keeps_its_last_numbers_and_its_reason() {
        let mut watch = Watch::new("one", "http://x:1");
        assert_eq!(watch.shown().level, Level::Unknown);
        let drops = |count| vec![Drops { reason: "engine.no-route".into(), count }];
        watch.push(Duration::ZERO, Ok(Summary { drops: drops(0), ..router("a", Vec::new()) }));
        watch.push(Duration::from_secs(1), Ok(Summary { drops: drops(5), ..router("a", Vec::new()) }));
        assert_eq!((watch.shown().level, watch.shown().drops_per_s()), (Level::Warning, 5.0));
        watch.push(Duration::from_secs(2), Err(Problem::new(Reason::Unreachable, "it is away")));
        let shown = watch.shown();
        assert_eq!((shown.level, &*shown.findings[0].text), (Level::Unknown, "it is away"));
        assert!(shown.summary.is_some() && shown.present().is_none() && shown.drops.is_empty());
    }

    #[test]
    fn a_router_that_is_named_twice_is_shown_once() {
        let summary = |instance: &str| Summary { instance: instance.into(), ..router("a", Vec::new()) };
        let of = |name: &str, instance: &str| watched(name, summary(instance));
        let network = Network::of(vec![of("here", "1"), of("peer", "2"), of("again", "1"), of("x", ""), of("y", "")]);
        let names: Vec<&str> = network.routers.iter().map(|router| &*router.name).collect();
        assert_eq!(names, ["here", "peer", "x", "y"]);
    }
}
