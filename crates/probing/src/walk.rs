//! The walk: traceroutes with HopLimit 1, 2, 3 …, several at a time.
//!
//! It stops at the first hop where the way ends by what the forwarder says, at a loop, or after [`MAX_GAP`] silent
//! hops.
//! Then branches follow: where a hop has other next hops, path labels lead the probes there (RFC 9531).
//!
//! Time: a hop that does not answer costs the time-out once, not once a hop, since [`WINDOW`] hops are asked together.
//! It costs less if a farther hop answers. A probe is sent once more after [`AGAIN`], if it has no answer by then.
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
use tokio::sync::watch;

/// Hops that are asked together.
pub const WINDOW: usize = 8;

/// After so many silent hops, nothing is expected behind them.
pub const MAX_GAP: usize = 7;

/// Most branches that are followed.
pub const MAX_BRANCHES: usize = 16;

/// When a probe is sent again.
const AGAIN: Duration = Duration::from_millis(150);

/// A hop has this part of the time-out to answer after a farther one did, or [`PATIENCE`] round trips of that one. So
/// has a large packet, after a small one.
const SHORT: f64 = 0.4;

/// See [`SHORT`].
const PATIENCE: u32 = 10;

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
    let branches = if options.branches { branches_of(&first, options.max_hops) } else { Vec::new() };
    let followed = branches.into_iter().map(|(branch, path)| async move {
        let from = branch.distance + 1;
        walker.way(Some(branch), from, Some(path)).await
    });
    let followed: Result<Vec<Route>, ExpressError> = join_all(followed).await.into_iter().collect();
    Ok([vec![first], followed?].concat())
}

/// The next hops that the first way does not take, each with the labels that lead there.
fn branches_of(way: &Route, max_hops: u8) -> Vec<(Branch, PathLabel)> {
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
    branches.retain(|(branch, _)| branch.distance < max_hops);
    branches.truncate(MAX_BRANCHES);
    branches
}

impl Walker<'_> {
    /// Asks the hops from `from` on, along `path`. Hops of the first way that answer are asked by large packets, too.
    async fn way(&self, branch: Option<Branch>, from: u8, path: Option<PathLabel>) -> Result<Route, ExpressError> {
        let (farthest, heard) = watch::channel(Heard::default());
        let (mut asked, mut asked_again) = (FuturesUnordered::new(), FuturesUnordered::new());
        let mut hops: Vec<Hop> = Vec::new();
        let mut next = from;
        loop {
            while asked.len() < WINDOW && next <= self.options.max_hops && !is_over(&hops, from) {
                asked.push(self.hop(next, path, heard.clone()));
                next += 1;
            }
            let Some(hop) = asked.next().await else { break };
            let hop = hop?;
            if let Some(answer) = &hop.answer {
                let rtt = Duration::from_secs_f64(answer.rtt_ms / 1000.0);
                farthest.send_if_modified(|heard| heard.note(hop.distance, rtt));
                if branch.is_none()
                    && let Some(bytes) = self.options.large
                {
                    asked_again.push(self.takes_large(hop.distance, bytes, rtt));
                }
            }
            hops.push(hop);
            hops.sort_by_key(|hop| hop.distance);
            if is_over(&hops, from) {
                break;
            }
        }
        let mut hops = until_end(hops, from);
        while let Some(look) = asked_again.next().await {
            let (distance, takes_large) = look?;
            hops.iter_mut().filter(|hop| hop.distance == distance).for_each(|hop| hop.takes_large = takes_large);
        }
        Ok(Route { branch, hops })
    }

    /// Asks one hop. It is silent if it lets the time-out pass, or if a farther one has long answered.
    async fn hop(
        &self,
        distance: u8,
        path: Option<PathLabel>,
        heard: watch::Receiver<Heard>,
    ) -> Result<Hop, ExpressError> {
        let answer = tokio::select! {
            answer = self.ask(distance, path) => answer,
            () = self.overtaken(heard, distance) => return Ok(Hop::at(distance)),
        };
        match answer {
            Ok(answer) => Ok(Hop { answer: Answer::of(&answer, now_ms()), ..Hop::at(distance) }),
            Err(ExpressError::Nack(reason)) => Ok(Hop::refused(distance, reason)),
            Err(ExpressError::Timeout(_)) => Ok(Hop::at(distance)),
            Err(error) => Err(error),
        }
    }

    fn request(&self, distance: u8, timeout: Duration) -> ProbeRequest {
        let lifetime_ms = timeout.as_millis() as u64;
        let request = ProbeRequest::new(ProbeKind::Traceroute, self.target.clone());
        ProbeRequest { hop_limit: Some(distance), lifetime_ms, ..request }
    }

    /// Sends a probe, and once more if it may be lost.
    async fn ask(&self, distance: u8, path: Option<PathLabel>) -> Result<ProbeAnswer, ExpressError> {
        let timeout = self.options.timeout;
        let again = AGAIN.min(timeout / 2);
        let [once, twice] =
            [timeout, timeout - again].map(|timeout| ProbeRequest { path, ..self.request(distance, timeout) });
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

    /// Whether a packet of this size gets to a hop and back, which a small one did in `rtt`.
    async fn takes_large(&self, distance: u8, bytes: usize, rtt: Duration) -> Result<(u8, Option<bool>), ExpressError> {
        let timeout = self.patience(rtt);
        let request = ProbeRequest { bytes: Some(bytes), ..self.request(distance, timeout) };
        let mut takes_large = None;
        for _ in 0..2 {
            takes_large = match self.client.probe(&request).await {
                Ok(answer) => Some(answer.reply.is_some()),
                Err(ExpressError::Timeout(_)) => Some(false),
                Err(ExpressError::Nack(_)) => None,
                Err(error) => return Err(error),
            };
            if takes_large != Some(false) {
                break;
            }
        }
        Ok((distance, takes_large))
    }

    /// How long to wait for what has taken `rtt` elsewhere.
    fn patience(&self, rtt: Duration) -> Duration {
        self.options.timeout.mul_f64(SHORT).max(rtt * PATIENCE).min(self.options.timeout)
    }

    /// Ends when a farther hop has answered so long ago that this one does not answer.
    async fn overtaken(&self, mut heard: watch::Receiver<Heard>, distance: u8) {
        let farther = heard.wait_for(|heard| heard.distance > distance).await.map(|heard| *heard);
        match farther {
            Ok(Heard { rtt, .. }) => tokio::time::sleep(self.patience(rtt)).await,
            Err(_) => std::future::pending().await, // the walk is over
        }
    }
}

/// The farthest hop that has answered, and how long that took.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    distance: u8,
    rtt: Duration,
}

impl Heard {
    /// Notes an answer; true if it is of a farther hop.
    fn note(&mut self, distance: u8, rtt: Duration) -> bool {
        let is_farther = distance > self.distance;
        if is_farther {
            *self = Heard { distance, rtt };
        }
        is_farther
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
        let branches = branches_of(&Route { branch: None, hops }, 30);
        let shown: Vec<(u8, u64, Vec<u16>)> =
            branches.iter().map(|(branch, path)| (branch.distance, branch.face_id, path.labels().collect())).collect();
        assert_eq!(shown, [(2, 301, vec![8, 1]), (2, 302, vec![9, 1])]);
    }
}
