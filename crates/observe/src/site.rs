//! Site: which answer each path has.
//!
//! Contract: every request gets exactly one answer. Errors are short texts with the reason. HEAD gets the headers of
//! GET; hyper leaves the body out.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use hyper::header::{ACCEPT, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use namewire_network::fate::Explained;
use namewire_network::reading::{Problem, Reason};
use namewire_network::summary::Summary;
use namewire_node_model::observer_address::ObservedPeer;
use namewire_packet::NameBuf;
use tokio::time::timeout;

use crate::answer::{Answer, EVENT_STREAM, HTML, JSON, TEXT, answer, content_policy, refused};
use crate::body::AnswerBody;
use crate::document;
use crate::keeper::Keeper;
use crate::latest::Unavailable;
use crate::metrics::{Format, ReadPeers, encode_with};
use crate::observer::ObserveConfig;
use crate::peers::Peers;
use crate::request::{self, Refusal};
use crate::source::{Admitted, EXPLAIN_WAIT, NOT_OFFERED, Place, Source};
use crate::summary;
use crate::traces;

const PAGE: &str = include_str!("page.html");
/// How fast a healthy router answers.
const HEALTHY_WAIT: Duration = Duration::from_secs(1);
const PATHS: &str = "/metrics /status.json /summary.json /routes.json /settings.json /history.json /healthz /readyz \
    /explain?name=/example /trace?prefix=/example /network.json /network/explain?name=/example";
const NO_TRACES: &str = "Traces are not allowed here, because they show the names of packets to everyone who reaches \
    this page. The administrator allows them with observe.trace = true. On the command line: namewire trace.";

/// All paths, over one source.
pub(crate) struct Site<S> {
    pub(crate) keeper: Rc<Keeper<S>>,
    shown: Shown,
    peers: Peers,
    /// Tells this router from others, and this start from others.
    instance: String,
    policy: HeaderValue,
}

/// What the configuration lets a site show.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// Whether `/` and `/events` are answered.
    page: bool,
    /// Whether `/trace` is.
    trace: bool,
    /// Whom `/network.json` shows besides this router.
    peers: Vec<ObservedPeer>,
}

impl Shown {
    pub(crate) fn of(config: &ObserveConfig) -> Self {
        Shown { page: config.page, trace: config.trace, peers: config.peers.clone() }
    }
}

/// The addresses of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// Of the listener.
    pub(crate) bound: IpAddr,
    pub(crate) client: IpAddr,
}

impl<S: Source> Site<S> {
    pub(crate) fn new(source: S, shown: &Shown) -> Self {
        Self {
            keeper: Rc::new(Keeper::new(source)),
            shown: shown.clone(),
            peers: Peers::new(&shown.peers),
            instance: format!("{:016x}", RandomState::new().hash_one(SystemTime::now())),
            policy: content_policy(PAGE),
        }
    }

    /// The answer to a request.
    pub(crate) async fn answer(&self, request: &Parts, ends: Ends) -> Answer {
        let answer = match request::check(request, ends.bound) {
            Ok(()) => self.answer_path(request, ends.client).await,
            Err(refusal) => Err(refusal),
        };
        answer.unwrap_or_else(|refusal| refused(&refusal, &self.policy))
    }

    async fn answer_path(&self, request: &Parts, client: IpAddr) -> Result<Answer, Refusal> {
        match request.uri.path() {
            "/" if self.shown.page => Ok(self.whole(HTML, PAGE)),
            "/" => Ok(self.whole(TEXT, format!("Namewire shows: {PATHS}\n"))),
            "/metrics" => self.metrics(request).await,
            "/status.json" => Ok(self.whole(JSON, self.keeper.status().await.map_err(unavailable)?)),
            "/routes.json" => {
                let snapshot = self.keeper.current().await.map_err(unavailable)?;
                Ok(self.whole(JSON, document::routes(&snapshot)))
            }
            "/settings.json" => {
                let settings = self.keeper.settings().await.map_err(unavailable)?;
                Ok(self.whole(JSON, document::settings(&settings)))
            }
            "/history.json" => Ok(self.whole(JSON, self.keeper.past())),
            "/events" if self.shown.page => self.events(&request.method, client),
            "/healthz" => self.health().await,
            "/readyz" => self.readiness().await,
            "/explain" => self.explain(request.uri.query()).await,
            "/summary.json" => {
                let summary = self.summary().await.map_err(unavailable)?;
                Ok(self.whole(JSON, document::summary(&summary)))
            }
            "/network.json" => {
                let here = self.summary().await.map_err(Unavailable::text);
                Ok(self.whole(JSON, self.peers.network(here).await))
            }
            "/network/explain" => self.explain_network(request.uri.query()).await,
            "/trace" => self.trace(request, client).await,
            _ => Err(Refusal::new(StatusCode::NOT_FOUND, format!("Nothing here. There are: {PATHS}"))),
        }
    }

    async fn metrics(&self, request: &Parts) -> Result<Answer, Refusal> {
        let snapshot = self.keeper.current().await.map_err(unavailable)?;
        let accepted: Vec<&str> = request.headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
        let format = Format::accepted(&accepted.join(","));
        let peers = ReadPeers { counts: self.peers.counts(), refused: self.peers.refused() };
        Ok(self.whole(format.content_type(), encode_with(&snapshot, &peers, format)))
    }

    fn events(&self, method: &Method, client: IpAddr) -> Result<Answer, Refusal> {
        if method == Method::HEAD {
            return Ok(self.whole(EVENT_STREAM, ""));
        }
        let stream = AnswerBody::Stream(self.keeper.stream(self.admit(client, Place::Stream)?));
        Ok(answer(StatusCode::OK, EVENT_STREAM, &self.policy, stream))
    }

    async fn health(&self) -> Result<Answer, Refusal> {
        let current = timeout(HEALTHY_WAIT, self.keeper.current()).await;
        current.unwrap_or(Err(Unavailable::Slow)).map_err(unavailable)?;
        Ok(self.whole(TEXT, "ok\n"))
    }

    async fn readiness(&self) -> Result<Answer, Refusal> {
        let snapshot = self.keeper.current().await.map_err(unavailable)?;
        if snapshot.workers.is_empty() {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "No worker runs yet."));
        }
        Ok(self.whole(TEXT, "ready\n"))
    }

    async fn explain(&self, query: Option<&str>) -> Result<Answer, Refusal> {
        let name = request::name_of(query)?;
        let explanation = timeout(EXPLAIN_WAIT, self.keeper.source.explain(name)).await;
        match explanation.map_err(|_| unavailable(Unavailable::Slow))? {
            Ok(value) => Ok(self.whole(JSON, value.to_string())),
            Err(text) if text == NOT_OFFERED => {
                Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, "This router offers no explanations."))
            }
            Err(text) => Err(Refusal::new(StatusCode::BAD_REQUEST, text)),
        }
    }

    /// This router in short. From now on it can tell its rates.
    async fn summary(&self) -> Result<Summary, Unavailable> {
        self.keeper.measure();
        Ok(summary::of(&*self.keeper.current().await?, &self.instance))
    }

    async fn explain_network(&self, query: Option<&str>) -> Result<Answer, Refusal> {
        let text = request::name_of(query)?;
        let refuse = |error| Refusal::new(StatusCode::BAD_REQUEST, format!("{text:?} is no name: {error}"));
        let name: NameBuf = text.parse().map_err(refuse)?;
        let here = self.summary().await.map_err(Unavailable::text);
        let explained = match timeout(EXPLAIN_WAIT, self.keeper.source.explain(text.clone())).await {
            Ok(Ok(value)) => serde_json::from_value(value)
                .map(Explained::bounded)
                .map_err(|error| Problem::new(Reason::NotUnderstood, error.to_string())),
            Ok(Err(why)) => Err(Problem::new(Reason::Refused, why)),
            Err(_) => Err(Problem::new(Reason::Slow, Unavailable::Slow.text())),
        };
        Ok(self.whole(JSON, self.peers.explain(name, here, explained).await?))
    }

    async fn trace(&self, request: &Parts, client: IpAddr) -> Result<Answer, Refusal> {
        if !self.shown.trace {
            return Err(Refusal::new(StatusCode::FORBIDDEN, NO_TRACES));
        }
        let wanted = request::trace_wanted(request.uri.query())?;
        if request.method == Method::HEAD {
            return Ok(self.whole(EVENT_STREAM, ""));
        }
        let place = self.admit(client, Place::Trace)?;
        let stream = AnswerBody::Stream(traces::open(&self.keeper.source, wanted, place).await?);
        Ok(answer(StatusCode::OK, EVENT_STREAM, &self.policy, stream))
    }

    fn admit(&self, client: IpAddr, place: Place) -> Result<Admitted, Refusal> {
        let admitted = self.keeper.source.admit(client, place);
        admitted.map_err(|why| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why))
    }

    fn whole(&self, content_type: &'static str, body: impl Into<hyper::body::Bytes>) -> Answer {
        answer(StatusCode::OK, content_type, &self.policy, AnswerBody::whole(body))
    }
}

fn unavailable(reason: Unavailable) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason.text())
}
