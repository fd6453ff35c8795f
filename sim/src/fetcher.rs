//! Fetcher: an application that fetches one object segment by segment, as file transfer does.
//!
//! It behaves like ndncatchunks and the SegmentFetchers. Its AIMD window grows by one segment per window that arrived
//! and halves at a loss, at most once per window. Retransmission timers follow RFC 6298 (1 s at first, at least 200 ms,
//! doubled at each loss), without RTT samples of segments that were sent twice. It never gives up, and treats a Nack
//! like silence.

use crate::application::{AppIo, Application};
use namewire_packet::lp::LpHeaders;
use namewire_packet::{Component, Data, Interest, InterestBuilder, NackReason, NameBuf, Nonce};
use std::collections::BTreeMap;

/// RFC 6298 (2.1), and common bounds of consumers.
const INITIAL_RTO_NS: u64 = 1_000_000_000;
const MIN_RTO_NS: u64 = 200_000_000;
const MAX_RTO_NS: u64 = 4_000_000_000;
/// Time between two searches for time-outs.
const CHECK_NS: u64 = 10_000_000;
/// Segments in the first window.
const INITIAL_WINDOW: f64 = 2.0;

/// The object, and the speed of the fetch.
#[derive(Clone, Debug)]
pub struct FetcherOptions {
    /// Name of the object; segments have one more component.
    pub prefix: NameBuf,
    /// Number of segments.
    pub segments: u64,
    /// Most segments pending.
    pub window_max: f64,
    /// Shortest time between two Interests that are not retransmissions: the application's limit.
    pub interval_ns: u64,
    /// InterestLifetime.
    pub lifetime_ms: u64,
    /// Until the first loss the window doubles in each round trip, as that of ndncatchunks does.
    pub slow_start: bool,
}

/// Counts of a [`Fetcher`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetcherTally {
    /// Interests sent.
    pub interests: u64,
    /// How many of these were retransmissions.
    pub retransmissions: u64,
    /// Nacks, other than NoRoute.
    pub nacks: u64,
    /// Nacks NoRoute, at which real consumers would give up.
    pub no_route: u64,
}

/// A segment that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentArrival {
    /// When its first Interest was sent.
    pub sent_ns: u64,
    /// When it came.
    pub at_ns: u64,
    /// Bytes of its content.
    pub content_bytes: u64,
}

/// Fetches one object.
#[derive(Debug)]
pub struct Fetcher {
    options: FetcherOptions,
    pending: BTreeMap<u64, Sent>,
    next: u64,
    received: u64,
    window: f64,
    /// The last segment sent before the last decrease of the window.
    recovery_point: u64,
    smoothed_ns: f64,
    variation_ns: f64,
    rto_ns: u64,
    next_new_ns: u64,
    started_ns: u64,
    finished_ns: Option<u64>,
    tally: FetcherTally,
    arrivals: Vec<SegmentArrival>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    first_ns: u64,
    at_ns: u64,
    rto_ns: u64,
    times: u32,
}

impl Fetcher {
    /// A fetch that starts when the application does.
    pub fn new(options: FetcherOptions) -> Self {
        Fetcher {
            options,
            pending: BTreeMap::new(),
            next: 0,
            received: 0,
            window: INITIAL_WINDOW,
            recovery_point: 0,
            smoothed_ns: 0.0,
            variation_ns: 0.0,
            rto_ns: INITIAL_RTO_NS,
            next_new_ns: 0,
            started_ns: 0,
            finished_ns: None,
            tally: FetcherTally::default(),
            arrivals: Vec::new(),
        }
    }

    /// Begins at a time, and not with the application.
    pub fn starting_at(mut self, at_ns: u64) -> Self {
        self.started_ns = at_ns;
        self
    }

    /// The duration of the whole fetch, once it has ended.
    pub fn took_ns(&self) -> Option<u64> {
        self.finished_ns.map(|at_ns| at_ns - self.started_ns)
    }

    /// The counts so far.
    pub fn tally(&self) -> FetcherTally {
        self.tally
    }

    /// The segments that have come, in the order of their arrivals.
    pub fn arrivals(&self) -> &[SegmentArrival] {
        &self.arrivals
    }

    fn express(&mut self, io: &mut AppIo<'_>, segment: u64) {
        let mut name = self.options.prefix.clone();
        name.push_segment(segment);
        let nonce = Nonce::from_u32(io.rng.u32(..));
        io.send(InterestBuilder::new(name).nonce(nonce).lifetime_ms(self.options.lifetime_ms).build());
        self.tally.interests += 1;
        let sent = self.pending.entry(segment).or_insert(Sent { first_ns: io.now_ns, at_ns: 0, rto_ns: 0, times: 0 });
        *sent = Sent { first_ns: sent.first_ns, at_ns: io.now_ns, rto_ns: self.rto_ns, times: sent.times + 1 };
    }

    fn fill_window(&mut self, io: &mut AppIo<'_>) {
        while (self.pending.len() as f64) < self.window && self.next < self.options.segments {
            if io.now_ns < self.next_new_ns {
                return; // the next check or arrival continues
            }
            self.next_new_ns = self.next_new_ns.max(io.now_ns.saturating_sub(CHECK_NS)) + self.options.interval_ns;
            let segment = self.next;
            self.next += 1;
            self.express(io, segment);
        }
    }

    fn check_timeouts(&mut self, io: &mut AppIo<'_>) {
        let is_overdue = |sent: &Sent| sent.at_ns + sent.rto_ns <= io.now_ns;
        let overdue: Vec<u64> =
            self.pending.iter().filter(|(_, sent)| is_overdue(sent)).map(|(&segment, _)| segment).collect();
        let Some(&last) = overdue.last() else { return };
        if last >= self.recovery_point {
            self.recovery_point = self.next;
            self.window = (self.window / 2.0).max(INITIAL_WINDOW);
            self.rto_ns = (2 * self.rto_ns).min(MAX_RTO_NS);
        }
        for segment in overdue {
            self.tally.retransmissions += 1;
            self.express(io, segment);
        }
    }

    fn add_sample(&mut self, sample_ns: f64) {
        if self.smoothed_ns == 0.0 {
            (self.smoothed_ns, self.variation_ns) = (sample_ns, sample_ns / 2.0);
        } else {
            self.variation_ns = 0.75 * self.variation_ns + 0.25 * (self.smoothed_ns - sample_ns).abs();
            self.smoothed_ns = 0.875 * self.smoothed_ns + 0.125 * sample_ns;
        }
        self.rto_ns = ((self.smoothed_ns + 4.0 * self.variation_ns) as u64).clamp(MIN_RTO_NS, MAX_RTO_NS);
    }

    fn receive_data(&mut self, io: &AppIo<'_>, data: &Data<'_>) {
        let segment = data.name().last().and_then(|last: Component<'_>| last.segment());
        let Some(sent) = segment.and_then(|segment| self.pending.remove(&segment)) else { return };
        self.received += 1;
        let content_bytes = data.content().len() as u64;
        self.arrivals.push(SegmentArrival { sent_ns: sent.first_ns, at_ns: io.now_ns, content_bytes });
        if sent.times == 1 {
            self.add_sample((io.now_ns - sent.at_ns) as f64);
        }
        // Before the first decrease no loss was met.
        let grows = if self.options.slow_start && self.recovery_point == 0 { 1.0 } else { 1.0 / self.window };
        self.window = (self.window + grows).min(self.options.window_max);
        if self.received == self.options.segments {
            self.finished_ns = Some(io.now_ns);
        }
    }
}

impl Application for Fetcher {
    fn start(&mut self, io: &mut AppIo<'_>) {
        self.started_ns = self.started_ns.max(io.now_ns);
        self.next_new_ns = self.started_ns;
        match self.started_ns == io.now_ns {
            true => self.wake(io),
            false => io.wake_at(self.started_ns),
        }
    }

    fn receive(&mut self, io: &mut AppIo<'_>, headers: &LpHeaders, packet: &[u8]) {
        match (headers.nack, Data::parse(packet)) {
            (Some(NackReason::NoRoute), _) => self.tally.no_route += 1,
            (Some(_), _) => self.tally.nacks += 1,
            (None, Ok(data)) => self.receive_data(io, &data),
            (None, Err(_)) => debug_assert!(Interest::parse(packet).is_err(), "an Interest for a consumer"),
        }
        self.fill_window(io);
    }

    fn wake(&mut self, io: &mut AppIo<'_>) {
        if self.finished_ns.is_some() {
            return;
        }
        self.check_timeouts(io);
        self.fill_window(io);
        io.wake_at(io.now_ns + CHECK_NS.min(self.options.interval_ns.max(1_000_000)));
    }
}
