//! Observe: shows a router to its operator over HTTP.
//!
//! Question: how does a person, or a program of theirs, see what a router does, without slowing it down?
//!
//! Contract: the crate knows nothing of the router. It shows the copies that a [`Source`] makes, reads nothing else,
//! and changes nothing. All answers are to GET and HEAD.
//!
//! ```text
//!   browser ─┐   one thread                                           the router
//!   scraper ─┼─► connections ─► answers ─► keeper ─ once a second ──► Source::snapshot
//!   curl    ─┘
//! ```
//!
//! | path | what it answers |
//! | --- | --- |
//! | `/` | a page that shows all of it live |
//! | `/metrics` | OpenMetrics or Prometheus text (docs/reference/metrics.md lists the metrics) |
//! | `/status.json` | the whole snapshot, and the rates of faces |
//! | `/routes.json` | the routes, for the page |
//! | `/settings.json` | the settings in force, their values, and where these came from |
//! | `/history.json` | traffic and drops since the start, for the page |
//! | `/events` | what the page shows, once a second, as Server-Sent Events |
//! | `/healthz` | 200 if the router answers within a second |
//! | `/readyz` | 200 if it answers and has a worker |
//! | `/explain?name=/x` | what the router would do with an Interest for the name |
//! | `/summary.json` | the router in short, for the views of several routers that others have |
//! | `/network.json` | this router and its peers: the routers that the operator has named, with the links between them |
//! | `/network/explain?name=/x` | what each of them would do with an Interest for the name, in the order of its path |
//! | `/trace?prefix=/x&sample=10` | what the router does with packets under the prefix, as Server-Sent Events, if allowed |
//!
//! Cost: one snapshot in ten seconds, and less often as the router grows old. While a client asks, one snapshot per
//! second for rates, and at most four per second for all clients together. The source copies settings only if a client
//! asks for them, at most four times a second.
//!
//! Limits: the source decides how many connections, streams and traces each client may have; a request head of 8 KiB
//! that arrives within 10 s; no request bodies. A client that takes no bytes for 30 s loses its connection. There is no
//! TLS and there are no users: listen on loopback, or put a server in front that has both. A listener on loopback
//! answers only requests that name a loopback host. So no foreign web page can read it through a host name that the
//! page's owner controls (DNS rebinding).
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`snapshot`] | what a node shows |
//! | [`source`] | where snapshots come from |
//! | [`observer`] | listeners, and the thread that serves |
//! | `connections` | connections and their limits |
//! | `stall` | the end of connections whose clients read nothing |
//! | `request` | which requests are refused, and the query |
//! | `site` | which answer each path has |
//! | `answer`, `body` | answers, their headers and bytes |
//! | `keeper` | the newest snapshot and settings |
//! | `latest` | a copy that all clients share |
//! | `traces` | what the router decides about packets, as it happens |
//! | `timeline` | means since the start |
//! | `summary` | this router in short |
//! | `peers` | the routers that the operator has named, read from their observers |
//! | `document` | the JSON documents |
//! | [`metrics`] | the text of `/metrics` |

mod answer;
mod body;
mod connections;
mod document;
#[cfg(test)]
mod http_tests;
mod keeper;
mod latest;
pub mod metrics;
pub mod observer;
mod peers;
mod request;
mod site;
pub mod snapshot;
pub mod source;
mod stall;
mod summary;
mod timeline;
mod traces;

pub use observer::{ObserveConfig, Observer, ObserverHandle};
pub use snapshot::Snapshot;
pub use source::{Source, TraceNews, TraceReader};
