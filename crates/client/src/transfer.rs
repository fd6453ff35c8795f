//! The segments of a fetch: which are in flight, which are lost, which wait for their turn?
//!
//! Each segment has one Interest in flight at a time, as many together as the congestion window allows. A segment that
//! [`LossDetector`] takes for lost, or that has not arrived after the RTO, is requested again with a new nonce, at most
//! [`FetchOptions::retries_max`] times. The RTO is shorter than the InterestLifetime, so forwarders still have the
//! earlier Interest. They treat the later one as a retransmission and send it another way. A lost or marked segment and
//! a Nack of reason Congestion shrink the window, at most once per round trip.
//!
//! * **Nothing has come yet.** The fetch gives up after [`FetchOptions::patience`]: nobody may have this version.
//! * **The connection is lost.** All Interests in flight count as lost, and are sent again over another connection,
//!   within [`FetchOptions::reconnect`].
//! * **The end is unknown**, because no segment has had a FinalBlockId: a stream. Segments that do not exist yet look
//!   like lost ones, so their time-outs do not shrink the window, and only [`STREAM_PROBES`] of them stay in flight.
//!   When their retries are used up, the producer's metadata tells whether it still lives. Meanwhile the fetch goes on.
//!   Where the caller wants no stream ([`FetchOptions::must_end`]), that ends the fetch.
//! * **Nobody answers** for [`SOURCE_STALL`], or there is no route: the next of [`FetchOptions::sources`] has its turn.
//! * **Slots of the connection are scarce** ([`crate::PENDING_INTERESTS_MAX`]): a segment that is asked for again
//!   takes the slot of its earlier Interest, and a fetch with nothing in flight that of another lost segment. So no
//!   fetch waits for slots while it holds some.
//! * **A Nack came**: the segment waits for its pause within the window. It has left the network, as a lost one has
//!   (RFC 6675: not in the pipe). But without its place each Nack would let a new Interest out at once.
//! * **An application Nack** may be an old one in a cache. The segment is asked for once more with MustBeFresh.

use crate::{
    client::{Client, Outstanding, fresh_nonce},
    congestion_window::CongestionWindow,
    connection::Backoff,
    data_buf::DataBuf,
    express_error::ExpressError,
    fetch_event::FetchEvent,
    fetch_options::{FetchError, FetchOptions, FetchProgress, REORDER_SEGMENTS_MAX, require_trust},
    loss_detection::{LossDetector, repeat_after},
    manifest::Manifest,
    pending_interest::{Completion, Outcome},
    rate_limit::SEGMENT_BYTES_GUESS,
    repeats::Repeats,
    rtt_estimator::RttEstimator,
    version_discovery,
};
use namewire_packet::{InterestBuilder, NackReason, NameBuf, content_type, signature::signature_type};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::{OwnedSemaphorePermit, mpsc},
    time::{Instant, sleep_until},
};

/// This many Nacks of one segment, other than Congestion and Duplicate, end the fetch before the first segment has
/// come. Afterwards a Nack may mean a failed link, and another route may be found.
const NACKS_MAX: u32 = 3;
/// Pause after the first Nack of a segment; it doubles, up to the longest pause.
const NACK_PAUSE: Duration = Duration::from_millis(50);
const NACK_PAUSE_LAST: Duration = Duration::from_secs(2);
/// Interests that wait at the end of a stream.
const STREAM_PROBES: usize = 2;
/// After the version was found, its first segment has at least this long.
const FIRST_SEGMENT_PATIENCE: Duration = Duration::from_secs(2);
/// A source is left after so long without an answer, or after a Nack once it has been tried so long.
const SOURCE_STALL: Duration = Duration::from_secs(1);
const SOURCE_NACKED: Duration = Duration::from_millis(100);
/// How long a producer has to answer for its metadata in the middle of a stream.
const LIFE_SIGN_PATIENCE: Duration = Duration::from_secs(4);
/// Stands for the segment number of that question.
const LIFE_SIGN: u64 = u64::MAX;

/// A requested segment that has not arrived.
struct Wanted {
    attempts: u32,
    nacks: u32,
    sent_at: Instant,
    /// When to act: at the RTO, or after the pause that follows a Nack.
    deadline: Instant,
    is_pausing: bool,
    /// A cache answered with an application Nack that may be old.
    must_be_fresh: bool,
    outstanding: Option<Outstanding>,
}

/// The question whether the producer of a stream lives.
struct LifeSign {
    /// The segment that did not come, and how often it was asked for.
    segment: u64,
    attempts: u32,
    due: Instant,
    _outstanding: Outstanding,
}

/// A fetch whose version is known.
pub(crate) struct Transfer<'a> {
    client: &'a Client,
    options: FetchOptions,
    base: NameBuf,
    window: CongestionWindow,
    rtt: RttEstimator,
    losses: LossDetector,
    start: Instant,
    /// When to give up if nothing has come.
    first_due: Instant,
    /// Requested, within the window.
    in_flight: BTreeMap<u64, Wanted>,
    /// Requested, and to be requested again. Their Interests stay pending, so that a late answer still counts.
    lost: BTreeMap<u64, Wanted>,
    /// Those of them that forwarders would not send on yet, by the time when they will.
    held_back: BTreeSet<(Instant, u64)>,
    /// Those that may be requested when the window has room. Either may have segments that were answered meanwhile.
    may_repeat: BTreeSet<u64>,
    /// Arrived after one that is missing; `None`: the user of a [`crate::SegmentStream`] has it already.
    waiting: BTreeMap<u64, Option<DataBuf>>,
    /// In `waiting`, and not given to the user yet.
    pub(crate) arrived: Vec<u64>,
    next_to_ask: u64,
    next_to_write: u64,
    /// The last segment that has arrived.
    highest: Option<u64>,
    final_segment: Option<u64>,
    last_decrease: Option<Instant>,
    /// No deadline in `in_flight` is earlier.
    earliest_deadline: Option<Instant>,
    /// 0: the usual way; else the source of this number, from 1.
    source: usize,
    /// When the source was chosen, or last answered.
    source_lived: Instant,
    pub(crate) manifest: Manifest,
    life_sign: Option<LifeSign>,
    repeats: Repeats,
    /// When the rate allows the next Interest, once a turn is reserved.
    turn: Option<Instant>,
    is_connection_lost: bool,
    backoff: Backoff,
    sender: mpsc::UnboundedSender<(u64, Outcome)>,
    receiver: mpsc::UnboundedReceiver<(u64, Outcome)>,
    pub(crate) progress: FetchProgress,
}

impl<'a> Transfer<'a> {
    /// A transfer of `base` that has sent nothing yet; the fetch began at `start`.
    pub(crate) fn new(
        client: &'a Client,
        options: FetchOptions,
        base: NameBuf,
        is_from_cache: bool,
        start: Instant,
    ) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let rto_limit = Duration::from_millis(options.lifetime_ms) * 3 / 4;
        let (first_segment, last_segment) = (options.first_segment, options.last_segment);
        let now = Instant::now();
        let repeats = Repeats::of(&base);
        client.face().lock().fetches.add(&repeats);
        Transfer {
            window: CongestionWindow::tuned(
                options.congestion_control,
                options.window_tuning,
                options.window_initial,
                options.window_max,
            ),
            rtt: RttEstimator::new(options.rto_min.min(rto_limit), options.rto_max.min(rto_limit)),
            losses: LossDetector::new(),
            client,
            first_due: (start + options.patience).max(now + FIRST_SEGMENT_PATIENCE.min(options.patience)),
            options,
            base: base.clone(),
            start,
            in_flight: BTreeMap::new(),
            lost: BTreeMap::new(),
            held_back: BTreeSet::new(),
            may_repeat: BTreeSet::new(),
            waiting: BTreeMap::new(),
            arrived: Vec::new(),
            next_to_ask: first_segment,
            next_to_write: first_segment,
            highest: None,
            final_segment: last_segment,
            last_decrease: None,
            earliest_deadline: None,
            source: 0,
            source_lived: now,
            manifest: Manifest::default(),
            life_sign: None,
            repeats,
            turn: None,
            is_connection_lost: false,
            backoff: Backoff::default(),
            sender,
            receiver,
            progress: FetchProgress::new(base, first_segment, is_from_cache),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.final_segment.is_some_and(|last| self.next_to_write > last)
    }

    /// Some segments have come, and none said which is the last.
    pub(crate) fn is_open_ended(&self) -> bool {
        self.final_segment.is_none() && self.progress.segments > 0
    }

    /// Nothing has come for longer than the RTO, at the end of an object whose end is unknown.
    fn waits_for_stream(&self) -> bool {
        self.is_open_ended() && self.lost.keys().next().is_some_and(|first| Some(*first) > self.highest)
    }

    /// Interests that may be in flight. Those that are probably lost need no room in the window. Where answers come by
    /// ways of different lengths many seem so, hence at most as many as the window has.
    fn room(&self) -> usize {
        let window = self.window.segments();
        window + self.losses.overtaken().min(window)
    }

    /// Requests what the window has room for.
    pub(crate) async fn fill_window(&mut self) -> Result<(), FetchError> {
        loop {
            let room = if self.waits_for_stream() { STREAM_PROBES } else { self.room() };
            if self.in_flight.len() >= room || !self.has_segment_to_ask() || !self.rate_allows_now() {
                return Ok(());
            }
            let (segment, mut wanted) = match self.next_repeat() {
                Some(lost) => lost,
                None => match self.next_new_segment() {
                    Some(new) => new,
                    None => return Ok(()),
                },
            };
            // Room appears only as answers are handled, so never wait for it while there are answers to handle.
            let slot = match self.slot_now(&mut wanted) {
                Some(slot) => slot,
                None if self.in_flight.is_empty() => self.client.slot().await,
                None => {
                    self.lose(segment, wanted);
                    return Ok(());
                }
            };
            let mut name = self.base.clone();
            name.push_segment(segment);
            let mut interest = InterestBuilder::new(name).nonce(fresh_nonce()).lifetime_ms(self.options.lifetime_ms);
            if wanted.must_be_fresh || self.options.must_be_fresh {
                interest = interest.must_be_fresh(true);
            }
            let hint = self.options.hint_of(self.source);
            if !hint.is_empty() {
                interest = interest.forwarding_hint(hint);
            }
            let completion = Completion::Tagged(segment, self.sender.clone());
            match self.client.send_interest(&interest.build(), completion, slot).await {
                Ok(outstanding) => {
                    self.tell(&FetchEvent::Requested { segment, retries: wanted.attempts });
                    self.note_sent(segment, wanted, outstanding);
                }
                Err(ExpressError::Closed(_)) if self.options.can_reconnect() => {
                    self.lose(segment, wanted);
                    self.reconnect().await?;
                }
                Err(error) => return Err(FetchError::Connection(error)),
            }
        }
    }

    /// A slot for the next Interest of this segment, without waiting: that of its earlier Interest, or a free one.
    /// While nothing is in flight, that of any lost segment.
    fn slot_now(&mut self, wanted: &mut Wanted) -> Option<OwnedSemaphorePermit> {
        let own = wanted.outstanding.as_mut().and_then(Outstanding::take_slot);
        own.or_else(|| self.client.slot_now()).or_else(|| {
            let is_idle = self.in_flight.is_empty();
            self.lost.values_mut().filter(|_| is_idle).find_map(|lost| lost.outstanding.as_mut()?.take_slot())
        })
    }

    /// The segment is to be requested again, once forwarders will send that on.
    fn lose(&mut self, segment: u64, wanted: Wanted) {
        let is_pending = wanted.outstanding.is_some();
        let repeat_at = wanted.sent_at + repeat_after(wanted.attempts);
        if is_pending && repeat_at > Instant::now() {
            self.held_back.insert((repeat_at, segment));
        } else {
            self.may_repeat.insert(segment);
        }
        self.lost.insert(segment, wanted);
    }

    /// The first lost segment that may be requested again.
    fn next_repeat(&mut self) -> Option<(u64, Wanted)> {
        let now = Instant::now();
        while let Some((_, segment)) = self.held_back.first().copied().filter(|(at, _)| *at <= now) {
            self.held_back.pop_first();
            self.may_repeat.insert(segment);
        }
        while let Some(segment) = self.may_repeat.pop_first() {
            if let Some(wanted) = self.lost.remove(&segment) {
                return Some((segment, wanted));
            }
        }
        None
    }

    fn note_sent(&mut self, segment: u64, mut wanted: Wanted, outstanding: Outstanding) {
        let now = Instant::now();
        wanted.outstanding = Some(outstanding);
        self.progress.retransmissions += u64::from(wanted.attempts > 0);
        wanted.attempts += 1;
        wanted.sent_at = now;
        self.losses.sent(segment, now);
        self.turn = None;
        self.put_in_flight(segment, wanted, self.rtt.rto());
    }

    /// Reserves a turn, if there is none, and tells whether it has come.
    fn rate_allows_now(&mut self) -> bool {
        let Some(limit) = &self.options.rate_limit else { return true };
        let now = Instant::now();
        let segments_max = self.options.last_segment.map_or(u64::MAX, |last| last.saturating_add(1));
        let mean = self.progress.bytes.checked_div(self.progress.segments);
        let guess = || SEGMENT_BYTES_GUESS.min(self.options.size_bytes_max.div_ceil(segments_max));
        *self.turn.get_or_insert_with(|| limit.reserve(now, mean.unwrap_or_else(guess))) <= now
    }

    fn has_segment_to_ask(&mut self) -> bool {
        let may_repeat = self.held_back.first().is_some_and(|(at, _)| *at <= Instant::now());
        may_repeat || !self.may_repeat.is_empty() || self.new_segment().is_some()
    }

    /// The first segment that was not asked for.
    fn new_segment(&mut self) -> Option<u64> {
        while self.waiting.contains_key(&self.next_to_ask) || self.next_to_ask < self.next_to_write {
            self.next_to_ask += 1; // came with the discovery
        }
        let segment = self.next_to_ask;
        let is_beyond_end = self.final_segment.is_some_and(|last| segment > last);
        (!is_beyond_end && segment < self.next_to_write + REORDER_SEGMENTS_MAX).then_some(segment)
    }

    fn next_new_segment(&mut self) -> Option<(u64, Wanted)> {
        let segment = self.new_segment()?;
        self.next_to_ask += 1;
        let now = Instant::now();
        let wanted = Wanted {
            attempts: 0,
            nacks: 0,
            sent_at: now,
            deadline: now,
            is_pausing: false,
            must_be_fresh: false,
            outstanding: None,
        };
        Some((segment, wanted))
    }

    fn put_in_flight(&mut self, segment: u64, mut wanted: Wanted, wait: Duration) {
        wanted.deadline = Instant::now() + wait;
        self.earliest_deadline =
            Some(self.earliest_deadline.map_or(wanted.deadline, |earliest| earliest.min(wanted.deadline)));
        self.in_flight.insert(segment, wanted);
    }

    /// Waits for an answer or a deadline, then handles all arrivals and losses.
    pub(crate) async fn await_event(&mut self) -> Result<(), FetchError> {
        let deadline = self.next_deadline();
        tokio::select! {
            biased;
            event = self.receiver.recv() => {
                let mut next = event;
                while let Some((segment, outcome)) = next {
                    self.handle(segment, outcome).await?;
                    next = self.receiver.try_recv().ok();
                }
            }
            () = sleep_until(deadline) => {}
        }
        if self.is_connection_lost {
            self.reconnect().await?;
        }
        self.take_losses();
        self.handle_deadlines().await
    }

    fn next_deadline(&self) -> Instant {
        let (overdue, rto) = (self.rtt.overdue(), self.rtt.rto());
        let probe = self.losses.probe_due(overdue, self.rtt.srtt(), rto).filter(|_| self.has_tail_to_probe());
        let turn = self.turn.filter(|at| *at > Instant::now());
        let first = (self.progress.segments == 0).then_some(self.first_due);
        let life_sign = self.life_sign.as_ref().map(|asked| asked.due);
        let repeat = self.held_back.first().map(|(at, _)| *at).filter(|at| *at > Instant::now());
        let overtaken = self.losses.next_due(overdue, rto);
        let deadlines = [self.earliest_deadline, overtaken, probe, turn, first, repeat, life_sign];
        // Without a segment in flight there is no deadline: other fetches use the slots.
        deadlines.into_iter().flatten().min().unwrap_or_else(|| Instant::now() + self.options.rto_min)
    }

    async fn handle(&mut self, segment: u64, outcome: Outcome) -> Result<(), FetchError> {
        if segment == LIFE_SIGN {
            return self.handle_life_sign(outcome);
        }
        let Some(wanted) = self.in_flight.remove(&segment).or_else(|| self.lost.remove(&segment)) else {
            return Ok(()); // the answer to an earlier Interest came first
        };
        match outcome {
            Ok(data) if data.data().content_type() == content_type::NACK && !wanted.must_be_fresh => {
                let wanted = Wanted { must_be_fresh: true, is_pausing: true, outstanding: None, ..wanted };
                self.put_in_flight(segment, wanted, Duration::ZERO);
                Ok(())
            }
            Ok(data) => {
                let now = Instant::now();
                self.source_lived = now;
                let in_flight = &self.in_flight;
                let last_sent = |segment| in_flight.get(&segment).filter(|w| !w.is_pausing).map(|w| w.sent_at);
                self.losses.answered(segment, wanted.attempts, wanted.sent_at, now, last_sent);
                let round_trip = now.duration_since(wanted.sent_at);
                let is_sample = wanted.attempts == 1;
                let rtt = is_sample.then_some(round_trip);
                rtt.into_iter().for_each(|rtt| self.rtt.add_sample(rtt));
                self.tell(&FetchEvent::Received { segment, round_trip, is_sample, estimate: &self.rtt });
                self.progress.congestion_marks += u64::from(data.congestion_mark > 0);
                if data.congestion_mark > 0 && !self.options.window_tuning.ignores_marks {
                    self.decrease_window(wanted.sent_at, data.congestion_mark);
                } else {
                    self.window.on_data(now, rtt, self.rtt.srtt());
                    self.tell(&FetchEvent::Window(self.window.exact().0));
                }
                self.accept(segment, data).await
            }
            Err(ExpressError::Nack(reason)) => self.handle_nack(segment, wanted, reason),
            Err(ExpressError::Closed(_)) if self.options.can_reconnect() => {
                self.lose(segment, Wanted { is_pausing: false, outstanding: None, ..wanted });
                self.is_connection_lost = true;
                Ok(())
            }
            Err(error) => Err(FetchError::Connection(error)),
        }
    }

    /// Opens another connection. What was in flight is asked for again.
    async fn reconnect(&mut self) -> Result<(), FetchError> {
        self.is_connection_lost = false;
        self.life_sign = None;
        for (segment, wanted) in std::mem::take(&mut self.in_flight) {
            self.lose(segment, Wanted { is_pausing: false, outstanding: None, ..wanted });
        }
        self.earliest_deadline = None;
        let came_back = self.client.come_back_within(self.options.reconnect, &mut self.backoff).await;
        came_back.map_err(FetchError::Connection)?;
        self.client.face().lock().fetches.add(&self.repeats);
        // What the old connection had to say of its Interests says nothing of the next ones; its Data counts.
        let is_news = |(_, outcome): &(u64, Outcome)| !matches!(outcome, Err(ExpressError::Closed(_)));
        let news: Vec<_> = std::iter::from_fn(|| self.receiver.try_recv().ok()).filter(is_news).collect();
        for one in news {
            let _ = self.sender.send(one); // this struct has the receiver
        }
        if self.progress.segments == 0 {
            self.first_due = self.first_due.max(Instant::now() + FIRST_SEGMENT_PATIENCE);
        }
        Ok(())
    }

    fn handle_nack(&mut self, segment: u64, mut wanted: Wanted, reason: NackReason) -> Result<(), FetchError> {
        self.progress.nacks += 1;
        let may_wait = self.options.waits_for_producer && Instant::now() < self.first_due;
        if wanted.attempts > self.options.retries_max && !may_wait {
            return Err(FetchError::SegmentNack { segment, reason });
        }
        wanted.outstanding = None;
        let pause = match reason {
            NackReason::Congestion => {
                self.decrease_window(wanted.sent_at, 0);
                self.rtt.rto()
            }
            NackReason::Duplicate => Duration::ZERO, // a fresh nonce will do
            NackReason::NoRoute | NackReason::None => {
                wanted.nacks += 1;
                self.leave_source_after(SOURCE_NACKED);
                // What only caches hold has no producer to wait for.
                let is_hopeless = self.progress.segments == 0 || self.progress.is_from_cache;
                let nacks_max = NACKS_MAX * self.options.ways() as u32;
                if wanted.nacks > nacks_max && is_hopeless && !may_wait {
                    return Err(FetchError::SegmentNack { segment, reason });
                }
                let doublings = (wanted.nacks - 1).min(10);
                (NACK_PAUSE * (1 << doublings)).min(NACK_PAUSE_LAST)
            }
        };
        wanted.is_pausing = true;
        self.put_in_flight(segment, wanted, pause);
        Ok(())
    }

    /// Moves to `lost` what later arrivals, or a silence, show to be lost.
    fn take_losses(&mut self) {
        let (now, overdue, rto) = (Instant::now(), self.rtt.overdue(), self.rtt.rto());
        loop {
            let in_flight = &self.in_flight;
            let last_sent = |segment| in_flight.get(&segment).filter(|w| !w.is_pausing).map(|w| w.sent_at);
            let Some(segment) = self.losses.take_lost(now, overdue, rto, last_sent) else { break };
            // The last attempt has its whole time.
            if self.in_flight.get(&segment).is_none_or(|wanted| wanted.attempts > self.options.retries_max) {
                continue;
            }
            let Some(wanted) = self.in_flight.remove(&segment) else { continue };
            self.progress.losses += 1;
            self.decrease_window(wanted.sent_at, 0);
            self.lose(segment, wanted);
        }
        let is_probe_due = self.losses.probe_due(overdue, self.rtt.srtt(), rto).is_some_and(|due| due <= now);
        if is_probe_due && self.has_tail_to_probe() {
            let may_repeat = |wanted: &Wanted| !wanted.is_pausing && wanted.attempts <= self.options.retries_max;
            let asked = self.in_flight.iter().filter(|(_, wanted)| may_repeat(wanted));
            let latest = asked.max_by_key(|(_, wanted)| wanted.sent_at);
            if let Some(segment) = latest.map(|(segment, _)| *segment)
                && let Some(wanted) = self.in_flight.remove(&segment)
            {
                self.losses.probed();
                self.lose(segment, wanted);
            }
        }
    }

    /// A segment in flight may be the last of a window. At the end of a stream nothing is missing.
    fn has_tail_to_probe(&self) -> bool {
        let may_repeat = |wanted: &Wanted| !wanted.is_pausing && wanted.attempts <= self.options.retries_max;
        let is_asked = self.in_flight.values().any(may_repeat);
        is_asked && !self.is_open_ended()
    }

    async fn handle_deadlines(&mut self) -> Result<(), FetchError> {
        let now = Instant::now();
        if self.progress.segments == 0 && now >= self.first_due {
            let mut name = self.base.clone();
            name.push_segment(self.next_to_write);
            let waited = now.duration_since(self.start).as_millis() as u64;
            return Err(FetchError::NotFound { name, cause: ExpressError::Timeout(waited) });
        }
        if self.life_sign.as_ref().is_some_and(|asked| asked.due <= now) {
            self.end_without_life_sign()?;
        }
        if self.earliest_deadline.is_none_or(|earliest| now < earliest) {
            return Ok(());
        }
        let expired: Vec<u64> =
            self.in_flight.iter().filter(|(_, wanted)| wanted.deadline <= now).map(|(segment, _)| *segment).collect();
        let mut window_decreased = false;
        if !expired.is_empty() {
            self.leave_source_after(SOURCE_STALL);
        }
        for segment in expired {
            let Some(mut wanted) = self.in_flight.remove(&segment) else { continue };
            if !std::mem::take(&mut wanted.is_pausing) {
                if wanted.attempts > self.options.retries_max {
                    self.give_up_unless_stream_lives(segment, &mut wanted).await?;
                }
                self.progress.timeouts += 1;
                let may_not_exist = self.is_open_ended() && Some(segment) > self.highest;
                window_decreased |= may_not_exist || self.decrease_window(wanted.sent_at, 0);
            }
            self.lose(segment, wanted);
        }
        // Once per loss event, like the window. N.B. Backing off at every expiry took the time-out from 200 ms
        // to its maximum within one burst of losses, and 7 of 10 fetches that lost anything took 4 to 12 s.
        if window_decreased {
            self.rtt.back_off();
        }
        self.earliest_deadline = self.in_flight.values().map(|wanted| wanted.deadline).min();
        Ok(())
    }

    /// A segment did not come, however often it was requested. At the end of a stream that is no failure while the
    /// producer answers for its metadata: it is asked, and the segment requested again meanwhile.
    async fn give_up_unless_stream_lives(&mut self, segment: u64, wanted: &mut Wanted) -> Result<(), FetchError> {
        let attempts = wanted.attempts;
        if !self.is_open_ended() || Some(segment) <= self.highest {
            return Err(FetchError::SegmentTimeout { segment, attempts });
        }
        if self.options.must_end {
            return Err(FetchError::NoEnd);
        }
        wanted.attempts = 1;
        if self.life_sign.is_some() {
            return Ok(());
        }
        // Without a slot the question waits until the attempts are used up once more.
        let Some(slot) = self.slot_now(wanted) else { return Ok(()) };
        let patience_ms = LIFE_SIGN_PATIENCE.as_millis() as u64;
        let mut interest = version_discovery::latest_version_interest(&self.base);
        interest = interest.nonce(fresh_nonce()).lifetime_ms(patience_ms);
        let hint = self.options.hint_of(self.source);
        if !hint.is_empty() {
            interest = interest.forwarding_hint(hint);
        }
        let completion = Completion::Tagged(LIFE_SIGN, self.sender.clone());
        match self.client.send_interest(&interest.build(), completion, slot).await {
            Ok(outstanding) => {
                let due = Instant::now() + LIFE_SIGN_PATIENCE;
                self.life_sign = Some(LifeSign { segment, attempts, due, _outstanding: outstanding });
                Ok(())
            }
            // The next Interest for a segment opens another one.
            Err(ExpressError::Closed(_)) if self.options.can_reconnect() => Ok(()),
            Err(error) => Err(FetchError::Connection(error)),
        }
    }

    fn handle_life_sign(&mut self, outcome: Outcome) -> Result<(), FetchError> {
        match outcome {
            Ok(data) if version_discovery::names_version(&data, &self.base) => {
                self.life_sign = None;
                Ok(())
            }
            Err(ExpressError::Closed(_)) if self.options.can_reconnect() => {
                self.is_connection_lost = true;
                Ok(())
            }
            _ => self.end_without_life_sign(),
        }
    }

    /// The producer does not answer. What has come meanwhile is a life sign, too.
    fn end_without_life_sign(&mut self) -> Result<(), FetchError> {
        match self.life_sign.take() {
            Some(LifeSign { segment, attempts, .. }) if Some(segment) > self.highest => {
                Err(FetchError::SegmentTimeout { segment, attempts })
            }
            _ => Ok(()),
        }
    }

    /// Takes the next source if this one has not answered for so long.
    fn leave_source_after(&mut self, silence: Duration) {
        if self.source_lived.elapsed() >= silence {
            self.source = (self.source + 1) % self.options.ways();
            self.source_lived = Instant::now();
        }
    }

    /// At most once per round trip: a loss of a segment sent before the last decrease is no news. True if it decreased.
    /// `mark` is the CongestionMark that says so; 0: a loss or a Nack does.
    fn decrease_window(&mut self, sent_at: Instant, mark: u64) -> bool {
        let heeds_each = self.options.window_tuning.heeds_each_sign;
        let is_new = heeds_each || self.last_decrease.is_none_or(|last| sent_at > last);
        if is_new {
            self.window.on_congestion();
            self.last_decrease = Some(Instant::now());
            let (window, threshold) = self.window.exact();
            self.tell(&FetchEvent::Congestion { mark, window, threshold });
            self.tell(&FetchEvent::Window(window));
        }
        is_new
    }

    fn tell(&self, event: &FetchEvent<'_>) {
        self.options.watch.iter().for_each(|watch| watch.tell(event));
    }

    /// Accepts a segment: verifies it and keeps it until its turn.
    pub(crate) async fn accept(&mut self, segment: u64, data: DataBuf) -> Result<(), FetchError> {
        let view = data.data();
        let is_digest = view.signature_info().signature_type() == signature_type::DIGEST_SHA256;
        let is_judged = self.options.validator.is_some();
        let may_be_listed =
            view.content_type() != content_type::NACK && (self.manifest.is_required() || (is_digest && is_judged));
        let is_listed = may_be_listed && {
            let hint = self.options.hint_of(self.source);
            self.manifest.check(self.client, &self.options, hint, &self.base, (segment, &view)).await?
        };
        if is_listed {
            // Nothing else counts.
        } else if is_judged {
            require_trust(self.client, &self.options, &view).await?;
        } else if !is_digest {
            self.progress.unverified_segments += 1;
        } else if self.options.verify_digests && !view.verify_digest_sha256() {
            return Err(FetchError::BadDigest(view.name().to_buf()));
        }
        match view.content_type() {
            content_type::NACK => {
                // The window went beyond the end before the first segment told where it is.
                let last = view.final_block_id().and_then(|component| component.segment());
                return match last.filter(|last| segment > *last) {
                    Some(last) => {
                        self.limit_to(last);
                        Ok(())
                    }
                    None => Err(FetchError::ApplicationNack(view.name().to_buf())),
                };
            }
            // It is signed as the object is, and no part of it.
            content_type::MANIFEST => return Err(FetchError::NotInManifest(view.name().to_buf())),
            content_type::LINK => return Err(FetchError::Link(view.name().to_buf())),
            _ => {}
        }
        if let Some(last) = view.final_block_id().and_then(|component| component.segment()) {
            self.limit_to(last);
        }
        self.progress.segments += 1;
        self.progress.bytes += view.content().len() as u64;
        if self.progress.bytes > self.options.size_bytes_max {
            return Err(FetchError::TooLarge(self.options.size_bytes_max));
        }
        if self.options.must_end && self.final_segment.is_none() && self.options.size_bytes_max == u64::MAX {
            return Err(FetchError::NoEnd);
        }
        self.highest = self.highest.max(Some(segment));
        if segment >= self.next_to_write {
            self.waiting.insert(segment, Some(data));
            self.arrived.push(segment);
        }
        Ok(())
    }

    /// The object ends with segment `last`, or earlier if the user wants less.
    pub(crate) fn limit_to(&mut self, last: u64) {
        let last = self.options.last_segment.map_or(last, |wanted| wanted.min(last));
        if self.final_segment != Some(last) {
            self.final_segment = Some(last);
            // Another segment may tell a later end.
            self.next_to_ask = self.next_to_ask.min(last.saturating_add(1));
            self.in_flight.retain(|segment, _| *segment <= last);
            self.lost.retain(|segment, _| *segment <= last);
        }
    }

    /// Moves the segments that have arrived to `segments`, and notes that they are there.
    pub(crate) fn take_arrived(&mut self, segments: &mut Vec<DataBuf>) {
        let new = self.arrived.drain(..).filter_map(|segment| self.waiting.get_mut(&segment)?.take());
        segments.extend(new);
        while self.waiting.first_key_value().is_some_and(|(first, _)| *first == self.next_to_write) {
            self.waiting.pop_first();
            self.next_to_write += 1;
        }
    }

    /// Writes the segments whose turn it is.
    pub(crate) async fn write_ready<W: AsyncWrite + Unpin>(&mut self, sink: &mut W) -> Result<(), FetchError> {
        self.arrived.clear();
        while let Some(data) = self.waiting.remove(&self.next_to_write).flatten() {
            let content = data.content();
            sink.write_all(content).await?;
            self.next_to_write += 1;
            self.progress.written_segments = self.next_to_write;
            self.progress.written_bytes += content.len() as u64;
            self.progress.last_written_bytes = content.len();
        }
        Ok(())
    }

    pub(crate) fn update_progress(&mut self) {
        let progress = &mut self.progress;
        progress.segments_total = self.final_segment.map(|last| last.saturating_add(1));
        progress.window = self.window.segments();
        progress.window_decreases = self.window.decreases();
        progress.srtt = self.rtt.srtt();
        (progress.repeated_segments, progress.repeated_bytes) = self.repeats.counted();
        progress.elapsed = self.start.elapsed();
    }
}
