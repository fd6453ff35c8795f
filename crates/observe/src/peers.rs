//! Peers: the other routers of the view Network, read from their observers.
//!
//! Question: how does a page of this router show others, when a browser may not read their observers?
//!
//! Contract: this observer asks, and only the addresses of [`crate::ObserveConfig::peers`], only for their summary and
//! for explanations, on the observer's thread. It asks while a client does, and at no other time: each peer at most
//! once in [`SUMMARY_AGE`] for its summary, and as often for an explanation, however many clients there are. A client
//! cannot name an address. A peer that does not answer is shown with the reason; no client waits longer than
//! [`PATIENCE`] for it.
//!
//! Counted for each peer: questions, answers, and failures by name. A client is refused an explanation if
//! [`EXPLAINING_MAX`] others wait for one; that is counted, too.
//!
//! Limits: [`ROUTERS_MAX`] peers, answers as in `namewire_network::reading`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use namewire_network::ROUTERS_MAX;
use namewire_network::fate::{Asked, Explained, Fate};
use namewire_network::links::Links;
use namewire_network::network::{Network, Watch, Watched};
use namewire_network::reading::{self, Problem, Reason};
use namewire_network::summary::Summary;
use namewire_node_model::observer_address::ObservedPeer;
use namewire_packet::NameBuf;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::request::Refusal;

/// A summary of this age is shown again.
const SUMMARY_AGE: Duration = Duration::from_secs(1);
/// The least time between two explanations.
const EXPLANATION_PAUSE: Duration = Duration::from_secs(1);
/// How long a peer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many clients may wait for explanations.
const EXPLAINING_MAX: usize = 8;

/// See the module.
pub(crate) struct Peers {
    started: Instant,
    here: RefCell<Watch>,
    peers: Vec<Rc<Peer>>,
    /// The last explanation, for clients that ask the same.
    explained: Mutex<Option<Kept>>,
    explaining: Cell<usize>,
    refused: Cell<u64>,
}

/// A router that is read.
struct Peer {
    named: ObservedPeer,
    watch: RefCell<Watch>,
    /// When it was asked for its summary. The client that asked may have left since.
    asked: Mutex<Option<Instant>>,
    counts: RefCell<PeerCounts>,
}

struct Kept {
    at: Instant,
    name: String,
    answer: Bytes,
}

/// How often a peer was asked, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct PeerCounts {
    /// What it is called.
    pub(crate) name: String,
    /// Questions.
    pub(crate) asked: u64,
    /// Answers.
    pub(crate) answered: u64,
    /// Failures, by name.
    pub(crate) failed: BTreeMap<&'static str, u64>,
}

/// What `/network.json` answers. The first router is this one.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    network: &'a Network,
    /// How many peers the operator has named.
    peer_count: usize,
    peers: Vec<PeerCounts>,
    explanations_refused: u64,
}

impl Peer {
    fn count<T>(&self, answer: &Result<T, Problem>) {
        let mut counts = self.counts.borrow_mut();
        counts.asked += 1;
        match answer {
            Ok(_) => counts.answered += 1,
            Err(problem) => *counts.failed.entry(problem.reason.name()).or_default() += 1,
        }
    }

    /// Asks for its summary, unless that is new.
    async fn refresh(&self, started: Instant) {
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|asked| asked.elapsed() < SUMMARY_AGE) {
            return;
        }
        *asked = Some(Instant::now());
        let answer = reading::summary(self.named.address(), PATIENCE).await;
        self.count(&answer);
        self.watch.borrow_mut().push(started.elapsed(), answer);
    }

    async fn explain(&self, name: &str) -> Result<Explained, Problem> {
        let answer = reading::explanation(self.named.address(), name, PATIENCE).await;
        self.count(&answer);
        answer
    }
}

impl Peers {
    /// The first [`ROUTERS_MAX`] of these peers.
    pub(crate) fn new(peers: &[ObservedPeer]) -> Self {
        let peer = |named: &ObservedPeer| {
            let (name, place) = (named.label(), named.address().to_string());
            let counts = PeerCounts { name: name.clone(), ..PeerCounts::default() };
            Rc::new(Peer {
                named: named.clone(),
                watch: RefCell::new(Watch::new(name, place)),
                asked: Mutex::new(None),
                counts: RefCell::new(counts),
            })
        };
        Peers {
            started: Instant::now(),
            here: RefCell::new(Watch::new("this router", "")),
            peers: peers.iter().take(ROUTERS_MAX).map(peer).collect(),
            explained: Mutex::new(None),
            explaining: Cell::new(0),
            refused: Cell::new(0),
        }
    }

    /// How often each was asked.
    pub(crate) fn counts(&self) -> Vec<PeerCounts> {
        self.peers.iter().map(|peer| peer.counts.borrow().clone()).collect()
    }

    /// How many explanations were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// All routers and their links, as JSON. `here` is what this one says.
    pub(crate) async fn network(&self, here: Result<Summary, &'static str>) -> Vec<u8> {
        let network = self.read(here).await;
        let (peers, explanations_refused) = (self.counts(), self.refused());
        json(&Shown { network: &network, peer_count: self.peers.len(), peers, explanations_refused })
    }

    async fn read(&self, here: Result<Summary, &'static str>) -> Network {
        let mut asking = JoinSet::new();
        for peer in &self.peers {
            let (peer, started) = (Rc::clone(peer), self.started);
            asking.spawn_local(async move { peer.refresh(started).await });
        }
        while asking.join_next().await.is_some() {}
        let here = here.map_err(|why| Problem::new(Reason::Slow, why));
        self.here.borrow_mut().push(self.started.elapsed(), here);
        let watched = self.peers.iter().map(|peer| peer.watch.borrow().shown().clone());
        Network::of([self.here.borrow().shown().clone()].into_iter().chain(watched).collect())
    }

    /// What happens to an Interest for `name` at all routers, as JSON. `explained` is what this one says.
    pub(crate) async fn explain(
        &self,
        name: NameBuf,
        here: Result<Summary, &'static str>,
        explained: Result<Explained, Problem>,
    ) -> Result<Bytes, Refusal> {
        if self.explaining.get() >= EXPLAINING_MAX {
            self.refused.set(self.refused.get() + 1);
            let why = format!("{EXPLAINING_MAX} others wait for explanations of several routers; try again.");
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        let _turn = Turn::take(&self.explaining);
        let text = name.to_string();
        let mut kept = self.explained.lock().await;
        if let Some(kept) = kept.as_ref() {
            if kept.name == text && kept.at.elapsed() < EXPLANATION_PAUSE {
                return Ok(kept.answer.clone());
            }
            sleep_until(kept.at + EXPLANATION_PAUSE).await;
        }
        // Noted before the questions: a client that leaves must not let the next one ask at once.
        *kept = Some(Kept { at: Instant::now(), name: String::new(), answer: Bytes::new() });
        let network = self.read(here).await;
        let answers = self.ask(&network, &text, explained).await;
        let asked: Vec<Asked<'_>> = network
            .routers
            .iter()
            .zip(answers)
            .map(|(router, explained)| Asked { name: &router.name, explained, summary: router.said() })
            .collect();
        let links = Links::between(&network.routers.iter().map(Watched::present).collect::<Vec<_>>());
        let answer = Bytes::from(json(&Fate::of(&name, &asked, &links)));
        *kept = Some(Kept { at: Instant::now(), name: text, answer: answer.clone() });
        Ok(answer)
    }

    /// The explanation of each router of the network. The first is this router.
    async fn ask(
        &self,
        network: &Network,
        name: &str,
        here: Result<Explained, Problem>,
    ) -> Vec<Result<Explained, Problem>> {
        let mut asking = JoinSet::new();
        for (index, router) in network.routers.iter().enumerate().skip(1) {
            let peer = self.peers.iter().find(|peer| peer.named.address().to_string() == router.place).cloned();
            let (known, name) = (router.problem.clone(), name.to_owned());
            asking.spawn_local(async move {
                // Who says nothing of itself explains nothing.
                let answer = match (peer, known) {
                    (Some(peer), None) => peer.explain(&name).await,
                    (_, problem) => Err(problem.unwrap_or_else(|| Problem::new(Reason::Unreachable, "it is gone"))),
                };
                (index, answer)
            });
        }
        let silent = || Err(Problem::new(Reason::Slow, "it did not answer"));
        let mut answers: Vec<_> = network.routers.iter().map(|_| silent()).collect();
        if let Some(first) = answers.first_mut() {
            *first = here;
        }
        while let Some(Ok((index, answer))) = asking.join_next().await {
            answers[index] = answer;
        }
        answers
    }
}

/// One of the clients that wait.
struct Turn<'a>(&'a Cell<usize>);

impl<'a> Turn<'a> {
    fn take(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Turn(count)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

fn json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("text keys and plain values are JSON")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use namewire_network::summary::FaceSummary;
    use serde_json::Value;
    use tokio::task::LocalSet;

    use super::*;

    /// A peer that counts its requests, and answers those for its summary and for explanations with these texts.
    fn peer(summary: Value, explanation: Value) -> (ObservedPeer, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let named = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            for mut socket in listener.incoming().map_while(Result::ok) {
                let mut head = Vec::new();
                let mut bytes = [0; 1024];
                while !head.ends_with(b"\r\n\r\n") {
                    match socket.read(&mut bytes) {
                        Ok(read @ 1..) => head.extend_from_slice(&bytes[..read]),
                        _ => break,
                    }
                }
                count.fetch_add(1, Ordering::Relaxed);
                let body = match head.starts_with(b"GET /summary.json ") {
                    true => summary.to_string(),
                    false => explanation.to_string(),
                };
                let _ = write!(socket, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            }
        });
        (named, asked)
    }

    fn summary(instance: &str, local: &str, remote: &str) -> Summary {
        let face = FaceSummary { id: 7, local: local.into(), remote: remote.into(), ..FaceSummary::default() };
        Summary { instance: instance.into(), faces: vec![face], ..Summary::default() }
    }

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    async fn in_local(test: impl Future<Output = ()>) {
        LocalSet::new().run_until(test).await;
    }

    const HERE: [&str; 2] = ["udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363"];

    /// Time does not pass by itself here, so all looks are within one second.
    #[tokio::test]
    async fn many_clients_ask_a_peer_once_a_second_and_nobody_asks_without_a_client() {
        in_local(async {
            let [local, remote] = HERE;
            let (named, asked) =
                peer(serde_json::to_value(summary("there", remote, local)).unwrap(), serde_json::json!({}));
            let peers = Peers::new(&[named]);
            assert_eq!(asked.load(Ordering::Relaxed), 0);
            let here = || Ok(summary("here", local, remote));
            let began = Instant::now();
            for _ in 0..50 {
                let (one, other) = tokio::join!(peers.network(here()), peers.network(here()));
                assert_eq!(parsed(&one)["links"], parsed(&other)["links"]);
            }
            let seconds = began.elapsed().as_secs() as usize;
            let count = asked.load(Ordering::Relaxed);
            assert!((1..=1 + seconds).contains(&count), "{count} questions in {seconds} s");
            let shown = parsed(&peers.network(here()).await);
            let link = &shown["links"][0];
            assert_eq!((&link["a"], &link["b"], &link["b_face"]), (&0.into(), &1.into(), &7.into()), "{shown}");
            assert_eq!(shown["peers"][0]["failed"], serde_json::json!({}));
        })
        .await;
    }

    #[tokio::test]
    async fn a_peer_that_is_away_is_shown_with_its_reason_and_counted() {
        in_local(async {
            let closed = TcpListener::bind("127.0.0.1:0").unwrap();
            let away = format!("lab=http://{}", closed.local_addr().unwrap()).parse().unwrap();
            drop(closed);
            let (strange, _) = peer(Value::from("no summary"), Value::Null);
            let peers = Peers::new(&[away, strange]);
            let shown = parsed(&peers.network(Err("The router has stopped.")).await);
            let of = |index: usize, key: &str| shown["routers"][index][key].clone();
            assert_eq!((of(0, "level"), of(1, "name")), ("unknown".into(), "lab".into()));
            assert_eq!(shown["routers"][1]["problem"]["reason"], "unreachable");
            assert_eq!(shown["routers"][2]["problem"]["reason"], "not-understood");
            let counts = peers.counts();
            assert_eq!((counts[0].asked, counts[0].failed.get("unreachable")), (1, Some(&1)));
            assert_eq!((counts[1].answered, counts[1].failed.get("not-understood")), (0, Some(&1)));
        })
        .await;
    }

    #[tokio::test]
    async fn an_explanation_follows_the_path_and_is_shared() {
        in_local(async {
            let [local, remote] = HERE;
            let there = serde_json::to_value(summary("there", remote, local)).unwrap();
            let (named, asked) = peer(there, serde_json::json!({ "outcome": "no route covers the name" }));
            let peers = Peers::new(&[format!("lab={named}").parse().unwrap()]);
            let explain = async || {
                let hop = serde_json::json!({ "next_hops": [{ "face_id": 7, "is_chosen": true }] });
                let explained = serde_json::from_value(hop).unwrap();
                let name = "/a".parse().unwrap();
                peers.explain(name, Ok(summary("here", local, remote)), Ok(explained)).await.unwrap()
            };
            let (one, other) = tokio::join!(explain(), explain());
            let fate = parsed(&one);
            assert_eq!(fate["steps"][0]["to"][0]["router"], 1);
            let verdict = "Dropped at lab, where this router sends it: no route covers the name.";
            assert_eq!(fate["verdict"], serde_json::json!([verdict]));
            assert_eq!(parsed(&other)["verdict"], fate["verdict"]);
            assert!(asked.load(Ordering::Relaxed) <= 4, "one summary and one explanation a second");
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn few_wait_for_explanations() {
        in_local(async {
            let peers = Rc::new(Peers::new(&[]));
            let explain = |index: usize| {
                let peers = Rc::clone(&peers);
                async move {
                    let name = format!("/{index}").parse().unwrap();
                    let here = summary("here", "", "");
                    peers.explain(name, Ok(here), Ok(Explained::default())).await.map_err(|refusal| refusal.status)
                }
            };
            let began = Instant::now();
            let mut asking = JoinSet::new();
            (0..EXPLAINING_MAX + 3).for_each(|index| drop(asking.spawn_local(explain(index))));
            let answers = asking.join_all().await;
            let refused = answers.iter().filter(|answer| answer.is_err()).count();
            // The first waits for nothing, and is gone when the others come.
            assert_eq!((refused, peers.refused()), (2, 2));
            assert_eq!(began.elapsed(), EXPLANATION_PAUSE * EXPLAINING_MAX as u32, "one a second");
            assert!(explain(99).await.is_ok(), "there is room again");
        })
        .await;
    }
}
