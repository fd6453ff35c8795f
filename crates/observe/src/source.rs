//! Source: where the observer gets what it shows.
//!
//! Contract: the observer calls a source on its own thread, at most once per [`SNAPSHOT_AGE_MS_MAX`] however many
//! clients ask, and not at all while no client does. A source must not block that thread: it sends a request to the
//! threads that own the state, and awaits the answer.
//!
//! Limits: the observer waits [`SNAPSHOT_WAIT`] for a snapshot and [`EXPLAIN_WAIT`] for an explanation, then drops the
//! future and answers 503.

use std::future::Future;
use std::time::Duration;

use crate::snapshot::Snapshot;

/// A snapshot of this age answers further requests, so that many clients cost the router no more than a few.
pub const SNAPSHOT_AGE_MS_MAX: u64 = 250;
/// How long the observer waits for a snapshot.
pub const SNAPSHOT_WAIT: Duration = Duration::from_secs(5);
/// How long it waits for an explanation.
pub const EXPLAIN_WAIT: Duration = Duration::from_secs(5);
/// What [`Source::explain`] answers when the source has no explanations.
pub const NOT_OFFERED: &str = "not offered";

/// What a node shows. Everything is a copy, made off the data path.
pub trait Source: Send + Sync + 'static {
    /// Everything at this moment. `None`: the router has stopped.
    fn snapshot(&self) -> impl Future<Output = Option<Snapshot>> + Send;

    /// What the router would do with an Interest for `name` (a name URI): for `/explain`. An error is a text for
    /// people. The name comes from the client and is unchecked, except that it is UTF-8 and under 8 KiB.
    fn explain(&self, name: String) -> impl Future<Output = Result<serde_json::Value, String>> + Send {
        drop(name);
        std::future::ready(Err(NOT_OFFERED.to_owned()))
    }
}
