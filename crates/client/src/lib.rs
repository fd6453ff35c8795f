//! The application side of NDN: connect, express, register, fetch and publish.
//!
//! ```no_run
//! use namewire_client::Client;
//! use namewire_packet::{InterestBuilder, NameBuf};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect().await?;
//! let name: NameBuf = "/example/hello".parse()?;
//! let data = client.express(&InterestBuilder::new(name).must_be_fresh(true)).await?;
//! println!("{} bytes", data.data().content().len());
//! # Ok(())
//! # }
//! ```
//!
//! * [`discovery`] finds the forwarder; [`transport_uri`] reads the name of one.
//! * [`Client`]: the connection; [`Client::express`] for a consumer, [`Client::serve`] and [`Client::register_prefix`]
//!   for a producer, [`Client::control`] and [`Client::dataset`] for the forwarder itself.
//! * [`tag::TagClient`]: TagNet, by sets of tags in place of names.
//! * [`SegmentFetch`] and [`SegmentPublisher`]: objects of many packets.
//!
//! It needs a Tokio runtime (a current-thread one is enough) and keeps one connection per [`Client`]. DigestSha256
//! signs commands and published objects unless [`Client::sign_commands_with`] and [`PublishOptions`] get a key.

mod client;
pub mod congestion_window;
mod data_buf;
pub mod discovery;
mod face;
mod management;
mod notification;
mod pending_interest;
mod producer;
mod reassembly;
pub mod rtt_estimator;
pub mod segment_fetch;
pub mod segment_publish;
pub mod tag;
mod tag_exchange;
pub mod transport_uri;
mod version_discovery;

pub use client::{Client, ConnectError, ExpressError, PENDING_INTERESTS_MAX};
pub use data_buf::DataBuf;
pub use face::{CloseReason, FRAME_BYTES_MAX, FaceCounters, PrefixInUse, SEND_QUEUE_BYTES_MAX};
pub use management::{ControlError, DATASET_BYTES_MAX, DatasetError, RouteOptions, next_signature_time_ms};
pub use notification::{Notification, NotificationStream};
pub use producer::{
    INCOMING_INTERESTS_MAX, IncomingInterest, InterestStream, ReplyBatch, RespondError, Responder, ServeOptions,
};
pub use segment_fetch::{Discovery, FetchError, FetchOptions, FetchProgress, SegmentFetch, SegmentStream};
pub use segment_publish::{PublishCounters, PublishError, PublishOptions, SegmentPublisher};
pub use transport_uri::TransportUri;
