//! The walk: traceroutes with HopLimit 1, 2, 3 …, several at a time.
//!
//! It stops at the first hop where the way ends by what the forwarder says, at a loop, or after [`MAX_GAP`] silent
//! hops.
//! Then branches follow: where a hop has other next hops, path labels lead the probes there (RFC 9531).
//!
//! Time: a hop that does not answer costs the time-out once, not once a hop, since [`WINDOW`] hops are asked together.
//! A probe that is lost is sent once more after [`AGAIN`] of the time-out.
//!
//! Limits: [`WalkOptions::max_hops`]; [`MAX_BRANCHES`] branches; [`WINDOW`] probes under way for each.

use crate::hop::{Answer, Branch, Hop, Route};
use futures_util::{
    future::join_all,
    stream::{FuturesUnordered, StreamExt},
};
use namewire_client::{
    Client, ExpressError, NackReason, NameBuf, PathLabel, PathMode, ProbeAnswer, ProbeKind, ProbeRequest,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Hops that are asked together.
pub const WINDOW: usize = 8;

/// After so many silent hops, nothing is expected behind them.
pub const MAX_GAP: usize = 7;

/// Most branches that are followed.
pub const MAX_BRANCHES: usize = 16;

/// When a probe is sent again, as a part of the time-out.
const AGAIN: f64 = 0.4;

/// How to walk.
#[derive(Clone, Debug)]
pub struct WalkOptions {
    /// Most hops.
    pub max_hops: u8,
    /// How long to wait for the answer of a hop.
    pub timeout: Duration,
    /// Follow branches.
    pub branches: bool,
    /// Then see which hops large packets reach: the size in bytes.
    pub large: Option<usize>,
}

impl Default for WalkOptions {
    fn default() -> Self {
        WalkOptions { max_hops: 30, timeout: Duration::from_millis(1000), branches: true, large: Some(8000) }
    }
}

/// One walk.
struct Walker<'a> {
    client: &'a Client,
    target: &'a NameBuf,
    options: &'a WalkOptions,
}

/// Walks towards `target`: the way that an Interest would take, first, and then the branches off it.
///
/// # Errors
/// If the connection to the forwarder is lost.
pub async fn walk(client: &Client, target: &NameBuf, options: &WalkOptions) -> Result<Vec<Route>, ExpressError> {
    let walker = &Walker { client, target, options };
    let first = walker.way(None, 1, None).await?;
    let branches = if options.branches { branches_of(&first) } else { Vec::new() };
    let followed = branches.into_iter().map(|(branch, path)| async move {
        let from = branch.distance + 1;
        walker.way(Some(branch), from, Some(path)).await
    });
    let (large, others) = tokio::join!(walker.large(&first), join_all(followed));
    let mut routes = vec![Route { hops: large?, ..first }];
    for route in others {
        routes.push(route?);
    }
    Ok(routes)
}

/// The next hops that the first way does not take, each with the labels that lead there.
fn branches_of(way: &Route) -> Vec<(Branch, PathLabel)> {
    let mut branches = Vec::new();
    for hop in &way.hops {
        let Some(answer) = hop.answer.as_ref().filter(|answer| answer.goes_on()) else { continue };
        let Some(path) = &answer.path else { continue };
        let taken = answer.chosen().map(|hop| hop.face_id);
        for other in answer.usable().filter(|other| Some(other.face_id) != taken && !other.is_application) {
            let labels: Vec<u16> = [other.label as u16].into_iter().chain(path.iter().copied()).collect();
            let branch = Branch { distance: hop.distance, router: answer.router.clone(), face_id: other.face_id.0 };
            branches.push((branch, PathLabel::of(PathMode::Strict, &labels)));
        }
    }
    branches.truncate(MAX_BRANCHES);
    branches
}

impl Walker<'_> {
    /// Asks the hops from `from` on, along `path`.
    async fn way(&self, branch: Option<Branch>, from: u8, path: Option<PathLabel>) -> Result<Route, ExpressError> {
        let mut hops: Vec<Hop> = Vec::new();
        let mut asked = FuturesUnordered::new();
        let mut next = from;
        loop {
            while asked.len() < WINDOW && next <= self.options.max_hops && !is_over(&hops, from) {
                asked.push(self.hop(next, path));
                next += 1;
            }
            let Some(hop) = asked.next().await else { break };
            hops.push(hop?);
            hops.sort_by_key(|hop| hop.distance);
            if is_over(&hops, from) {
                break;
            }
        }
        Ok(Route { branch, hops: until_end(hops, from) })
    }

    /// Asks one hop. A probe without an answer is sent once more.
    async fn hop(&self, distance: u8, path: Option<PathLabel>) -> Result<Hop, ExpressError> {
        let answer = match self.ask(distance, path, None).await {
            Ok(answer) => answer,
            Err(ExpressError::Nack(reason)) => return Ok(Hop::refused(distance, reason)),
            Err(ExpressError::Timeout(_)) => return Ok(Hop::at(distance)),
            Err(error) => return Err(error),
        };
        Ok(Hop { answer: Answer::of(&answer, now_ms()), ..Hop::at(distance) })
    }

    async fn ask(
        &self,
        distance: u8,
        path: Option<PathLabel>,
        bytes: Option<usize>,
    ) -> Result<ProbeAnswer, ExpressError> {
        let first = self.options.timeout;
        let request = |timeout: Duration| ProbeRequest {
            hop_limit: Some(distance),
            lifetime_ms: timeout.as_millis() as u64,
            path,
            bytes,
            ..ProbeRequest::new(ProbeKind::Traceroute, self.target.clone())
        };
        let again = first.mul_f64(AGAIN);
        let (once, twice) = (request(first), request(first - again));
        let second = async {
            tokio::time::sleep(again).await;
            self.client.probe(&twice).await
        };
        let once = self.client.probe(&once);
        tokio::pin!(once, second);
        tokio::select! {
            answer = &mut once => answer,
            answer = &mut second => match answer {
                // The first may still come, or its time-out does.
                Err(ExpressError::Timeout(_)) => once.await,
                answer => answer,
            },
        }
    }

    /// Asks the hops that answered once more, by large packets.
    async fn large(&self, way: &Route) -> Result<Vec<Hop>, ExpressError> {
        let Some(bytes) = self.options.large else { return Ok(way.hops.clone()) };
        let looks = way.hops.iter().map(|hop| async move {
            if hop.answer.is_none() {
                return Ok(hop.clone());
            }
            let takes_large = match self.ask(hop.distance, None, Some(bytes)).await {
                Ok(answer) => Some(answer.reply.is_some()),
                Err(ExpressError::Timeout(_)) => Some(false),
                Err(ExpressError::Nack(_)) => None,
                Err(error) => return Err(error),
            };
            Ok(Hop { takes_large, ..hop.clone() })
        });
        join_all(looks).await.into_iter().collect()
    }
}

/// The hops that are known without a gap, nearest first.
fn known(hops: &[Hop], from: u8) -> impl Iterator<Item = &Hop> {
    hops.iter().zip(from..).take_while(|(hop, distance)| hop.distance == *distance).map(|(hop, _)| hop)
}

/// Whether the hops that are known tell that nothing follows.
fn is_over(hops: &[Hop], from: u8) -> bool {
    let known: Vec<&Hop> = known(hops, from).collect();
    let ends = known.iter().enumerate().any(|(place, hop)| ends_at(&known[..place], hop));
    let silent = known.iter().rev().take_while(|hop| hop.answer.is_none() && hop.nack.is_none()).count();
    ends || silent >= MAX_GAP
}

/// Whether the way ends at a hop, with these before it.
fn ends_at(before: &[&Hop], hop: &Hop) -> bool {
    if matches!(hop.nack, Some(NackReason::NoRoute | NackReason::Duplicate)) {
        return true;
    }
    let Some(answer) = &hop.answer else { return false };
    !answer.goes_on() || before.iter().filter_map(|hop| hop.answer.as_ref()).any(|earlier| earlier.is_same(answer))
}

/// The hops up to the one that ends the way. Silent ones at its end are left out: nothing tells that they exist.
fn until_end(hops: Vec<Hop>, from: u8) -> Vec<Hop> {
    let known: Vec<&Hop> = known(&hops, from).collect();
    let end = (0..known.len()).find(|&place| ends_at(&known[..place], known[place]));
    let last_heard = known.iter().rposition(|hop| hop.answer.is_some() || hop.nack.is_some());
    let count = end.or(last_heard).map_or(0, |place| place + 1);
    hops.into_iter().take(count).collect()
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_client::ReplyCode;
    use namewire_packet::{FaceId, nfd::ProbeNextHop};

    fn answering(distance: u8, code: ReplyCode, next_hops: &[(u64, u64)]) -> Hop {
        let next_hops = next_hops.iter().map(|&(face, label)| ProbeNextHop {
            face_id: FaceId(face),
            label,
            ..ProbeNextHop::default()
        });
        let answer = Answer {
            router: format!("/r{distance}"),
            instance: Some(distance.into()),
            software: None,
            rtt_ms: 1.0,
            clock_ahead_ms: None,
            code,
            prefix: Some("/".to_owned()),
            strategy: None,
            next_hops: next_hops.collect(),
            outcome: None,
            hints: Vec::new(),
            refusals: Vec::new(),
            stored: None,
            path: Some((1..distance.into()).rev().collect()),
        };
        Hop { answer: Some(answer), ..Hop::at(distance) }
    }

    fn forwards(distance: u8) -> Hop {
        answering(distance, ReplyCode::HopLimit, &[(300, 7)])
    }

    #[test]
    fn the_walk_goes_on_until_the_hops_without_a_gap_tell_the_end() {
        let target = answering(4, ReplyCode::Application, &[]);
        // The target's answer came first: hops before it may still answer.
        assert!(!is_over(&[forwards(1), target.clone()], 1));
        let whole = vec![forwards(1), Hop::at(2), forwards(3), target];
        assert!(is_over(&whole, 1));
        let more: Vec<Hop> = whole.into_iter().chain([answering(5, ReplyCode::Application, &[])]).collect();
        assert_eq!(until_end(more, 1).last().map(|hop| hop.distance), Some(4));
    }

    #[test]
    fn silence_ends_the_walk_after_a_gap_and_is_no_hop() {
        let mut hops = vec![forwards(1)];
        hops.extend((2..2 + MAX_GAP as u8 - 1).map(Hop::at));
        assert!(!is_over(&hops, 1));
        hops.push(Hop::at(MAX_GAP as u8 + 1));
        assert!(is_over(&hops, 1));
        assert_eq!(until_end(hops, 1).len(), 1);
        assert!(until_end((1..5).map(Hop::at).collect(), 1).is_empty());
    }

    #[test]
    fn a_nack_and_a_router_that_comes_again_end_the_walk() {
        assert!(is_over(&[forwards(1), Hop::refused(2, NackReason::NoRoute)], 1));
        assert!(!is_over(&[forwards(1), Hop::refused(2, NackReason::Congestion)], 1));
        let again = Hop { distance: 3, ..forwards(1) };
        assert!(is_over(&[forwards(1), forwards(2), again], 1));
    }

    #[test]
    fn branches_lead_where_the_first_way_does_not_go() {
        let hops = vec![forwards(1), answering(2, ReplyCode::HopLimit, &[(300, 7), (301, 8), (302, 9)]), forwards(3)];
        let branches = branches_of(&Route { branch: None, hops });
        let shown: Vec<(u8, u64, Vec<u16>)> =
            branches.iter().map(|(branch, path)| (branch.distance, branch.face_id, path.labels().collect())).collect();
        assert_eq!(shown, [(2, 301, vec![8, 1]), (2, 302, vec![9, 1])]);
    }
}
