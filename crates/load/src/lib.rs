//! Load for a router: Interests, the Data that answer them, and the times of the answers.
//!
//! Two programs make load, for different questions:
//!
//! | | `namewire traffic` | `namewire-lab load` |
//! | --- | --- | --- |
//! | question | what does a router do under this demand? | what does a packet cost a router? |
//! | the loop | [`flow`] sends, [`producer`] answers: two programs, and threads for more flows | [`exchange`]: both sides in one thread |
//! | names | numbered or from a file; in order, at random, or by Zipf's law ([`names`]) | numbered |
//! | when | by a window, a rate, or a Poisson process | by a window or a rate |
//! | Interests | written one by one, with a PIT token to find them again | copies of a template, without a token ([`exchange_packets`]) |
//! | Data | of random size | each byte is checked |
//! | times | quantiles of any number of answers, within 0.05 % | exact, of all answers |
//!
//! Both use the same [`link`], which moves many packets with one system call: streams (Unix, TCP), UDP
//! ([`datagram_batch`]), Ethernet by packet sockets or AF_XDP and shared memory ([`frame_port`]), and WebSocket.

pub mod datagram_batch;
pub mod exchange;
pub mod exchange_packets;
pub mod flow;
pub mod frame_port;
pub mod link;
pub mod link_uri;
pub mod names;
mod packet_parts;
pub mod producer;
mod web_socket;
mod zipf;

pub use exchange::{Exchange, LoadReport, Phase};
pub use exchange_packets::{ExchangePackets, ExchangeShape, ShapeError};
pub use flow::{Counts, Flow, Plan};
pub use frame_port::FramePort;
pub use link::{Link, wait_readable};
pub use link_uri::LinkUri;
pub use names::{NameSet, Names, Order};
