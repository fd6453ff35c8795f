//! Source: where the observer gets its data.
//!
//! Contract: the observer calls a source on its own thread, at most once per [`SNAPSHOT_AGE_MS_MAX`] however many
//! clients ask, and not at all while no client does. A source must not block that thread: it sends a request to the
//! threads that own the state, and awaits the answer.
//!
//! The source also decides which client gets a place, because it knows who shares them ([`Source::admit`]). It does so
//! without waiting.
//!
//! Limits: the observer waits [`SNAPSHOT_WAIT`] for a snapshot and for settings, [`EXPLAIN_WAIT`] for an explanation
//! and [`TRACE_WAIT`] for the beginning of a trace, then drops the future and answers 503.

use std::future::Future;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

use crate::snapshot::Snapshot;

/// A snapshot of this age answers further requests, so that many clients cost the router no more than a few. The same
/// holds for settings.
pub const SNAPSHOT_AGE_MS_MAX: u64 = 250;
/// How long the observer waits for a snapshot, and for settings.
pub const SNAPSHOT_WAIT: Duration = Duration::from_secs(5);
/// How long it waits for an explanation.
pub const EXPLAIN_WAIT: Duration = Duration::from_secs(5);
/// How long it waits for the beginning of a trace.
pub const TRACE_WAIT: Duration = Duration::from_secs(5);
/// What [`Source::explain`] and [`Source::trace`] answer when the source has no such thing.
pub const NOT_OFFERED: &str = "not offered";

/// What a client has one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A connection.
    Connection,
    /// The page's news, over a connection.
    Stream,
    /// A trace, over a connection.
    Trace,
}

/// A place that a client has. Dropping it gives the place back.
pub type Admitted = Box<dyn Send>;

/// What a node shows. Everything is a copy, made off the data path.
pub trait Source: Send + Sync + 'static {
    /// Gives the client at this address a place. Asked before a connection is served, and before a stream or a trace
    /// begins.
    ///
    /// # Errors
    /// Why it gets none, for people. The client is answered 503 with this text.
    fn admit(&self, client: IpAddr, place: Place) -> Result<Admitted, String>;

    /// Everything at this moment. `None`: the router has stopped.
    fn snapshot(&self) -> impl Future<Output = Option<Snapshot>> + Send;

    /// The settings in force at this moment, without secrets: for `/settings.json`. `None`: the router has stopped.
    fn settings(&self) -> impl Future<Output = Option<SettingsInForce>> + Send;

    /// What the router would do with an Interest for `name` (a name URI): for `/explain`. An error is a text for
    /// people. The name comes from the client and is unchecked, except that it is UTF-8 and under 8 KiB.
    fn explain(&self, name: String) -> impl Future<Output = Result<serde_json::Value, String>> + Send {
        drop(name);
        std::future::ready(Err(NOT_OFFERED.to_owned()))
    }

    /// Begins to note what the router decides about packets under `prefix` (a name URI, unchecked as for
    /// [`Source::explain`]), of one name in `one_in`: for `/trace`. An error is a text for people.
    fn trace(&self, prefix: String, one_in: u64) -> impl Future<Output = Result<Box<dyn TraceReader>, String>> + Send {
        drop((prefix, one_in));
        std::future::ready(Err(NOT_OFFERED.to_owned()))
    }
}

/// The settings in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettingsInForce {
    /// One object for each. The page shows the fields `key`, `value`, `source` and `place`: where the source says so.
    pub settings: Vec<serde_json::Value>,
    /// How many more there are.
    pub left_out: u64,
}

/// A trace under way. Dropping it ends the trace.
pub trait TraceReader: Send {
    /// What was noted since the last call: at most `most` packets, those that were noted first. Does not wait.
    fn take(&mut self, most: usize) -> TraceNews;
}

/// What a look at a trace brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceNews {
    /// The packets, oldest first. The page shows the fields `time_ns`, `packet`, `name`, `face_id`, `verdict`,
    /// `reason`, `to`, `more`, `after_us` and `lifetime_ms`, as far as they are there.
    pub packets: Vec<serde_json::Value>,
    /// Packets that were noted, or would have been, and are not shown.
    pub left_out: u64,
    /// The router has stopped.
    pub is_over: bool,
}
