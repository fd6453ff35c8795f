//! What happens during a fetch, for a caller that prints or measures it.

use crate::rtt_estimator::RttEstimator;
use namewire_packet::Data;
use std::{fmt, sync::Arc, time::Duration};

/// One thing that happened.
#[derive(Debug)]
pub enum FetchEvent<'a> {
    /// Metadata came. It may name no version.
    Metadata(&'a Data<'a>),
    /// An Interest for a segment was sent.
    Requested {
        /// The segment.
        segment: u64,
        /// Interests that were sent for it before.
        retries: u32,
    },
    /// A segment came.
    Received {
        /// The segment.
        segment: u64,
        /// Time since the last Interest for it.
        round_trip: Duration,
        /// It was asked for once, so `estimate` counts this round trip.
        is_sample: bool,
        /// The estimate with this round trip.
        estimate: &'a RttEstimator,
    },
    /// The window changed to this many segments.
    Window(f64),
    /// A sign of congestion made the window smaller. [`FetchEvent::Window`] follows.
    Congestion {
        /// CongestionMark of the Data that was the sign; 0: a loss or a Nack was.
        mark: u64,
        /// The window, in segments.
        window: f64,
        /// Slow start ends here, in segments.
        threshold: f64,
    },
}

/// Learns of the events of fetches. It is called in the middle of a fetch, so it should return soon.
#[derive(Clone)]
pub struct FetchWatch(Arc<dyn Fn(&FetchEvent<'_>) + Send + Sync>);

impl FetchWatch {
    /// Calls `watch` at each event.
    pub fn new(watch: impl Fn(&FetchEvent<'_>) + Send + Sync + 'static) -> Self {
        FetchWatch(Arc::new(watch))
    }

    pub(crate) fn tell(&self, event: &FetchEvent<'_>) {
        (self.0)(event);
    }
}

impl fmt::Debug for FetchWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FetchWatch")
    }
}
