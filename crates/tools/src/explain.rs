//! Explain: what would the forwarder do with an Interest for this name now?
//!
//! Next hops and strategy are those of the table that workers use to forward, which may be lossy. The program fetches
//! the datasets one after the other, so they may disagree if something changes in between. Other forwarders do not have
//! all datasets of Namewire; then the answer is shorter.

use crate::{ExitCode, Failure, quantity};
use namewire_client::Client;
use namewire_node_model::explanation::{Answers, Explanation, NextHop, Route, Stored, Tables, short};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{NameLook, Part, PendingLook, StoredLook, decode_dataset},
};
use std::{fmt::Write as _, time::Duration};

/// What the forwarder would do with an Interest for this name that comes from this face.
///
/// # Errors
/// It does not answer, or has no such face.
pub async fn explain(client: &Client, name: &NameBuf, from: Option<u64>) -> Result<Explanation, Failure> {
    let tables = fetch(client, name).await?;
    let from = from.map(FaceId);
    match from.filter(|face| tables.face(*face).is_none()) {
        Some(face) => Err(Failure::not_found(format!("there is no face {face}"))),
        None => Ok(tables.explain(name, from)),
    }
}

/// How long a failed command asks who failed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Adds to a Nack or a time-out who it was: the router here, or one behind a face. The tables of the router here tell.
/// `client` is the one that failed: if it left, the router would forget its Interest before that has expired.
pub(crate) async fn blame(client: &Client, failure: Failure, name: NameBuf) -> Failure {
    let is_nack = failure.code() == ExitCode::Nack;
    let failure = failure.about(name.clone());
    if !is_nack && failure.code() != ExitCode::Timeout {
        return failure;
    }
    match tokio::time::timeout(PATIENCE, fetch(client, &name)).await {
        Ok(Ok(tables)) => failure.by(culprit(&tables.explain(&name, None), is_nack)),
        _ => failure,
    }
}

/// The next hops that were asked, as far as that can be known: those of the Interest while it is pending; else those
/// that are silent by now; else the one that a new Interest would go to.
fn culprit(explanation: &Explanation, is_nack: bool) -> String {
    let pending: Vec<u64> =
        explanation.pending.iter().flat_map(|one| &one.upstreams).map(|asked| asked.face.0).collect();
    let usable = || explanation.next_hops.iter().filter(|hop| hop.excluded.is_none());
    let ways: [&dyn Fn(&&NextHop) -> bool; 4] =
        [&|hop| pending.contains(&hop.face_id), &|hop| hop.is_silent && !is_nack, &|hop| hop.is_chosen, &|_| true];
    let found = ways.iter().map(|is_asked| usable().filter(is_asked).collect::<Vec<_>>()).find(|hops| !hops.is_empty());
    let asked: Vec<String> = found
        .unwrap_or_default()
        .into_iter()
        .map(|hop| format!("face {} ({})", hop.face_id, hop.remote_uri.as_deref().unwrap_or("-")))
        .collect();
    match (&asked[..], is_nack) {
        ([], true) => "the router here sent the Nack: it has no next hop for the name".to_owned(),
        ([], false) => "the router here has no next hop for the name".to_owned(),
        (faces, true) => format!("the Nack came from behind {}", faces.join(" or ")),
        (faces, false) => format!("no answer came from {}", faces.join(" or ")),
    }
}

async fn fetch(client: &Client, name: &NameBuf) -> Result<Tables, Failure> {
    let state = client.state(&[Part::Strategies, Part::Faces, Part::Health, Part::FibUsage]).await?;
    let looks = match state.is_of_namewire() {
        true => look_at(client, name).await.unwrap_or_default(),
        false => Vec::new(),
    };
    Ok(Tables {
        fib: client.list().await?,
        rib: client.list().await?,
        choices: state.strategies,
        faces: state.faces,
        health: state.health,
        looks,
        fib_usage: state.fib_usage,
    })
}

/// Asks the router's workers what they have pending and stored.
async fn look_at(client: &Client, name: &NameBuf) -> Result<Vec<NameLook>, Failure> {
    let mut component = Vec::new();
    name.as_name().write_tlv(&mut component);
    let mut request: NameBuf = "/localhost/nfd/status/name".parse().unwrap_or_default();
    request.push_generic(&component);
    let content = client.dataset(&request).await?;
    decode_dataset(&content).map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))
}

/// The explanation for people: a sentence, and a line for each fact.
pub fn text(explanation: &Explanation) -> String {
    let mut text = format!("{}: {}\n", explanation.name, explanation.outcome);
    if let Some(choice) = &explanation.strategy {
        let _ = writeln!(text, "  strategy  {} (chosen for {})", short(&choice.strategy), choice.name);
    }
    for hop in &explanation.next_hops {
        let remote = hop.remote_uri.as_deref().unwrap_or("-");
        let silent = hop.is_silent.then(|| "no answer to earlier Interests".to_owned());
        let why = hop.excluded.clone().or(silent);
        let why = why.map(|why| format!("; not used: {why}")).unwrap_or_default();
        let answers = hop.answers.as_ref().map(answers_text).unwrap_or_default();
        let _ = writeln!(text, "  next hop  face {} {remote}, cost {}{answers}{why}", hop.face_id, hop.cost);
    }
    for route in &explanation.routes {
        let inherited = if route.inherited { ", inherited" } else { "" };
        let captures = if route.captures { ", hides shorter prefixes" } else { "" };
        let Route { prefix, face_id, origin, cost, .. } = route;
        let _ = writeln!(text, "  route     {prefix} to face {face_id}, by {origin}, cost {cost}{inherited}{captures}");
    }
    explanation.pending.iter().for_each(|pending| write_pending(pending, &mut text));
    explanation.stored.iter().for_each(|stored| write_stored(stored, &mut text));
    if let Some(worker) = explanation.worker {
        let _ = writeln!(text, "  worker    {worker}");
    }
    for hint in &explanation.hints {
        let _ = writeln!(text, "  hint      {hint}");
    }
    text
}

fn answers_text(answers: &Answers) -> String {
    let Answers { answered, unanswered, median_us } = answers;
    let median = median_us.map(|us| format!(", half within {} ms", us as f64 / 1000.0)).unwrap_or_default();
    format!("; answered {answered}{median}, silent {unanswered}")
}

fn write_pending(pending: &PendingLook, text: &mut String) {
    let faces = pending.downstreams.iter().map(FaceId::to_string).collect::<Vec<_>>().join(", ");
    let flags = match (pending.can_be_prefix, pending.must_be_fresh) {
        (false, false) => "",
        (true, false) => " (CanBePrefix)",
        (false, true) => " (MustBeFresh)",
        (true, true) => " (CanBePrefix, MustBeFresh)",
    };
    let _ = writeln!(text, "  pending   for face {faces}{flags}, expires in {}", quantity::ms(pending.expires_ms));
    for asked in &pending.upstreams {
        let failure = asked.failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default();
        let ago = quantity::ms(asked.sent_ms_ago);
        let _ = writeln!(text, "            face {} was asked {ago} ago{failure}", asked.face);
    }
}

fn write_stored(stored: &Stored, text: &mut String) {
    let StoredLook { name, bytes, fresh_ms } = &stored.data;
    let fresh = match *fresh_ms {
        0 => "stale".to_owned(),
        fresh_ms => format!("fresh for {}", quantity::ms(fresh_ms)),
    };
    let needs = if stored.needs_can_be_prefix { "; answers only with CanBePrefix" } else { "" };
    let _ = writeln!(text, "  stored    {} ({}, {fresh}{needs})", name, quantity::bytes(*bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::nfd::{StrategyChoice, UpstreamLook};

    /// The story: all pings went to a next hop that was silent, and the other one, which had not been asked, was named.
    #[test]
    fn who_was_asked_is_to_blame() {
        let hop = |face_id: u64, is_chosen, is_silent| NextHop {
            face_id,
            cost: 0,
            remote_uri: None,
            local_uri: None,
            excluded: None,
            is_chosen,
            is_silent,
            answers: None,
        };
        let mut explanation = Explanation {
            name: "/a".to_owned(),
            strategy: None,
            prefix: None,
            mistaken: false,
            next_hops: vec![hop(257, false, true), hop(259, true, false)],
            routes: Vec::new(),
            worker: None,
            pending: Vec::new(),
            stored: Vec::new(),
            outcome: String::new(),
            hints: Vec::new(),
        };
        assert_eq!(culprit(&explanation, false), "no answer came from face 257 (-)");
        assert_eq!(culprit(&explanation, true), "the Nack came from behind face 259 (-)");
        let upstreams = vec![UpstreamLook { face: FaceId(259), sent_ms_ago: 10, failure: None }];
        explanation.pending.push(PendingLook { upstreams, ..PendingLook::default() });
        assert_eq!(culprit(&explanation, false), "no answer came from face 259 (-)");
        explanation.next_hops.clear();
        assert_eq!(culprit(&explanation, false), "the router here has no next hop for the name");
    }

    #[test]
    fn each_fact_has_a_line() {
        let explanation = Explanation {
            name: "/a/b".to_owned(),
            strategy: Some(StrategyChoice {
                name: NameBuf::new(),
                strategy: "/localhost/nfd/strategy/best-route/v=5".parse().unwrap(),
            }),
            prefix: Some("/a".to_owned()),
            mistaken: false,
            next_hops: vec![NextHop {
                face_id: 301,
                cost: 5,
                remote_uri: Some("udp4://192.0.2.2:6363".to_owned()),
                local_uri: None,
                excluded: None,
                is_chosen: true,
                is_silent: false,
                answers: Some(Answers { answered: 9, unanswered: 1, median_us: Some(1500) }),
            }],
            routes: vec![Route {
                prefix: "/a".to_owned(),
                face_id: 301,
                origin: "static".to_owned(),
                cost: 5,
                inherited: false,
                captures: true,
            }],
            worker: Some(1),
            pending: vec![PendingLook {
                can_be_prefix: true,
                expires_ms: 2500,
                downstreams: vec![FaceId(302), FaceId(303)],
                upstreams: vec![UpstreamLook {
                    face: FaceId(301),
                    sent_ms_ago: 1500,
                    failure: Some("Nack NoRoute".to_owned()),
                }],
                ..PendingLook::default()
            }],
            stored: vec![Stored {
                data: StoredLook { name: "/a/b/v=1".parse().unwrap(), bytes: 512, fresh_ms: 0 },
                needs_can_be_prefix: true,
            }],
            outcome: "it goes somewhere".to_owned(),
            hints: vec!["do this".to_owned()],
        };
        let expected = [
            "/a/b: it goes somewhere",
            "  strategy  best-route (chosen for /)",
            "  next hop  face 301 udp4://192.0.2.2:6363, cost 5; answered 9, half within 1.5 ms, silent 1",
            "  route     /a to face 301, by static, cost 5, hides shorter prefixes",
            "  pending   for face 302, 303 (CanBePrefix), expires in 2 s",
            "            face 301 was asked 1 s ago: Nack NoRoute",
            "  stored    /a/b/v=1 (512 B, stale; answers only with CanBePrefix)",
            "  worker    1",
            "  hint      do this",
        ];
        assert_eq!(text(&explanation).lines().collect::<Vec<_>>(), expected);
    }
}
