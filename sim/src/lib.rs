//! Whole NDN networks in one deterministic test: several engines, one seeded clock, lossy links.
//!
//! Nodes are routers: one engine per worker, joined by the real dispatcher. Links carry frames of the real link
//! service; they lose, repeat, delay and reorder them. Applications send Interests, Data and tag packets. The simulator
//! never sleeps and never reads a clock: simulated minutes take only the time to process their packets, and the same
//! seed gives the same run.
//!
//! ```
//! use namewire_sim::{Consumer, ConsumerOptions, LinkOptions, Network, NodeOptions, Producer, RunEnd};
//!
//! let mut net = Network::new(1, 0);
//! let (left, right) = (net.add_node(NodeOptions::default()), net.add_node(NodeOptions::default()));
//! let wire = net.connect(left, right, LinkOptions { loss: 0.01, ..LinkOptions::default() });
//! net.add_route(left, "/weather", wire.face_a, 10);
//!
//! let producer = net.attach(right, Producer::of_content(500, 1_000));
//! net.add_route(right, "/weather", producer.face, 0);
//! let names = (0..100).map(|hour| format!("/weather/{hour}").parse().unwrap());
//! let options = ConsumerOptions { transmissions: 5, retransmit_after_ms: 200, ..ConsumerOptions::default() };
//! let consumer = net.attach(left, Consumer::new(names, options));
//!
//! assert_eq!(net.run_for(60_000_000_000), RunEnd::Idle);
//! assert_eq!(net.application::<Consumer>(consumer.app).satisfied(), 100);
//! ```
//!
//! | question | item |
//! | --- | --- |
//! | what can be built, and how is it run? | [`Network`] |
//! | what does a link do to frames? | [`LinkOptions`] |
//! | how do nodes share radio or a segment, and where are they? | [`AirOptions`], [`Track`], [`Network::join_air`] |
//! | how does a link fail with an error for its routers? | [`LinkFailure`], [`Network::set_persistency`] |
//! | which applications are there? | [`Consumer`], [`Requester`], [`Fetcher`], [`Producer`], [`TagConsumer`], [`TagPublisher`], any [`Application`] |
//! | do the numbers add up? | [`Network::audit`], [`Network::unexplained_failures`] |
//! | where did every copy of a tag packet end? | [`Network::audit_tags`], [`Network::unexplained_pulls`] |
//! | do core routers that mix names and fingerprints lose Data? | [`MixedCores`] |
//! | what happened? | [`Trace`], [`Network::counters`], [`Network::link_tally`] |

mod air;
mod application;
mod audit;
mod consumer;
mod event_queue;
mod fetcher;
mod link;
mod mixed_cores;
mod network;
mod past_lives;
mod producer;
mod requester;
mod router;
mod routing;
mod tag_application;
mod tag_audit;
mod tag_node;
mod trace;

pub use air::{AirLoss, AirOptions, AirRange, AirTally, Track};
pub use application::{AppIo, Application};
pub use consumer::{Consumer, ConsumerOptions, ConsumerTally, Outcome};
pub use fetcher::{Fetcher, FetcherOptions, FetcherTally, SegmentArrival};
pub use link::{LinkLoss, LinkOptions, LinkTally};
pub use mixed_cores::{MixedCores, MixedOutcome, PrefixAnswers};
pub use network::{AppId, Attachment, Connection, FrameTap, LinkFailure, LinkId, Network, RunEnd};
pub use producer::{Producer, ProducerTally, data_for, is_intact};
pub use requester::{Request, RequestEnd, Requester, RequesterOptions, Wish};
pub use router::NodeOptions;
pub use tag_application::{
    TagConsumer, TagConsumerOptions, TagDelivery, TagPublisher, TagReceived, TagRequest, TagSent,
};
pub use tag_audit::TagLedger;
pub use trace::{NodeId, Trace, TraceEvent, TraceKind};
