//! Write programs for Named Data Networking: ask for Data, answer Interests, fetch and publish files, check signatures,
//! synchronise groups, find Data by tags. This crate alone is enough; it connects to Namewire, NFD and other
//! forwarders.
//!
//! A consumer:
//!
//! ```no_run
//! use namewire_client::{Client, InterestBuilder, NameBuf};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Client::connect().await?;
//!     let name: NameBuf = "/example/hello".parse()?;
//!     let data = client.express(&InterestBuilder::new(name).must_be_fresh(true)).await?;
//!     println!("{}", String::from_utf8_lossy(data.content()));
//!     Ok(())
//! }
//! ```
//!
//! A producer:
//!
//! ```no_run
//! use namewire_client::{Client, DataBuilder, IncomingInterest};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Client::connect().await?;
//!     let hello = async |interest: IncomingInterest| {
//!         DataBuilder::new(interest.interest().name()).freshness_ms(1000).content(b"hello").sign_digest()
//!     };
//!     client.serve(&"/example".parse()?, hello).await?;
//!     Ok(())
//! }
//! ```
//!
//! | you want to | use |
//! | --- | --- |
//! | find the forwarder | [`Client::connect`]; [`discovery`] lists where it looks, [`transport_uri`] how to name one |
//! | ask for one packet | [`Client::express`], [`Client::express_trusted`] |
//! | answer Interests | [`Client::serve`] with a closure, [`Client::interests`] as a stream |
//! | fetch and publish objects of many packets | [`SegmentFetch`], [`SegmentPublisher`] |
//! | sign | [`security::Signer`], with your key; feature `key-chain`: with keys on disk (`security::key_chain`) |
//! | get certificates of an authority, renew and serve them | the crate `namewire-certificates` |
//! | trust only some keys | [`Validator`] |
//! | learn what other members of a group published | [`sync::SyncGroup`] |
//! | find Data by sets of tags | [`tag::TagClient`] |
//! | ping forwarders, and trace the way to a name | [`Client::probe`] |
//! | command the forwarder, and read its state | [`Client::control`], [`Client::dataset`], [`NotificationStream`] |
//!
//! If the forwarder starts again, the client connects again and registers its prefixes again.
//!
//! It needs a Tokio runtime; a current-thread one is enough. DigestSha256 signs commands and published objects unless
//! [`Client::sign_commands_with`] and [`PublishOptions`] get a key. The folder examples of the crate has a program for
//! each line of the table.

mod client;
mod close_reason;
pub mod congestion_window;
mod connection;
mod data_buf;
pub mod discovery;
mod express_error;
mod face;
mod fetch_event;
mod fetch_options;
mod incoming_interest;
mod loss_detection;
mod management;
pub mod manifest;
mod notification;
pub mod object_protocol;
mod pending_interest;
mod probe;
mod producer;
mod rate_limit;
mod reassembly;
mod repeats;
pub mod rtt_estimator;
mod segment_fetch;
pub mod segment_publish;
pub mod sync;
pub mod tag;
mod tag_exchange;
mod transfer;
pub mod transport_uri;
mod validator;
mod version_discovery;

/// Names, packets and their encodings.
pub use namewire_packet as packet;
pub use namewire_packet::{Component, Data, DataBuilder, Interest, InterestBuilder, NackReason, Name, NameBuf};
/// Signatures, certificates, trust schemas and key chains.
pub use namewire_security as security;

pub use client::{Client, ConnectError, PENDING_INTERESTS_MAX};
pub use close_reason::CloseReason;
pub use connection::ConnectionEvent;
pub use data_buf::DataBuf;
pub use express_error::ExpressError;
pub use face::{FRAME_BYTES_MAX, FaceCounters, PrefixInUse, SEND_QUEUE_BYTES_MAX};
pub use fetch_event::{FetchEvent, FetchWatch};
pub use fetch_options::{Discovery, FetchError, FetchOptions, FetchProgress, REORDER_SEGMENTS_MAX};
pub use incoming_interest::{IncomingInterest, Reply, ReplyBatch, RespondError, Responder};
pub use management::{ControlError, DATASET_BYTES_MAX, DatasetError, RouteOptions, next_signature_time_ms};
pub use namewire_packet::{
    nfd::{ProbeReply, ReplyCode},
    path_label::{PathLabel, PathMode},
    probe::ProbeKind,
};
pub use notification::{Notification, NotificationStream};
pub use probe::{ProbeAnswer, ProbeRequest};
pub use producer::{
    Answer, INCOMING_INTERESTS_MAX, InterestOptions, InterestRoutes, InterestStream, SERVED_AT_ONCE_MAX, ServeError,
};
pub use rate_limit::RateLimit;
pub use segment_fetch::{FoundObject, SegmentFetch, SegmentStream};
pub use segment_publish::{PublishCounters, PublishError, PublishOptions, SegmentPublisher};
pub use transport_uri::TransportUri;
pub use validator::{CERTIFICATES_FETCHED_MAX, RECORD_WAIT, TrustError, Validator};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
