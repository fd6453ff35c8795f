//! What ends a way, and what looks wrong on it: from hops to words.
//!
//! The farthest hop that answers counts: what lies behind it is what fails.

use crate::hop::{Answer, Hop, Route};
use namewire_client::{NackReason, ReplyCode};
use namewire_packet::nfd::ProbeNextHop;
use serde::Serialize;

/// A clock that is farther off is worth a word: certificates and versions depend on it.
const CLOCK_TOLERANCE_MS: i64 = 30_000;

/// What ends the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndingKind {
    /// The forwarder has the target's name.
    Forwarder,
    /// An application serves the name.
    Application,
    /// The application that should answer has left the last Interests unanswered.
    SilentApplication,
    /// The Data is in a Content Store.
    Stored,
    /// A forwarder has no route.
    NoRoute,
    /// A forwarder has a route, and no next hop to which the Interest may go.
    NoNextHop,
    /// The way runs in a circle.
    Loop,
    /// Nothing answers behind a forwarder.
    Silence,
    /// A forwarder refuses what comes from the one before it.
    Refused,
    /// The HopLimit was not enough.
    HopLimit,
    /// No forwarder answers at all.
    NoForwarder,
}

/// The end of a way.
#[derive(Clone, Debug, Serialize)]
pub struct Ending {
    /// What it is.
    pub kind: EndingKind,
    /// The forwarder that it is about, if one is known by name.
    pub router: Option<String>,
    /// How far away that is; 0: none.
    pub distance: u8,
    /// In words.
    pub reason: String,
}

impl Ending {
    fn of(kind: EndingKind, hop: &Hop, answer: &Answer, reason: String) -> Self {
        Ending { kind, router: Some(answer.router.clone()), distance: hop.distance, reason }
    }

    /// Whether the name was found.
    pub const fn is_reached(&self) -> bool {
        matches!(self.kind, EndingKind::Forwarder | EndingKind::Application | EndingKind::Stored)
    }
}

/// What ends the way.
pub fn ending(route: &Route, max_hops: u8) -> Ending {
    if let Some(found) = circle(route) {
        return found;
    }
    let heard = route.hops.iter().rev().find_map(|hop| hop.answer.as_ref().map(|answer| (hop, answer)));
    let nack = route.hops.iter().rev().find(|hop| hop.nack.is_some());
    match (heard, nack) {
        (Some((hop, answer)), _) if !answer.goes_on() => last_word(hop, answer),
        (Some((hop, answer)), None) if hop.distance >= max_hops => {
            Ending::of(EndingKind::HopLimit, hop, answer, format!("the way goes on behind hop {max_hops}"))
        }
        (heard, Some(nack)) => refused(heard, nack),
        (Some((hop, answer)), None) => silence(hop, answer),
        (None, None) => Ending {
            kind: EndingKind::NoForwarder,
            router: None,
            distance: 0,
            reason: "no forwarder answers traceroutes, not even the one at hand: it is not Namewire, or its [probes] \
                     say so"
                .to_owned(),
        },
    }
}

/// The first forwarder that comes twice.
fn circle(route: &Route) -> Option<Ending> {
    route.hops.iter().enumerate().find_map(|(place, hop)| {
        let answer = hop.answer.as_ref()?;
        let first = route.hops[..place]
            .iter()
            .find(|earlier| earlier.answer.as_ref().is_some_and(|earlier| earlier.is_same(answer)))?;
        let names: Vec<&str> =
            route.hops.iter().filter(|hop| hop.distance >= first.distance).filter_map(name).collect();
        let reason = format!("the way runs in a circle: {}", names.join(", "));
        Some(Ending::of(EndingKind::Loop, hop, answer, reason))
    })
}

fn name(hop: &Hop) -> Option<&str> {
    hop.answer.as_ref().map(|answer| answer.router.as_str())
}

/// The forwarder says itself that the way ends.
fn last_word(hop: &Hop, answer: &Answer) -> Ending {
    let Answer { router, code, .. } = answer;
    match code {
        ReplyCode::Forwarder => Ending::of(EndingKind::Forwarder, hop, answer, format!("{router} is the target")),
        ReplyCode::Object => {
            Ending::of(EndingKind::Stored, hop, answer, format!("{router} has the Data in its Content Store"))
        }
        ReplyCode::Application => application(hop, answer),
        ReplyCode::HopLimit => match &answer.prefix {
            None => Ending::of(EndingKind::NoRoute, hop, answer, format!("{router} has no route for the name")),
            Some(prefix) => {
                let why = answer.next_hops.iter().filter_map(|hop| {
                    hop.excluded.as_ref().map(|excluded| format!("face {}: {excluded}", hop.face_id))
                });
                let why = why.collect::<Vec<_>>().join("; ");
                let why = if why.is_empty() { "its face has closed".to_owned() } else { why };
                let reason = format!("{router} has a route for {prefix}, and no next hop that it may use ({why})");
                Ending::of(EndingKind::NoNextHop, hop, answer, reason)
            }
        },
    }
}

fn application(hop: &Hop, answer: &Answer) -> Ending {
    let prefix = answer.prefix.as_deref().unwrap_or("the name");
    let served = format!("an application at {} serves {prefix}", answer.router);
    let silent = answer.chosen().filter(|hop| hop.is_application).filter(|hop| is_silent(hop));
    match silent {
        Some(face) => {
            let count = face.unanswered.unwrap_or_default();
            let reason = format!("{served}, and has left {count} Interests unanswered (face {})", face.face_id);
            Ending::of(EndingKind::SilentApplication, hop, answer, reason)
        }
        None => Ending::of(EndingKind::Application, hop, answer, served),
    }
}

/// Whether a next hop has lately given no answers.
fn is_silent(hop: &ProbeNextHop) -> bool {
    hop.is_silent || hop.answered == Some(0) && hop.unanswered.is_some_and(|count| count > 0)
}

/// A Nack came from behind the last forwarder that answers.
fn refused(heard: Option<(&Hop, &Answer)>, nack: &Hop) -> Ending {
    let behind = heard.map_or("the forwarder at hand".to_owned(), |(_, answer)| format!("behind {}", answer.router));
    let hop = format!("hop {}, {behind}, which answers no traceroutes", nack.distance);
    let (kind, reason) = match nack.nack {
        Some(NackReason::NoRoute) => (EndingKind::NoRoute, format!("no route: says a Nack of {hop}")),
        Some(NackReason::Duplicate) => (EndingKind::Loop, format!("the way runs in a circle: says a Nack of {hop}")),
        _ => (EndingKind::Refused, format!("a Nack of {hop}")),
    };
    let router = heard.map(|(_, answer)| answer.router.clone());
    Ending { kind, router, distance: nack.distance, reason }
}

/// Nothing answers behind this forwarder.
fn silence(hop: &Hop, answer: &Answer) -> Ending {
    let router = &answer.router;
    let Some(next) = answer.chosen() else {
        return Ending::of(EndingKind::Silence, hop, answer, format!("nothing answers behind {router}"));
    };
    let to = next.remote_uri.as_ref().map_or(String::new(), |uri| format!(", {uri}"));
    let before = match (next.answered, next.unanswered) {
        (Some(answered), Some(unanswered)) if answered + unanswered > 0 => {
            format!("; of earlier Interests, {answered} were answered and {unanswered} were not")
        }
        _ => String::new(),
    };
    let others = answer.usable().count() - 1;
    let others = match others {
        0 => String::new(),
        count => {
            format!("; {} does not use {count} other next hops", answer.strategy.as_deref().unwrap_or("its strategy"))
        }
    };
    let reason = format!(
        "{router} sends to face {}{to}, and nothing answers from there: its link, or a forwarder that is not Namewire\
         {before}{others}",
        next.face_id
    );
    Ending::of(EndingKind::Silence, hop, answer, reason)
}

/// What looks wrong on the way, the nearest first.
pub fn warnings(route: &Route) -> Vec<String> {
    let mut warnings = Vec::new();
    for hop in &route.hops {
        let Some(answer) = &hop.answer else { continue };
        let router = &answer.router;
        if let Some(ahead_ms) = answer.clock_ahead_ms.filter(|ahead_ms| ahead_ms.abs() > CLOCK_TOLERANCE_MS) {
            let (by, way) = (spell(ahead_ms.abs()), if ahead_ms > 0 { "ahead of" } else { "behind" });
            warnings.push(format!("the clock of {router} is {by} {way} the one here"));
        }
        warnings
            .extend(answer.refusals.iter().map(|refusal| format!("{router} refuses what comes this way: {refusal}")));
        if let Some(next) = answer.chosen().filter(|next| is_silent(next) && !answer.is_target()) {
            let other = answer.usable().any(|other| other.face_id != next.face_id && !is_silent(other));
            let cure = if other { "; the strategy asf would use another next hop" } else { "" };
            warnings.push(format!("{router} sends to face {}, which has not answered lately{cure}", next.face_id));
        }
        warnings.extend(stored(answer));
    }
    warnings.extend(small_path(route));
    warnings
}

/// A store on the way that answers in place of the target.
fn stored(answer: &Answer) -> Option<String> {
    let stored = answer.stored.as_ref().filter(|_| answer.code != ReplyCode::Object)?;
    let fresh = match stored.fresh_ms {
        0 => "stale".to_owned(),
        ms => format!("fresh for {}", spell(ms as i64)),
    };
    Some(format!("{} has {} in its Content Store ({fresh}), and may answer with it", answer.router, stored.name))
}

/// The first hop that large packets do not reach.
fn small_path(route: &Route) -> Option<String> {
    let bad = route.hops.iter().find(|hop| hop.takes_large == Some(false))?;
    let before = route.hops.iter().rev().find(|hop| hop.distance < bad.distance && hop.takes_large == Some(true));
    let from = before.and_then(name).unwrap_or("here");
    Some(format!(
        "large packets do not get from {from} to {} and back: is the MTU of a link between them too large?",
        name(bad)?
    ))
}

/// A time in words.
fn spell(ms: i64) -> String {
    match ms / 1000 {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 7200 => format!("{} min", seconds / 60),
        seconds if seconds < 172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{FaceId, nfd::StoredLook};

    fn answer(router: &str, prefix: Option<&str>, next_hops: Vec<ProbeNextHop>) -> Answer {
        Answer {
            router: router.to_owned(),
            instance: Some(router.len() as u64),
            software: None,
            rtt_ms: 1.0,
            clock_ahead_ms: Some(3),
            code: ReplyCode::HopLimit,
            prefix: prefix.map(str::to_owned),
            strategy: Some("best-route".to_owned()),
            next_hops,
            outcome: None,
            hints: Vec::new(),
            refusals: Vec::new(),
            stored: None,
            path: None,
        }
    }

    fn next(face: u64) -> ProbeNextHop {
        ProbeNextHop { face_id: FaceId(face), is_chosen: true, ..ProbeNextHop::default() }
    }

    fn forwards(router: &str) -> Answer {
        answer(router, Some("/a"), vec![next(300)])
    }

    fn route(hops: Vec<Option<Answer>>) -> Route {
        let hops = hops.into_iter().zip(1..).map(|(answer, distance)| Hop { answer, ..Hop::at(distance) });
        Route { branch: None, hops: hops.collect() }
    }

    fn ends(hops: Vec<Option<Answer>>) -> (EndingKind, Option<String>, u8) {
        let Ending { kind, router, distance, reason } = ending(&route(hops), 30);
        assert!(router.iter().all(|router| reason.contains(router.as_str())), "{router:?}: {reason}");
        (kind, router, distance)
    }

    fn at(kind: EndingKind, router: &str, distance: u8) -> (EndingKind, Option<String>, u8) {
        (kind, Some(router.to_owned()), distance)
    }

    #[test]
    fn the_target_ends_the_way() {
        for (code, kind) in [
            (ReplyCode::Forwarder, EndingKind::Forwarder),
            (ReplyCode::Object, EndingKind::Stored),
            (ReplyCode::Application, EndingKind::Application),
        ] {
            let target = Answer { code, ..forwards("/r2") };
            assert_eq!(ends(vec![Some(forwards("/r")), Some(target)]), at(kind, "/r2", 2));
        }
        let silent = ProbeNextHop { is_application: true, answered: Some(0), unanswered: Some(4), ..next(301) };
        let target = Answer { code: ReplyCode::Application, ..answer("/r2", Some("/a"), vec![silent]) };
        assert_eq!(ends(vec![Some(target)]), at(EndingKind::SilentApplication, "/r2", 1));
    }

    #[test]
    fn a_forwarder_without_a_way_on_is_named() {
        assert_eq!(
            ends(vec![Some(forwards("/r")), Some(answer("/r2", None, vec![]))]),
            at(EndingKind::NoRoute, "/r2", 2)
        );
        let down = ProbeNextHop { excluded: Some("its link is down".to_owned()), ..next(301) };
        let stuck = answer("/r3", Some("/a"), vec![down]);
        let found = ending(&route(vec![Some(stuck)]), 30);
        assert_eq!((found.kind, found.reason.contains("face 301: its link is down")), (EndingKind::NoNextHop, true));
    }

    #[test]
    fn gaps_are_passed_over_and_silence_is_what_follows_the_last_answer() {
        let reached = Answer { code: ReplyCode::Application, ..forwards("/r444") };
        assert_eq!(
            ends(vec![Some(forwards("/r")), None, None, Some(reached)]),
            at(EndingKind::Application, "/r444", 4)
        );
        assert_eq!(ends(vec![Some(forwards("/r")), Some(forwards("/r2"))]), at(EndingKind::Silence, "/r2", 2));
        assert_eq!(ends(vec![]), (EndingKind::NoForwarder, None, 0));
        let silent = ProbeNextHop { answered: Some(0), unanswered: Some(5), ..next(300) };
        let idle = ProbeNextHop { is_chosen: false, ..next(301) };
        let way = route(vec![Some(answer("/r3", Some("/a"), vec![silent, idle]))]);
        let found = ending(&way, 30);
        assert!(found.reason.contains("face 300") && found.reason.contains("5 were not"), "{}", found.reason);
        assert!(found.reason.contains("best-route does not use 1 other"), "{}", found.reason);
        assert!(warnings(&way)[0].contains("asf would use another"), "{:?}", warnings(&way));
    }

    #[test]
    fn a_circle_is_known_by_a_router_that_comes_twice() {
        let way = vec![Some(forwards("/r")), Some(forwards("/r2")), None, Some(forwards("/r2"))];
        assert_eq!(ends(way), at(EndingKind::Loop, "/r2", 4));
        // Two routers of the same name are two routers.
        let other = Answer { instance: Some(99), ..forwards("/r2") };
        assert_eq!(ends(vec![Some(forwards("/r2")), Some(other)]), at(EndingKind::Silence, "/r2", 2));
    }

    #[test]
    fn a_nack_comes_from_the_first_hop_that_has_one() {
        for (reason, kind) in [(NackReason::NoRoute, EndingKind::NoRoute), (NackReason::Duplicate, EndingKind::Loop)] {
            let mut way = route(vec![Some(forwards("/r"))]);
            way.hops.push(Hop::refused(2, reason));
            let found = ending(&way, 30);
            assert_eq!(
                (found.kind, found.router.as_deref(), found.distance),
                (kind, Some("/r"), 2),
                "{}",
                found.reason
            );
            assert!(found.reason.contains("behind /r"), "{}", found.reason);
        }
    }

    #[test]
    fn the_hop_limit_may_be_too_small() {
        assert_eq!(ending(&route(vec![Some(forwards("/r"))]), 1).kind, EndingKind::HopLimit);
    }

    #[test]
    fn what_looks_wrong_is_said_with_the_router() {
        let stored = StoredLook { name: "/a/v=1".parse().expect("a name"), bytes: 9, fresh_ms: 7_200_000 };
        let odd = Answer {
            clock_ahead_ms: Some(-3_600_000),
            refusals: vec!["pit: full".to_owned()],
            stored: Some(stored),
            ..forwards("/r2")
        };
        let mut way = route(vec![Some(forwards("/r")), Some(odd), Some(forwards("/r33"))]);
        (way.hops[0].takes_large, way.hops[2].takes_large) = (Some(true), Some(false));
        let warnings = warnings(&way);
        let expected = [
            "the clock of /r2 is 60 min behind the one here",
            "/r2 refuses what comes this way: pit: full",
            "/r2 has /a/v=1 in its Content Store (fresh for 2 h), and may answer with it",
            "large packets do not get from /r to /r33 and back: is the MTU of a link between them too large?",
        ];
        assert_eq!(warnings, expected);
    }
}
